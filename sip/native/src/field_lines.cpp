#include "trunkline/signalling/field_lines.hpp"

#include <algorithm>

namespace trunkline::signalling {

std::optional<std::string_view> field_value(std::string_view lines, std::string_view name) {
    if (lines.size() < name.size()) return std::nullopt;
    const auto same = [](char expected, char letter) { return lower(letter) == expected; };
    if (!std::equal(name.begin(), name.end(), lines.begin(), same)) return std::nullopt;
    const std::size_t colon = lines.find_first_not_of(" \t", name.size());
    if (colon == std::string_view::npos || lines[colon] != ':') return std::nullopt;
    lines.remove_prefix(colon + 1);
    return lines.substr(0, lines.find_first_of("\r\n"));
}

}  // namespace trunkline::signalling
