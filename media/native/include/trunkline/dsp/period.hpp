#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::dsp {

/// Correlation of a sound with itself after a number of samples.
struct Period {
    std::size_t samples = 0;  ///< 0 when there was too little to compare.
    float likeness = 0;       ///< Normalised correlation, 1 for a perfect repetition.
};

/// The distance, between the bounds, at which the first `compared` samples of a sound are most like what
/// follows them. `sound` must hold `compared + longest` samples.
Period find_period(std::span<const std::int16_t> sound, std::size_t compared, std::size_t shortest,
                   std::size_t longest);

/// Fade from one sound to another of the same length, into `out`, which may be either of them.
void cross_fade(std::span<const std::int16_t> from, std::span<const std::int16_t> to,
                std::span<std::int16_t> out);

}  // namespace trunkline::dsp
