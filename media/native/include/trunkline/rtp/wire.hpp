#pragma once

#include <cstdint>

namespace trunkline::rtp {

/// Version of RTP and RTCP, in the first two bits of every packet (RFC 3550 5.1, 6.4.1).
inline constexpr std::uint8_t rtp_version = 2;

// Fields in network byte order; the caller has checked that they are there.

inline std::uint16_t read_u16(const std::uint8_t* at) {
    return static_cast<std::uint16_t>(at[0] << 8 | at[1]);
}

inline std::uint32_t read_u32(const std::uint8_t* at) {
    return static_cast<std::uint32_t>(read_u16(at)) << 16 | read_u16(at + 2);
}

inline std::uint64_t read_u64(const std::uint8_t* at) {
    return static_cast<std::uint64_t>(read_u32(at)) << 32 | read_u32(at + 4);
}

inline void write_u16(std::uint8_t* at, std::uint16_t value) {
    at[0] = static_cast<std::uint8_t>(value >> 8);
    at[1] = static_cast<std::uint8_t>(value);
}

inline void write_u32(std::uint8_t* at, std::uint32_t value) {
    write_u16(at, static_cast<std::uint16_t>(value >> 16));
    write_u16(at + 2, static_cast<std::uint16_t>(value));
}

inline void write_u64(std::uint8_t* at, std::uint64_t value) {
    write_u32(at, static_cast<std::uint32_t>(value >> 32));
    write_u32(at + 4, static_cast<std::uint32_t>(value));
}

}  // namespace trunkline::rtp
