#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::dsp {

/// Makes the background noise that a silent sender describes (RFC 3389 3): a level, and optionally the shape
/// of its spectrum as reflection coefficients.
class ComfortNoise {
  public:
    /// Coefficients of the spectrum that are used; a sender's others are ignored.
    static constexpr std::size_t max_order = 12;

    /// Take over a description; an empty one changes nothing. The level then glides within some 30 ms.
    void update(std::span<const std::uint8_t> payload);

    /// Fill `out` with noise; with silence before the first description.
    void generate(std::span<std::int16_t> out);

    /// Forget the description.
    void reset() { *this = ComfortNoise{}; }

  private:
    float excitation();

    std::array<float, max_order> reflection_{};
    std::array<float, max_order + 1> backward_{};  ///< State of the lattice.
    std::size_t order_ = 0;
    float gain_ = 0;
    float target_gain_ = 0;
    std::uint32_t random_ = 0x2545F491;
};

}  // namespace trunkline::dsp
