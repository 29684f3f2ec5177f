#pragma once

#include <cstdint>
#include <span>

namespace trunkline::graph {

/// Origin of audio.
enum class Origin : std::uint8_t {
    received,   ///< Decoded from a packet.
    recovered,  ///< From what a later packet carried of a lost one (in-band FEC).
    concealed,  ///< Made up to hide a loss.
    noise,      ///< Comfort noise: the sender said that it is silent.
    silence,    ///< Nothing came, and nothing says what it would have been.
};

/// True for audio of the far end; false for concealment and silence.
constexpr bool is_heard(Origin origin) {
    return origin == Origin::received || origin == Origin::recovered;
}

/// True for a pause: samples may be left out or inserted inaudibly.
constexpr bool is_quiet(Origin origin) {
    return origin == Origin::noise || origin == Origin::silence;
}

/// A run of linear samples of one origin, up to 60 ms of it.
struct AudioChunk {
    std::span<const std::int16_t> samples;
    Origin origin = Origin::silence;
};

}  // namespace trunkline::graph
