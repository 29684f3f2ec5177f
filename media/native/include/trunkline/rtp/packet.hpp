#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trunkline::rtp {

/// Bytes of an RTP header without contributing sources and extension.
inline constexpr std::size_t header_bytes = 12;

/// The fields of an RTP header that mean something to an end point (RFC 3550 5.1).
struct Header {
    std::uint8_t payload_type = 0;
    bool marker = false;
    std::uint16_t sequence = 0;
    std::uint32_t timestamp = 0;
    std::uint32_t ssrc = 0;
};

/// A parsed packet; the payload points into the datagram, without padding.
struct PacketView {
    Header header;
    std::span<std::uint8_t> payload;
};

/// Parse a datagram; nothing when it is not RTP version 2 or its lengths do not add up (RFC 3550 A.1).
std::optional<PacketView> parse(std::span<std::uint8_t> datagram);

/// True if a datagram on an RTP port is RTCP, by the payload types RFC 5761 4 keeps free.
bool is_rtcp(std::span<const std::uint8_t> datagram);

/// Write a plain header of `header_bytes` bytes.
void write_header(std::uint8_t* at, const Header& header);

}  // namespace trunkline::rtp
