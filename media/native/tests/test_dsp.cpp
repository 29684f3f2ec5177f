#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "support.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/dsp/halfband.hpp"

using namespace trunkline;
using tests::amplitude_at;
using tests::tone;

TEST_CASE("known G.711 values") {
    const std::vector<std::uint8_t> mu{0xFF, 0x7F, 0x80, 0x00};
    std::vector<std::int16_t> samples(4);
    dsp::decode(dsp::Law::mu, mu, samples.data());
    CHECK(samples == std::vector<std::int16_t>{0, 0, 32124, -32124});
    const std::vector<std::uint8_t> a{0xD5, 0x55, 0xAA, 0x2A};
    dsp::decode(dsp::Law::a, a, samples.data());
    CHECK(samples == std::vector<std::int16_t>{8, -8, 32256, -32256});
}

TEST_CASE("every code survives decoding and encoding") {
    for (const auto law : {dsp::Law::mu, dsp::Law::a}) {
        for (int code = 0; code < 256; ++code) {
            const auto before = static_cast<std::uint8_t>(code);
            std::int16_t sample = 0;
            std::uint8_t after = 0;
            dsp::decode(law, {&before, 1}, &sample);
            dsp::encode(law, {&sample, 1}, &after);
            // Mu-law has two zeros.
            if (law == dsp::Law::mu && code == 0x7F) continue;
            CHECK(after == before);
        }
    }
}

TEST_CASE("encoding picks the nearest of its steps") {
    for (const auto law : {dsp::Law::mu, dsp::Law::a}) {
        for (int value = -32000; value <= 32000; value += 7) {
            const auto sample = static_cast<std::int16_t>(value);
            std::uint8_t code = 0;
            std::int16_t back = 0;
            dsp::encode(law, {&sample, 1}, &code);
            dsp::decode(law, {&code, 1}, &back);
            CHECK(std::abs(back - value) <= std::abs(value) / 16 + 16);
        }
    }
}

TEST_CASE("converting between the laws is decoding and encoding") {
    std::vector<std::uint8_t> codes(256);
    for (std::size_t n = 0; n < codes.size(); ++n) {
        codes[n] = static_cast<std::uint8_t>(n);
    }
    std::vector<std::int16_t> before(256);
    std::vector<std::int16_t> after(256);
    dsp::decode(dsp::Law::mu, codes, before.data());
    dsp::convert(dsp::Law::mu, dsp::Law::a, codes);
    dsp::decode(dsp::Law::a, codes, after.data());
    for (std::size_t n = 0; n < codes.size(); ++n) {
        CHECK(std::abs(before[n] - after[n]) <= std::abs(before[n]) / 16 + 16);
    }
    dsp::convert(dsp::Law::a, dsp::Law::a, codes);
    dsp::convert(dsp::Law::a, dsp::Law::mu, codes);
}

TEST_CASE("a tone keeps its level when the rate doubles, and leaves no image") {
    for (const double freq_hz : {300.0, 1000.0, 3000.0, 3400.0}) {
        const auto in = tone(freq_hz, 8000, 1600);
        std::vector<std::int16_t> out(3200);
        dsp::Upsampler upsampler;
        for (std::size_t n = 0; n < in.size(); n += 160) {
            upsampler.process(std::span(in).subspan(n, 160), out.data() + 2 * n);
        }
        const auto settled = std::span<const std::int16_t>(out).subspan(1600);
        CAPTURE(freq_hz);
        CHECK(amplitude_at(settled, freq_hz, 16000) == doctest::Approx(12000).epsilon(0.01));
        CHECK(amplitude_at(settled, 8000 - freq_hz, 16000) < 12000 * 0.06);
        if (freq_hz <= 3000) CHECK(amplitude_at(settled, 8000 - freq_hz, 16000) < 12);
    }
}

TEST_CASE("halving the rate keeps what fits and drops what does not") {
    for (const double freq_hz : {300.0, 1000.0, 3400.0, 5000.0, 7000.0}) {
        const auto in = tone(freq_hz, 16000, 6400);
        std::vector<std::int16_t> out(3200);
        dsp::Downsampler downsampler;
        for (std::size_t n = 0; n < in.size(); n += 320) {
            downsampler.process(std::span(in).subspan(n, 320), out.data() + n / 2);
        }
        const auto settled = std::span<const std::int16_t>(out).subspan(1600);
        CAPTURE(freq_hz);
        if (freq_hz < 4000) {
            CHECK(amplitude_at(settled, freq_hz, 8000) == doctest::Approx(12000).epsilon(0.01));
        } else {
            CHECK(tests::rms(settled) < 12);
        }
    }
}

TEST_CASE("full scale does not wrap around") {
    std::vector<std::int16_t> in(160);
    for (std::size_t n = 0; n < in.size(); ++n) {
        in[n] = n / 8 % 2 == 0 ? 32767 : -32768;
    }
    std::vector<std::int16_t> out(320);
    dsp::Upsampler upsampler;
    upsampler.process(in, out.data());
    for (std::size_t n = 100; n < out.size(); ++n) {
        // A wrap would turn the sign in the middle of a run.
        if (std::abs(static_cast<int>(n % 16) - 8 - 0) < 5 && n % 16 > 4) CHECK(std::abs(out[n]) > 0);
    }
}
