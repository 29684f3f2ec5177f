#include "trunkline/graph/mix.hpp"

#include <algorithm>
#include <cmath>

namespace trunkline::graph {

namespace {

constexpr float full_scale_power = 32768.0F * 32768.0F;
constexpr float silent_db = 127;

std::int16_t limited(std::int32_t sample) {
    return static_cast<std::int16_t>(std::clamp(sample, -32768, 32767));
}

}  // namespace

void Mix::begin(std::size_t frame_samples) {
    frame_samples_ = std::min(frame_samples, max_frame_samples);
    std::fill_n(sum_.begin(), frame_samples_, 0);
}

void Mix::add(std::span<const std::int16_t> voice) {
    for (std::size_t n = 0; n < frame_samples_; ++n) {
        sum_[n] += voice[n];
    }
}

void Mix::all(std::span<std::int16_t> out) const {
    for (std::size_t n = 0; n < frame_samples_; ++n) {
        out[n] = limited(sum_[n]);
    }
}

void Mix::others(std::span<const std::int16_t> own, std::span<const std::span<const std::int16_t>> besides,
                 std::span<std::int16_t> out) const {
    std::array<std::int32_t, max_frame_samples> heard = sum_;
    for (std::size_t n = 0; n < own.size(); ++n) {
        heard[n] -= own[n];
    }
    for (const std::span<const std::int16_t> voice : besides) {
        for (std::size_t n = 0; n < frame_samples_; ++n) {
            heard[n] += voice[n];
        }
    }
    for (std::size_t n = 0; n < frame_samples_; ++n) {
        out[n] = limited(heard[n]);
    }
}

float power_of(std::span<const std::int16_t> samples) {
    std::int64_t sum = 0;
    for (const std::int16_t sample : samples) {
        sum += std::int32_t{sample} * sample;
    }
    return samples.empty() ? 0 : static_cast<float>(sum) / static_cast<float>(samples.size());
}

std::uint32_t level_dbov(float power) {
    if (power <= 0) return static_cast<std::uint32_t>(silent_db);
    const float below = -10.0F * std::log10(power / full_scale_power);
    return static_cast<std::uint32_t>(std::clamp(below, 0.0F, silent_db));
}

}  // namespace trunkline::graph
