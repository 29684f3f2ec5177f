#pragma once

#include <cstdint>
#include <span>

namespace trunkline::dsp {

/// The two laws of G.711.
enum class Law : std::uint8_t { mu, a };

/// The code of silence.
constexpr std::uint8_t silence(Law law) {
    return law == Law::mu ? 0xFF : 0xD5;
}

/// Decode `codes` to as many samples.
void decode(Law law, std::span<const std::uint8_t> codes, std::int16_t* samples);

/// Encode `samples` to as many codes.
void encode(Law law, std::span<const std::int16_t> samples, std::uint8_t* codes);

/// Turn codes of one law into those of the other, in place (G.711 tables 3 and 4 by way of linear values).
void convert(Law from, Law to, std::span<std::uint8_t> codes);

}  // namespace trunkline::dsp
