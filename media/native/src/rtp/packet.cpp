#include "trunkline/rtp/packet.hpp"

#include "trunkline/rtp/wire.hpp"

namespace trunkline::rtp {

namespace {

/// Offset of the payload, past contributing sources and extension; empty when the datagram ends before.
std::optional<std::size_t> payload_offset(std::span<const std::uint8_t> datagram) {
    std::size_t offset = header_bytes + 4U * (datagram[0] & 0x0F);
    const bool extended = (datagram[0] & 0x10) != 0;
    if (extended) {
        if (datagram.size() < offset + 4) return std::nullopt;
        offset += 4 + 4U * read_u16(datagram.data() + offset + 2);
    }
    if (datagram.size() < offset) return std::nullopt;
    return offset;
}

}  // namespace

std::optional<PacketView> parse(std::span<std::uint8_t> datagram) {
    if (datagram.size() < header_bytes || datagram[0] >> 6 != rtp_version) return std::nullopt;
    const auto offset = payload_offset(datagram);
    if (!offset) return std::nullopt;
    std::size_t end = datagram.size();
    const bool padded = (datagram[0] & 0x20) != 0;
    if (padded) {
        const std::size_t padding_bytes = datagram[end - 1];
        if (padding_bytes == 0 || padding_bytes > end - *offset) return std::nullopt;
        end -= padding_bytes;
    }
    PacketView packet;
    packet.header.marker = (datagram[1] & 0x80) != 0;
    packet.header.payload_type = datagram[1] & 0x7F;
    packet.header.sequence = read_u16(datagram.data() + 2);
    packet.header.timestamp = read_u32(datagram.data() + 4);
    packet.header.ssrc = read_u32(datagram.data() + 8);
    packet.payload = datagram.subspan(*offset, end - *offset);
    return packet;
}

bool is_rtcp(std::span<const std::uint8_t> datagram) {
    return datagram.size() >= 8 && datagram[0] >> 6 == rtp_version && datagram[1] >= 192 &&
           datagram[1] <= 223;
}

void write_header(std::uint8_t* at, const Header& header) {
    at[0] = rtp_version << 6;
    at[1] = static_cast<std::uint8_t>((header.marker ? 0x80 : 0) | header.payload_type);
    write_u16(at + 2, header.sequence);
    write_u32(at + 4, header.timestamp);
    write_u32(at + 8, header.ssrc);
}

}  // namespace trunkline::rtp
