#pragma once

#include <cstdint>
#include <span>

namespace trunkline::graph {

/// Where audio comes from.
enum class Origin : std::uint8_t {
    received,   ///< Decoded from a packet.
    recovered,  ///< From what a later packet carried of a lost one (in-band FEC).
    concealed,  ///< Made up to hide a loss.
    noise,      ///< Comfort noise: the sender said that it is silent.
    silence,    ///< Nothing came, and nothing says what it would have been.
};

/// Whether the far end was heard, and not only guessed at or known to be silent.
constexpr bool is_heard(Origin origin) {
    return origin == Origin::received || origin == Origin::recovered;
}

/// Whether there is a pause: samples may be left out or put in without anybody noticing.
constexpr bool is_quiet(Origin origin) {
    return origin == Origin::noise || origin == Origin::silence;
}

/// A run of linear samples of one origin, up to 60 ms of it.
struct Piece {
    std::span<const std::int16_t> samples;
    Origin origin = Origin::silence;
};

}  // namespace trunkline::graph
