#include "trunkline/dsp/rate_bridge.hpp"

#include <algorithm>

namespace trunkline::dsp {

std::span<const std::int16_t> RateBridge::convert(std::span<const std::int16_t> samples,
                                                  std::uint32_t from_hz, std::uint32_t to_hz) {
    if (from_hz == to_hz) return samples;
    if (from_hz < to_hz) {
        samples = samples.first(std::min(samples.size(), Upsampler::max_block_samples));
        upsampler_.process(samples, converted_.data());
        return std::span(converted_).first(2 * samples.size());
    }
    samples = samples.first(std::min(samples.size(), 2 * Downsampler::max_block_samples));
    downsampler_.process(samples, converted_.data());
    return std::span(converted_).first(samples.size() / 2);
}

void RateBridge::reset() {
    upsampler_.reset();
    downsampler_.reset();
}

}  // namespace trunkline::dsp
