#include "trunkline/wire/head.hpp"

#include <algorithm>
#include <cstring>

#include "trunkline/wire/characters.hpp"
#include "trunkline/wire/fields.hpp"

namespace trunkline::wire {

namespace {

constexpr std::string_view version = "SIP/2.0";

bool is_text(std::string_view line) {
    while (line.size() >= 8 && are_printable(line.data()))
        line.remove_prefix(8);
    return std::all_of(line.begin(), line.end(), [](char character) { return is(character, Class::text); });
}

bool read_status_line(std::string_view line, Head& head) {
    if (!line.starts_with("SIP/2.0 ")) return false;
    line.remove_prefix(version.size() + 1);
    const auto status = read_number(line.substr(0, 3), 3, 699);
    if (!status || *status < 100 || (line.size() > 3 && line[3] != ' ')) return false;
    head.is_request = false;
    head.status = static_cast<std::uint16_t>(*status);
    head.reason = line.size() > 3 ? trimmed(line.substr(3)) : std::string_view{};
    return true;
}

bool read_request_line(std::string_view line, Head& head) {
    const auto first = line.find(' ');
    const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
    if (second == std::string_view::npos || line.substr(second + 1) != version) return false;
    head.is_request = true;
    head.method = line.substr(0, first);
    head.uri = line.substr(first + 1, second - first - 1);
    return is_token(head.method) && !head.uri.empty();
}

bool read_header_line(std::string_view line, Head& head) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    const Line read{line.substr(0, colon), trimmed(line.substr(colon + 1))};
    if (!is_token(read.name)) return false;  // A folded line begins with white space, and ends here.
    head.lines.push_back(read);
    return true;
}

}  // namespace

bool read_head(std::string_view data, const Limits& limits, Head& head) {
    head.lines.clear();
    if (data.size() > limits.message_bytes) return false;
    const std::size_t line_limit = std::min(limits.line_chars, limits.value_chars);
    for (bool start = true;; start = false) {
        const auto end = data.find('\r');
        if (end == std::string_view::npos || end + 1 >= data.size() || data[end + 1] != '\n') return false;
        const auto line = data.substr(0, end);
        data.remove_prefix(end + 2);
        if (line.empty()) {
            head.rest = data;
            return !start;
        }
        if (line.size() > line_limit || !is_text(line)) return false;
        if (start) {
            if (!read_status_line(line, head) && !read_request_line(line, head)) return false;
        } else if (head.lines.size() == limits.header_count || !read_header_line(line, head)) {
            return false;
        }
    }
}

}  // namespace trunkline::wire
