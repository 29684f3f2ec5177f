#include "trunkline/text/base64.hpp"

#include <array>
#include <cstring>

namespace trunkline::text {

namespace {

constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t not_in_alphabet = 0x80;

constexpr std::array<std::array<char, 2>, 4096> make_pairs() {
    std::array<std::array<char, 2>, 4096> pairs{};
    for (std::size_t n = 0; n < pairs.size(); ++n) {
        pairs[n] = {alphabet[n >> 6], alphabet[n & 63]};
    }
    return pairs;
}

constexpr std::array<std::uint8_t, 256> make_values() {
    std::array<std::uint8_t, 256> values{};
    values.fill(not_in_alphabet);
    for (std::uint8_t n = 0; n < 64; ++n) {
        values[static_cast<std::uint8_t>(alphabet[n])] = n;
    }
    return values;
}

constexpr auto pairs = make_pairs();
constexpr auto values = make_values();

std::uint8_t value_of(char character) {
    return values[static_cast<std::uint8_t>(character)];
}

/// Decode the last group, which may be padded.
std::optional<std::size_t> decode_last(std::span<const char, 4> group, std::uint8_t* out) {
    const std::size_t padding = group[3] != '=' ? 0 : group[2] != '=' ? 1 : 2;
    std::uint32_t bits = 0;
    for (std::size_t n = 0; n < 4; ++n) {
        const std::uint8_t value = n < 4 - padding ? value_of(group[n]) : std::uint8_t{0};
        if (value == not_in_alphabet) return std::nullopt;
        bits = bits << 6 | value;
    }
    const std::size_t size = 3 - padding;
    if ((bits & ((1U << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (std::size_t n = 0; n < size; ++n) {
        out[n] = static_cast<std::uint8_t>(bits >> (16 - 8 * n));
    }
    return size;
}

}  // namespace

void to_base64(std::span<const std::uint8_t> bytes, char* out) {
    std::size_t at = 0;
    for (; at + 3 <= bytes.size(); at += 3, out += 4) {
        const std::uint32_t bits = bytes[at] << 16 | bytes[at + 1] << 8 | bytes[at + 2];
        std::memcpy(out, pairs[bits >> 12].data(), 2);
        std::memcpy(out + 2, pairs[bits & 4095].data(), 2);
    }
    const std::size_t left = bytes.size() - at;
    if (left == 0) return;
    const std::uint32_t bits = bytes[at] << 16 | (left == 2 ? bytes[at + 1] << 8 : 0);
    std::memcpy(out, pairs[bits >> 12].data(), 2);
    out[2] = left == 2 ? alphabet[bits >> 6 & 63] : '=';
    out[3] = '=';
}

std::optional<std::size_t> from_base64(std::span<const char> text, std::uint8_t* out) {
    if (text.size() % 4 != 0) return std::nullopt;
    if (text.empty()) return 0;
    const std::size_t whole = text.size() - 4;
    const std::uint8_t* start = out;
    std::uint8_t seen = 0;
    for (std::size_t at = 0; at < whole; at += 4, out += 3) {
        const std::uint8_t a = value_of(text[at]), b = value_of(text[at + 1]);
        const std::uint8_t c = value_of(text[at + 2]), d = value_of(text[at + 3]);
        seen |= a | b | c | d;
        out[0] = static_cast<std::uint8_t>(a << 2 | b >> 4);
        out[1] = static_cast<std::uint8_t>(b << 4 | c >> 2);
        out[2] = static_cast<std::uint8_t>(c << 6 | d);
    }
    if ((seen & not_in_alphabet) != 0) return std::nullopt;
    const auto last = decode_last(text.subspan(whole).first<4>(), out);
    if (!last) return std::nullopt;
    return static_cast<std::size_t>(out - start) + *last;
}

}  // namespace trunkline::text
