#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trunkline::websocket {

/// Type of a frame (RFC 6455 5.2).
enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

/// Codes of a close frame that this end decides on (RFC 6455 7.4.1).
inline constexpr std::uint16_t protocol_error = 1002;
inline constexpr std::uint16_t invalid_data = 1007;
inline constexpr std::uint16_t policy_violation = 1008;
inline constexpr std::uint16_t message_too_big = 1009;

inline constexpr std::size_t max_control_bytes = 125;
/// Longest header of a masked frame.
inline constexpr std::size_t max_header_bytes = 14;

/// Header of a received frame, as it stands there: nothing is checked.
struct FrameHeader {
    bool final = false;
    bool masked = false;
    std::uint8_t reserved = 0;
    std::uint8_t opcode = 0;
    std::size_t header_bytes = 0;
    std::uint64_t payload_bytes = 0;

    bool control() const { return opcode >= 8; }
};

/// Header at the front of `bytes`; nothing when it is not complete.
std::optional<FrameHeader> read_header(std::span<const std::uint8_t> bytes);

/// Size of the header of a masked frame with so long a payload.
std::size_t header_size(std::size_t payload_bytes);

/// Write the header of a final, masked frame. Returns its size.
std::size_t write_header(Opcode opcode, std::size_t payload_bytes, std::uint32_t mask_key, std::uint8_t* out);

/// Mask a payload in place (RFC 6455 5.3), with the key as `write_header` wrote it.
void mask(std::span<std::uint8_t> payload, std::uint32_t mask_key);

/// True for UTF-8 without overlong forms and surrogates (RFC 3629).
bool is_utf8(std::span<const std::uint8_t> text);

/// True for a code that a close frame may have (RFC 6455 7.4).
bool is_close_code(std::uint16_t code);

}  // namespace trunkline::websocket
