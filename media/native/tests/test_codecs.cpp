#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "support.hpp"
#include "trunkline/codec/codec.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;

namespace {

const std::vector<Format> formats{{Codec::pcmu, 8000}, {Codec::pcma, 8000}, {Codec::l16, 8000},
                                  {Codec::l16, 16000}, {Codec::g722, 8000}, {Codec::opus, 48000}};

std::vector<Format> built_in() {
    std::vector<Format> found;
    std::copy_if(formats.begin(), formats.end(), std::back_inserter(found), codec::supported);
    return found;
}

/// Payloads of a sound in packets of `ptime_ms`.
std::vector<std::vector<std::uint8_t>> packets_of(codec::Encoder& encoder,
                                                  std::span<const std::int16_t> sound,
                                                  std::uint32_t ptime_ms) {
    const std::size_t unit = encoder.format().rate_hz() / 1000 * ptime_ms;
    std::vector<std::vector<std::uint8_t>> packets;
    for (std::size_t at = 0; at + unit <= sound.size(); at += unit) {
        std::vector<std::uint8_t> room(codec::max_payload_bytes);
        room.resize(encoder.encode(sound.subspan(at, unit), room));
        packets.push_back(std::move(room));
    }
    return packets;
}

std::vector<std::int16_t> decoded(codec::Decoder& decoder, std::span<const std::uint8_t> payload) {
    std::vector<std::int16_t> samples(codec::max_packet_samples);
    samples.resize(decoder.decode(payload, samples));
    return samples;
}

}  // namespace

TEST_CASE("codecs: what is not known or not built in is refused") {
    CHECK_FALSE(codec::supported({Codec::pcmu, 16000}));
    CHECK_FALSE(codec::supported({Codec::g722, 16000}));
    CHECK_FALSE(codec::supported({Codec::l16, 44100}));
    CHECK_FALSE(codec::supported({Codec::opus, 8000}));
    CHECK(codec::make_decoder({Codec::opus, 8000}) == nullptr);
    CHECK(codec::make_encoder({Codec::l16, 44100}) == nullptr);
    CHECK(codec::supported({Codec::pcma, 8000}));
    CHECK(codec::supported({Codec::l16, 16000}));
}

TEST_CASE("codecs: a tone passes at its level in packets of every length") {
    for (const Format& format : built_in()) {
        for (const std::uint32_t ptime_ms : {10U, 20U, 30U, 40U, 50U, 60U}) {
            CAPTURE(static_cast<int>(format.codec));
            CAPTURE(ptime_ms);
            const auto encoder = codec::make_encoder(format);
            const auto decoder = codec::make_decoder(format);
            const std::uint32_t rate_hz = format.rate_hz();
            const auto sound = tests::tone(1000, rate_hz, rate_hz * 6 / 5);
            std::vector<std::int16_t> heard;
            for (const auto& packet : packets_of(*encoder, sound, ptime_ms)) {
                CHECK(decoder->samples(packet) == rate_hz / 1000 * ptime_ms);
                const auto part = decoded(*decoder, packet);
                CHECK(part.size() == rate_hz / 1000 * ptime_ms);
                heard.insert(heard.end(), part.begin(), part.end());
            }
            REQUIRE(heard.size() == sound.size());
            const auto settled = std::span<const std::int16_t>(heard).last(rate_hz * 4 / 5);
            CHECK(tests::amplitude_at(settled, 1000, rate_hz) == doctest::Approx(12000).epsilon(0.05));
        }
    }
}

TEST_CASE("codecs: L16 is in network byte order") {
    const auto encoder = codec::make_encoder({Codec::l16, 8000});
    const auto decoder = codec::make_decoder({Codec::l16, 8000});
    const std::vector<std::int16_t> samples{0x0102, -2, 32767, -32768};
    std::vector<std::uint8_t> payload(8);
    REQUIRE(encoder->encode(samples, payload) == 8);
    CHECK(payload == std::vector<std::uint8_t>{0x01, 0x02, 0xFF, 0xFE, 0x7F, 0xFF, 0x80, 0x00});
    CHECK(decoded(*decoder, payload) == samples);
    CHECK(decoder->samples(std::span<const std::uint8_t>(payload).first(3)) == 0);
}

TEST_CASE("codecs: a lost packet of a voice-like sound is hidden, and a long loss falls silent") {
    for (const Format& format : built_in()) {
        CAPTURE(static_cast<int>(format.codec));
        CAPTURE(format.clock_hz);
        const auto encoder = codec::make_encoder(format);
        const auto decoder = codec::make_decoder(format);
        const std::uint32_t rate_hz = format.rate_hz();
        const auto packets = packets_of(*encoder, tests::tone(160, rate_hz, rate_hz), 20);
        for (std::size_t n = 0; n < 30; ++n) {
            decoded(*decoder, packets[n]);
        }
        std::vector<std::int16_t> hidden(rate_hz / 50);
        decoder->conceal(hidden);
        CHECK(tests::rms(hidden) > 12000 * 0.4);
        CHECK(tests::rms(hidden) < 12000 * 0.9);
        // The sound that follows joins without a click.
        const auto next = decoded(*decoder, packets[31]);
        CHECK(std::abs(next.front() - hidden.back()) < 3000);
        for (int n = 0; n < 50; ++n) {
            decoder->conceal(hidden);
        }
        CHECK(tests::rms(hidden) < 200);
    }
}

