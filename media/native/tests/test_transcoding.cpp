// A 1 kHz tone through each pair of codecs: what a call hears whose two sides agreed on different ones.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include "support.hpp"
#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/halfband.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;

namespace {

constexpr double tone_hz = 1000;
constexpr double amplitude = 8000;

struct Quality {
    double level_db;  ///< Against what was sent.
    double snr_db;
};

std::vector<Format> built_in() {
    const std::vector<Format> formats{{Codec::pcmu, 8000}, {Codec::pcma, 8000}, {Codec::l16, 8000},
                                      {Codec::l16, 16000}, {Codec::g722, 8000}, {Codec::opus, 48000}};
    std::vector<Format> found;
    std::copy_if(formats.begin(), formats.end(), std::back_inserter(found), codec::supported);
    return found;
}

/// A tone whose phase drifts against the samples, so that it meets every step of a quantiser.
std::vector<std::int16_t> sweeping_tone(double rate_hz, double seconds) {
    return tests::tone(tone_hz + 0.37, rate_hz, static_cast<std::size_t>(rate_hz * seconds), amplitude);
}

/// Level and noise of what remains of the tone, by the least squares.
Quality quality_of(std::span<const std::int16_t> heard, double rate_hz) {
    double cc = 0;
    double ss = 0;
    double cs = 0;
    double xc = 0;
    double xs = 0;
    double power = 0;
    for (std::size_t n = 0; n < heard.size(); ++n) {
        const double phase = 2 * std::numbers::pi * (tone_hz + 0.37) * static_cast<double>(n) / rate_hz;
        const double c = std::cos(phase);
        const double s = std::sin(phase);
        cc += c * c;
        ss += s * s;
        cs += c * s;
        xc += heard[n] * c;
        xs += heard[n] * s;
        power += static_cast<double>(heard[n]) * heard[n];
    }
    const double determinant = cc * ss - cs * cs;
    const double a = (xc * ss - xs * cs) / determinant;
    const double b = (xs * cc - xc * cs) / determinant;
    const double signal = a * xc + b * xs;
    return {20 * std::log10(std::hypot(a, b) / amplitude),
            10 * std::log10(signal / std::max(power - signal, 1e-3))};
}

/// Encode in packets of `ptime_ms` and decode again.
std::vector<std::int16_t> through(const Format& format, std::span<const std::int16_t> sound,
                                  std::uint32_t ptime_ms) {
    const auto encoder = codec::make_encoder(format);
    const auto decoder = codec::make_decoder(format);
    const std::size_t unit = format.rate_hz() / 1000 * ptime_ms;
    std::vector<std::uint8_t> payload(codec::max_payload_bytes);
    std::vector<std::int16_t> out(codec::max_packet_samples);
    std::vector<std::int16_t> heard;
    for (std::size_t at = 0; at + unit <= sound.size(); at += unit) {
        const std::size_t size = encoder->encode(sound.subspan(at, unit), payload);
        const std::uint32_t made = decoder->decode(std::span(payload).first(size), out);
        heard.insert(heard.end(), out.begin(), out.begin() + made);
    }
    return heard;
}

/// Bring samples from one rate of the engine to the other, in blocks of 20 ms.
std::vector<std::int16_t> converted(std::span<const std::int16_t> in, std::uint32_t from_hz,
                                    std::uint32_t to_hz) {
    if (from_hz == to_hz) return {in.begin(), in.end()};
    const std::size_t unit = from_hz / 50;
    std::vector<std::int16_t> out(in.size() * to_hz / from_hz);
    dsp::Upsampler up;
    dsp::Downsampler down;
    for (std::size_t at = 0; at + unit <= in.size(); at += unit) {
        std::int16_t* const to = out.data() + at * to_hz / from_hz;
        if (to_hz > from_hz) {
            up.process(in.subspan(at, unit), to);
        } else {
            down.process(in.subspan(at, unit), to);
        }
    }
    return out;
}

/// The second between the settling of the codecs and the end.
Quality settled_quality(std::span<const std::int16_t> heard, std::uint32_t rate_hz) {
    return quality_of(heard.subspan(rate_hz / 2, rate_hz), rate_hz);
}

Quality alone(const Format& format, std::uint32_t ptime_ms) {
    const auto sound = sweeping_tone(format.rate_hz(), 1.8);
    return settled_quality(through(format, sound, ptime_ms), format.rate_hz());
}

Quality in_turn(const Format& first, const Format& second, std::uint32_t ptime_ms,
                std::uint32_t second_ptime_ms) {
    const auto sound = sweeping_tone(first.rate_hz(), 1.8);
    const auto between = converted(through(first, sound, ptime_ms), first.rate_hz(), second.rate_hz());
    return settled_quality(through(second, between, second_ptime_ms), second.rate_hz());
}

}  // namespace

TEST_CASE("transcoding: each pair keeps level and quality in packets of every length") {
    constexpr std::uint32_t ptimes_ms[] = {10, 20, 30, 40, 50, 60};
    std::map<std::pair<std::size_t, std::uint32_t>, double> alone_db;
    const std::vector<Format> formats = built_in();
    for (std::size_t n = 0; n < formats.size(); ++n) {
        for (const std::uint32_t ptime_ms : ptimes_ms) {
            const Quality quality = alone(formats[n], ptime_ms);
            CAPTURE(ptime_ms);
            CHECK(std::abs(quality.level_db) < 0.5);
            CHECK(quality.snr_db > 34);
            alone_db[{n, ptime_ms}] = quality.snr_db;
        }
    }
    for (std::size_t first = 0; first < formats.size(); ++first) {
        for (std::size_t second = 0; second < formats.size(); ++second) {
            // Equal codecs are relayed as they are.
            if (first == second) continue;
            for (const std::uint32_t ptime_ms : ptimes_ms) {
                // Once with the same length on both sides, once with lengths that do not fit each other.
                for (const std::uint32_t second_ptime_ms : {ptime_ms, 70 - ptime_ms}) {
                    const double worse_db =
                        std::min(alone_db[{first, ptime_ms}], alone_db[{second, second_ptime_ms}]);
                    const Quality quality =
                        in_turn(formats[first], formats[second], ptime_ms, second_ptime_ms);
                    CAPTURE(first);
                    CAPTURE(second);
                    CAPTURE(ptime_ms);
                    CAPTURE(second_ptime_ms);
                    CAPTURE(worse_db);
                    CHECK(std::abs(quality.level_db) < 0.5);
                    CHECK(quality.snr_db > worse_db - 3);
                }
            }
        }
    }
}
