#pragma once

#include <cstdint>
#include <span>

#include "trunkline/codec/format.hpp"

namespace trunkline::codec {

/// Units of the format's RTP clock that a payload lasts, without decoding it; 0 for one that is malformed.
std::uint32_t payload_units(const Format& format, std::span<const std::uint8_t> payload);

/// The same for so many milliseconds.
constexpr std::uint32_t units_of_ms(const Format& format, std::uint32_t ms) {
    return format.clock_hz / 1000 * ms;
}

}  // namespace trunkline::codec
