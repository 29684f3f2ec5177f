#pragma once

#include <array>
#include <cstdint>
#include <cstring>

/// Character classes (RFC 3261 25.1, as far as peers keep to it); ASCII only.
namespace trunkline::wire {

enum class Class : std::uint8_t {
    token = 1,
    /// Of a host name; underscores are common in the names of private exchanges.
    host = 2,
    /// Of a parameter's value, when it is not quoted.
    value = 4,
    /// Of the user part of a URI, when it has no escapes.
    user = 8,
    capital = 16,
    /// Characters of any line: printable, or a tab.
    text = 32,
};

constexpr std::array<std::uint8_t, 256> character_classes() {
    std::array<std::uint8_t, 256> table{};
    const auto add = [&table](const char* characters, Class kind) {
        for (; *characters != '\0'; ++characters) {
            table[static_cast<unsigned char>(*characters)] |= static_cast<std::uint8_t>(kind);
        }
    };
    constexpr const char* alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (const Class kind : {Class::token, Class::host, Class::user})
        add(alphanumeric, kind);
    add("-.!%*_+`'~", Class::token);
    add("._-", Class::host);
    add("_.!~*'()&=+$,;?/-", Class::user);
    add("ABCDEFGHIJKLMNOPQRSTUVWXYZ", Class::capital);
    for (unsigned character = 0x20; character < 0x7f; ++character) {
        table[character] |= static_cast<std::uint8_t>(Class::text);
        const bool separates = character == ' ' || character == ';' || character == ',' || character == '"' ||
                               character == '<' || character == '>';
        if (!separates) table[character] |= static_cast<std::uint8_t>(Class::value);
    }
    table['\t'] |= static_cast<std::uint8_t>(Class::text);
    return table;
}

inline constexpr auto classes = character_classes();

constexpr bool is(char character, Class kind) {
    return (classes[static_cast<unsigned char>(character)] & static_cast<std::uint8_t>(kind)) != 0;
}

/// True if the eight bytes from `bytes` on are printable ASCII.
inline bool are_printable(const char* bytes) {
    constexpr std::uint64_t each = 0x0101010101010101;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    // The highest bit of a byte is set by itself, or once 0x20 is taken from less, or once 1 is added to
    // 0x7f.
    return ((word | (word - 0x20 * each) | (word + each)) & (0x80 * each)) == 0;
}

constexpr char to_lower(char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character + ('a' - 'A')) : character;
}

}  // namespace trunkline::wire
