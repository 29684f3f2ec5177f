#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trunkline/websocket/frame.hpp"

namespace trunkline::tests {

/// A frame as a server sends it, unmasked; the first byte has its flags and its opcode.
inline std::vector<std::uint8_t> server_frame(std::uint8_t first, std::string_view payload) {
    std::vector<std::uint8_t> bytes{first};
    if (payload.size() < 126) {
        bytes.push_back(static_cast<std::uint8_t>(payload.size()));
    } else if (payload.size() <= 0xffff) {
        bytes.insert(bytes.end(), {126, static_cast<std::uint8_t>(payload.size() >> 8),
                                   static_cast<std::uint8_t>(payload.size())});
    } else {
        bytes.push_back(127);
        for (int shift = 56; shift >= 0; shift -= 8)
            bytes.push_back(static_cast<std::uint8_t>(std::uint64_t{payload.size()} >> shift));
    }
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

inline std::vector<std::uint8_t> server_text(std::string_view payload) {
    return server_frame(0x81, payload);
}

/// A frame that a client sent.
struct ClientFrame {
    websocket::Opcode opcode{};
    std::string payload;
    bool operator==(const ClientFrame&) const = default;
};

/// The complete frames of a client at the front of `bytes`, which they are taken from.
inline std::vector<ClientFrame> client_frames(std::vector<std::uint8_t>& bytes) {
    std::vector<ClientFrame> frames;
    for (;;) {
        const auto header = websocket::read_header(bytes);
        if (!header || bytes.size() < header->header_bytes + header->payload_bytes) return frames;
        std::uint32_t key = 0;
        std::memcpy(&key, bytes.data() + header->header_bytes - 4, 4);
        const auto payload = std::span(bytes).subspan(header->header_bytes, header->payload_bytes);
        if (header->masked) websocket::mask(payload, key);
        frames.push_back(
            {static_cast<websocket::Opcode>(header->opcode), std::string(payload.begin(), payload.end())});
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header->header_bytes +
                                                                               header->payload_bytes));
    }
}

}  // namespace trunkline::tests
