#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "trunkline/dsp/halfband.hpp"

namespace trunkline::dsp {

/// Brings audio of one source between the two rates inside the engine, 8 and 16 kHz.
class RateBridge {
  public:
    /// Longest run at once, at the higher rate: 60 ms.
    static constexpr std::size_t max_samples = 960;

    /// The samples at `to_hz`, valid until the next call; the same samples when the rates are equal.
    std::span<const std::int16_t> convert(std::span<const std::int16_t> samples, std::uint32_t from_hz,
                                          std::uint32_t to_hz);

    /// Forget what went through: another source begins.
    void reset();

  private:
    Upsampler upsampler_;
    Downsampler downsampler_;
    std::array<std::int16_t, max_samples> converted_{};
};

}  // namespace trunkline::dsp
