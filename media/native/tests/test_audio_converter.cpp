// Conversion of continuous audio in pieces, between all formats of agents.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "trunkline/dsp/resampler.hpp"
#include "trunkline/graph/audio_converter.hpp"

using namespace trunkline;
using graph::AudioConverter;
using graph::Encoding;

namespace {

std::vector<std::int16_t> tone(std::uint32_t rate_hz, std::size_t samples) {
    std::vector<std::int16_t> made(samples);
    for (std::size_t n = 0; n < samples; ++n)
        made[n] = static_cast<std::int16_t>(
            12'000 * std::sin(2 * std::numbers::pi * 1000 * static_cast<double>(n) / rate_hz));
    return made;
}

std::vector<std::uint8_t> bytes_of(const std::vector<std::int16_t>& samples) {
    std::vector<std::uint8_t> bytes(2 * samples.size());
    std::memcpy(bytes.data(), samples.data(), bytes.size());
    return bytes;
}

}  // namespace

TEST_CASE("pieces of any size sound like the whole") {
    for (const std::uint32_t from : {8000U, 11'025U, 24'000U, 44'100U, 64'000U}) {
        if (!dsp::can_resample(from, 16'000)) return;
        const auto pcm = tone(from, from / 5);
        const auto expected = bytes_of(dsp::resample(pcm, from, 16'000));
        for (const std::size_t piece : {1U, 7U, 160U, 1000U, 100'000U}) {
            CAPTURE(from);
            CAPTURE(piece);
            AudioConverter converter({Encoding::l16, from}, {Encoding::l16, 16'000});
            CHECK(!converter.unchanged());
            const auto all = bytes_of(pcm);
            std::vector<std::uint8_t> heard;
            for (std::size_t at = 0; at < all.size(); at += 2 * piece) {
                const auto part = std::span(all).subspan(at, std::min(2 * piece, all.size() - at));
                const auto made = converter.convert(part);
                heard.insert(heard.end(), made.begin(), made.end());
            }
            REQUIRE(heard.size() <= expected.size());
            // What is held back is the neighbourhood of the last sample, in whole steps of both rates.
            CHECK(heard.size() + 2 * 16 * 80 >= expected.size());
            CHECK(std::equal(heard.begin(), heard.end(), expected.begin()));
            const auto rest = converter.flush();
            CHECK(heard.size() + rest.size() + 8 >= expected.size());
            CHECK(converter.flush().empty());
        }
    }
}

TEST_CASE("behind a complete piece the audio goes on as if it had not been cut") {
    for (const std::uint32_t from : {8000U, 24'000U, 44'100U}) {
        if (!dsp::can_resample(from, 16'000)) return;
        const std::uint32_t piece = from / 10;
        const auto pcm = tone(from, 5 * piece);
        const auto expected = bytes_of(dsp::resample(pcm, from, 16'000));
        const auto all = bytes_of(pcm);
        AudioConverter converter({Encoding::l16, from}, {Encoding::l16, 16'000});
        for (std::size_t n = 0; n < 5; ++n) {
            CAPTURE(from);
            CAPTURE(n);
            const auto heard = converter.whole(std::span(all).subspan(n * 2 * piece, 2 * piece));
            REQUIRE(heard.size() == 2 * 1600);
            // Only what depends on the samples behind the piece, 10 ms of it, is another.
            const std::size_t sure = 2 * 1600 - 2 * 176;
            CHECK(std::equal(heard.begin(), heard.begin() + sure, expected.begin() + n * 2 * 1600));
        }
    }
}

TEST_CASE("codes of one rate are converted without a filter, and the same format not at all") {
    AudioConverter same({Encoding::mulaw, 8000}, {Encoding::mulaw, 8000});
    CHECK(same.unchanged());
    CHECK(same.whole(std::vector<std::uint8_t>{1, 2, 3}) == std::vector<std::uint8_t>{1, 2, 3});
    AudioConverter linear({Encoding::mulaw, 8000}, {Encoding::l16, 8000});
    CHECK(linear.sample_bytes() == 1);
    CHECK(linear.convert(std::vector<std::uint8_t>{0xff, 0xff}) == std::vector<std::uint8_t>{0, 0, 0, 0});
    CHECK(linear.flush().empty());
    AudioConverter codes({Encoding::l16, 8000}, {Encoding::alaw, 8000});
    CHECK(codes.convert(std::vector<std::uint8_t>{0, 0}).size() == 1);
}

TEST_CASE("a complete piece keeps nothing back, and a reset forgets what waits") {
    if (!dsp::can_resample(24'000, 16'000)) return;
    AudioConverter converter({Encoding::l16, 24'000}, {Encoding::l16, 16'000});
    CHECK(converter.whole(bytes_of(tone(24'000, 480))).size() == 2 * 320);
    CHECK(converter.whole({}).empty());
    converter.convert(bytes_of(tone(24'000, 200)));
    converter.reset();
    CHECK(converter.flush().empty());
    CHECK_THROWS_AS(AudioConverter({Encoding::l16, 0}, {Encoding::l16, 16'000}), std::invalid_argument);
}
