#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::dsp {

/// Taps on each side of the centre that are not zero; the filter is 4 * half_taps - 1 long.
inline constexpr std::size_t half_taps = 16;

/// Doubles the sampling rate with a half-band filter: flat to 0.42 of the lower rate, images 70 dB down.
class Upsampler {
  public:
    /// Longest block of `process`, in input samples.
    static constexpr std::size_t max_block_samples = 480;

    /// Turn `in` into twice as many samples at `out`; delays by 2 ms at 8 kHz.
    void process(std::span<const std::int16_t> in, std::int16_t* out);

    /// Forget what went through.
    void reset() { history_.fill(0); }

  private:
    static constexpr std::size_t history_samples = 2 * half_taps - 1;

    std::array<float, history_samples + max_block_samples> history_{};
};

/// Halves the sampling rate with the same filter.
class Downsampler {
  public:
    /// Longest block of `process`, in output samples.
    static constexpr std::size_t max_block_samples = 480;

    /// Turn `in`, an even number of samples, into half as many at `out`; delays by 2 ms.
    void process(std::span<const std::int16_t> in, std::int16_t* out);

    /// Forget what went through.
    void reset();

  private:
    static constexpr std::size_t history_samples = 2 * half_taps - 1;

    std::array<float, history_samples + max_block_samples> even_{};
    std::array<float, history_samples + max_block_samples> odd_{};
};

}  // namespace trunkline::dsp
