#include <doctest/doctest.h>

#include <vector>

#include "support.hpp"
#include "trunkline/dsp/resampler.hpp"

using namespace trunkline;

TEST_CASE("resampling: rates out of range are refused") {
    CHECK_FALSE(dsp::can_resample(3999, 8000));
    CHECK_FALSE(dsp::can_resample(8000, 192001));
    CHECK_FALSE(dsp::can_resample(0, 0));
    CHECK(dsp::can_resample(8000, 8000));
    CHECK(dsp::resample(tests::level(5, 3), 0, 8000).empty());
    CHECK(dsp::resample(tests::level(5, 3), 8000, 8000) == tests::level(5, 3));
}

#if TRUNKLINE_HAVE_SPEEXDSP

TEST_CASE("resampling: a tone keeps level, length and place in time") {
    for (const std::uint32_t from_hz : {8000U, 11025U, 16000U, 22050U, 24000U, 32000U, 44100U, 48000U}) {
        for (const std::uint32_t to_hz : {8000U, 16000U}) {
            CAPTURE(from_hz);
            CAPTURE(to_hz);
            const auto out = dsp::resample(tests::tone(1000, from_hz, from_hz * 2), from_hz, to_hz);
            REQUIRE(out.size() == to_hz * 2);
            const auto middle = std::span<const std::int16_t>(out).subspan(to_hz / 2, to_hz);
            CHECK(tests::amplitude_at(middle, 1000, to_hz) == doctest::Approx(12000).epsilon(0.005));
            // Half a second is 500 whole cycles: what remains against the original is noise and delay.
            const auto ideal = tests::tone(1000, to_hz, to_hz * 2);
            double noise = 0;
            for (std::size_t n = to_hz / 2; n < to_hz * 3 / 2; ++n) {
                noise += (out[n] - ideal[n]) * static_cast<double>(out[n] - ideal[n]);
            }
            CHECK(std::sqrt(noise / to_hz) < 12000 * 0.003);
        }
    }
}

TEST_CASE("resampling: what the lower rate cannot carry is left out") {
    const auto out = dsp::resample(tests::tone(6000, 44100, 44100), 44100, 8000);
    CHECK(tests::rms(std::span<const std::int16_t>(out).subspan(800, 6400)) < 12);
}

TEST_CASE("resampling: short sounds keep their length") {
    CHECK(dsp::resample({}, 44100, 8000).empty());
    CHECK(dsp::resample(tests::level(100, 1), 44100, 8000).size() == 1);
    CHECK(dsp::resample(tests::level(100, 441), 44100, 8000).size() == 80);
    CHECK(dsp::resample(tests::level(100, 7), 8000, 48000).size() == 42);
}

#endif
