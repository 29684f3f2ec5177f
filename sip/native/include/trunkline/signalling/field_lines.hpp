#pragma once

#include <optional>
#include <string_view>

/// Fields of a message that nobody has parsed yet.
namespace trunkline::signalling {

/// Lower-case form of an ASCII letter; any other character as it is.
constexpr char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

/// What follows `name`, in lower case, and a colon at the beginning of `lines`, up to the end of that line;
/// nothing for another field.
std::optional<std::string_view> field_value(std::string_view lines, std::string_view name);

}  // namespace trunkline::signalling
