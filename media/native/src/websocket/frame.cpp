#include "trunkline/websocket/frame.hpp"

#include <cstring>

namespace trunkline::websocket {

namespace {

constexpr std::uint8_t final_bit = 0x80;
constexpr std::uint8_t mask_bit = 0x80;
constexpr std::uint8_t two_byte_length = 126;
constexpr std::uint8_t eight_byte_length = 127;

/// Value of `size` bytes in network order.
std::uint64_t read_number(const std::uint8_t* bytes, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t n = 0; n < size; ++n) {
        value = value << 8 | bytes[n];
    }
    return value;
}

void write_number(std::uint64_t value, std::size_t size, std::uint8_t* out) {
    for (std::size_t n = 0; n < size; ++n) {
        out[n] = static_cast<std::uint8_t>(value >> (8 * (size - 1 - n)));
    }
}

/// Bytes of the character that begins with `lead`, with the least and greatest second byte; 0 for none.
struct Sequence {
    std::size_t size;
    std::uint8_t least;
    std::uint8_t greatest;
};

Sequence sequence_of(std::uint8_t lead) {
    if (lead < 0x80) return {1, 0, 0};
    if (lead >= 0xc2 && lead <= 0xdf) return {2, 0x80, 0xbf};
    if (lead == 0xe0) return {3, 0xa0, 0xbf};
    if (lead == 0xed) return {3, 0x80, 0x9f};
    if (lead >= 0xe1 && lead <= 0xef) return {3, 0x80, 0xbf};
    if (lead == 0xf0) return {4, 0x90, 0xbf};
    if (lead >= 0xf1 && lead <= 0xf3) return {4, 0x80, 0xbf};
    if (lead == 0xf4) return {4, 0x80, 0x8f};
    return {0, 0, 0};
}

}  // namespace

std::optional<FrameHeader> read_header(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < 2) return std::nullopt;
    FrameHeader header;
    header.final = (bytes[0] & final_bit) != 0;
    header.reserved = bytes[0] >> 4 & 7;
    header.opcode = bytes[0] & 15;
    header.masked = (bytes[1] & mask_bit) != 0;
    const auto length = static_cast<std::uint8_t>(bytes[1] & 127);
    const std::size_t more = length == eight_byte_length ? 8 : length == two_byte_length ? 2 : 0;
    header.header_bytes = 2 + more + (header.masked ? 4 : 0);
    if (bytes.size() < header.header_bytes) return std::nullopt;
    header.payload_bytes = more == 0 ? length : read_number(bytes.data() + 2, more);
    return header;
}

std::size_t header_size(std::size_t payload_bytes) {
    return payload_bytes < two_byte_length ? 6 : payload_bytes <= 0xffff ? 8 : 14;
}

std::size_t write_header(Opcode opcode, std::size_t payload_bytes, std::uint32_t mask_key,
                         std::uint8_t* out) {
    const std::size_t size = header_size(payload_bytes);
    out[0] = final_bit | static_cast<std::uint8_t>(opcode);
    if (size == 6) {
        out[1] = static_cast<std::uint8_t>(mask_bit | payload_bytes);
    } else {
        out[1] = mask_bit | (size == 8 ? two_byte_length : eight_byte_length);
        write_number(payload_bytes, size - 6, out + 2);
    }
    std::memcpy(out + size - 4, &mask_key, 4);
    return size;
}

void mask(std::span<std::uint8_t> payload, std::uint32_t mask_key) {
    // The key as it lies in memory, so that the order of bytes in a word plays no part.
    const std::uint64_t pair = std::uint64_t{mask_key} << 32 | mask_key;
    std::size_t at = 0;
    for (; at + 8 <= payload.size(); at += 8) {
        std::uint64_t word;
        std::memcpy(&word, payload.data() + at, 8);
        word ^= pair;
        std::memcpy(payload.data() + at, &word, 8);
    }
    std::uint8_t key[8];
    std::memcpy(key, &pair, 8);
    for (std::size_t n = 0; at < payload.size(); ++n, ++at) {
        payload[at] ^= key[n];
    }
}

bool is_utf8(std::span<const std::uint8_t> text) {
    while (!text.empty()) {
        const Sequence sequence = sequence_of(text[0]);
        if (sequence.size == 0 || sequence.size > text.size()) return false;
        for (std::size_t n = 1; n < sequence.size; ++n) {
            const std::uint8_t least = n == 1 ? sequence.least : 0x80;
            const std::uint8_t greatest = n == 1 ? sequence.greatest : 0xbf;
            if (text[n] < least || text[n] > greatest) return false;
        }
        text = text.subspan(sequence.size);
    }
    return true;
}

bool is_close_code(std::uint16_t code) {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

}  // namespace trunkline::websocket
