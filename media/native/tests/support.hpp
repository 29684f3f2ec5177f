#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "trunkline/graph/playback.hpp"

namespace trunkline::tests {

inline constexpr std::int64_t ms = 1'000'000;

/// A sine of the given frequency and amplitude.
inline std::vector<std::int16_t> tone(double freq_hz, double rate_hz, std::size_t samples,
                                      double amplitude = 12000) {
    std::vector<std::int16_t> out(samples);
    for (std::size_t n = 0; n < samples; ++n) {
        const double phase = 2 * std::numbers::pi * freq_hz * static_cast<double>(n) / rate_hz;
        out[n] = static_cast<std::int16_t>(std::lround(amplitude * std::sin(phase)));
    }
    return out;
}

/// Amplitude of one frequency in the samples.
inline double amplitude_at(std::span<const std::int16_t> samples, double freq_hz, double rate_hz) {
    double real = 0;
    double imaginary = 0;
    for (std::size_t n = 0; n < samples.size(); ++n) {
        const double phase = 2 * std::numbers::pi * freq_hz * static_cast<double>(n) / rate_hz;
        real += samples[n] * std::cos(phase);
        imaginary += samples[n] * std::sin(phase);
    }
    return 2 * std::hypot(real, imaginary) / static_cast<double>(samples.size());
}

inline double rms(std::span<const std::int16_t> samples) {
    double sum = 0;
    for (const std::int16_t sample : samples) {
        sum += static_cast<double>(sample) * sample;
    }
    return samples.empty() ? 0 : std::sqrt(sum / static_cast<double>(samples.size()));
}

/// `count` samples of one value.
inline std::vector<std::int16_t> level(std::int16_t value, std::size_t count) {
    return std::vector<std::int16_t>(count, value);
}

/// Samples as a clip.
inline graph::Clip sound(std::vector<std::int16_t> samples, std::uint32_t rate_hz = 8000) {
    auto owner = std::make_shared<std::vector<std::int16_t>>(std::move(samples));
    graph::Clip made;
    made.bytes = {reinterpret_cast<const std::uint8_t*>(owner->data()), 2 * owner->size()};
    made.owner = owner;
    made.rate_hz = rate_hz;
    return made;
}

/// A playback of one clip; 0 plays are without end.
inline std::unique_ptr<graph::Playback> playback(std::uint64_t id, std::vector<std::int16_t> samples,
                                                 std::uint32_t plays = 1, std::uint32_t rate_hz = 8000) {
    auto made = std::make_unique<graph::Playback>();
    made->id = id;
    made->plays = plays;
    made->clips.push_back(sound(std::move(samples), rate_hz));
    return made;
}

}  // namespace trunkline::tests