TEST_CASE("codecs: concealment comes in chunks of any size") {
    for (const Format& format : built_in()) {
        const auto whole = codec::make_decoder(format);
        const auto chunks = codec::make_decoder(format);
        const auto encoder = codec::make_encoder(format);
        const std::uint32_t rate_hz = format.rate_hz();
        for (const auto& packet : packets_of(*encoder, tests::tone(210, rate_hz, rate_hz / 2), 20)) {
            decoded(*whole, packet);
            decoded(*chunks, packet);
        }
        std::vector<std::int16_t> at_once(rate_hz / 50);
        whole->conceal(at_once);
        std::vector<std::int16_t> in_parts(rate_hz / 50);
        for (std::size_t at = 0; at < in_parts.size();) {
            const std::size_t size = std::min<std::size_t>(at % 7 + 1, in_parts.size() - at);
            chunks->conceal(std::span(in_parts).subspan(at, size));
            at += size;
        }
        CAPTURE(static_cast<int>(format.codec));
        CHECK(at_once == in_parts);
    }
}

TEST_CASE("codecs: nothing that comes from outside breaks a decoder") {
    std::mt19937 random(7);
    for (const Format& format : built_in()) {
        const auto decoder = codec::make_decoder(format);
        std::vector<std::int16_t> out(codec::max_packet_samples);
        for (int round = 0; round < 3000; ++round) {
            std::vector<std::uint8_t> payload(random() % (round % 10 == 0 ? 4000 : 200));
            std::generate(payload.begin(), payload.end(),
                          [&] { return static_cast<std::uint8_t>(random()); });
            const std::uint32_t expected = decoder->samples(payload);
            CHECK(expected <= codec::max_packet_samples);
            const std::uint32_t made = decoder->decode(payload, out);
            CHECK((made == expected || made == 0));
            if (round % 5 == 0) CHECK(decoder->recover(payload, std::span(out).first(320)) <= 320);
            if (round % 7 == 0) decoder->conceal(std::span(out).first(random() % out.size()));
            if (round % 101 == 0) decoder->reset();
        }
        CHECK(decoder->decode({}, out) == 0);
    }
}

TEST_CASE("codecs: a frame that does not fit is not written") {
    for (const Format& format : built_in()) {
        const auto encoder = codec::make_encoder(format);
        const auto decoder = codec::make_decoder(format);
        const auto sound = tests::tone(1000, format.rate_hz(), format.rate_hz() / 50);
        std::vector<std::uint8_t> payload(codec::max_payload_bytes);
        payload.resize(encoder->encode(sound, payload));
        std::vector<std::int16_t> small(10);
        CHECK(decoder->decode(payload, small) == 0);
        if (format.codec == Codec::opus) continue;  // It writes what fits into any size.
        std::vector<std::uint8_t> room(10);
        CHECK(encoder->encode(sound, room) == 0);
    }
}

TEST_CASE("codecs: silence is encoded as a frame of zeros is, and not where it does not fit") {
    for (const Format& format : built_in()) {
        const std::uint32_t count = format.rate_hz() / 50;
        const std::vector<std::int16_t> zeros(count);
        std::vector<std::uint8_t> expected(codec::max_payload_bytes);
        std::vector<std::uint8_t> written(codec::max_payload_bytes);
        expected.resize(codec::make_encoder(format)->encode(zeros, expected));
        written.resize(codec::make_encoder(format)->encode_silence(count, written));
        CHECK(written == expected);
        if (format.codec == Codec::opus) continue;  // It writes what fits into any size.
        std::vector<std::uint8_t> room(10);
        CHECK(codec::make_encoder(format)->encode_silence(count, room) == 0);
    }
}

TEST_CASE("codecs: a decoder that was reset is like a new one") {
    for (const Format& format : built_in()) {
        const auto encoder = codec::make_encoder(format);
        const auto used = codec::make_decoder(format);
        const std::uint32_t rate_hz = format.rate_hz();
        const auto packets = packets_of(*encoder, tests::tone(440, rate_hz, rate_hz / 5), 20);
        for (const auto& packet : packets) {
            decoded(*used, packet);
        }
        used->reset();
        const auto fresh = codec::make_decoder(format);
        CAPTURE(static_cast<int>(format.codec));
        for (const auto& packet : packets) {
            CHECK(decoded(*used, packet) == decoded(*fresh, packet));
        }
    }
}
