#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trunkline::text {

/// Characters that `size` bytes take, padding included (RFC 4648 4).
constexpr std::size_t base64_size(std::size_t size) {
    return (size + 2) / 3 * 4;
}

/// Bytes that strict text holds.
constexpr std::size_t base64_bytes(std::span<const std::uint8_t> text) {
    const std::size_t size = text.size() / 4 * 3;
    if (size == 0 || text.back() != '=') return size;
    return size - (text[text.size() - 2] == '=' ? 2 : 1);
}

/// Encode `bytes` to `base64_size(bytes.size())` characters at `out`.
void to_base64(std::span<const std::uint8_t> bytes, char* out);

/// Decode text to at most `text.size() / 4 * 3` bytes at `out`; returns how many. Strict: nothing for text
/// with a character outside the alphabet, a length that is no multiple of four, misplaced padding, or bits
/// that padding leaves over and that are not zero (RFC 4648 3.3, 3.5).
std::optional<std::size_t> from_base64(std::span<const char> text, std::uint8_t* out);

}  // namespace trunkline::text
