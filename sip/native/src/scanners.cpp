#include "trunkline/signalling/scanners.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "trunkline/signalling/field_lines.hpp"

namespace trunkline::signalling {

namespace {

constexpr std::size_t scanned_bytes = 2048;
constexpr std::size_t value_bytes = 200;

/// A name in lower case, and whether it must begin or end at the border of a word.
struct Name {
    std::string_view text;
    bool begins_word = false;
    bool ends_word = false;
};

constexpr Name names[] = {
    {"friendly-scanner"}, {"friendly-request"},
    {"sipvicious"},       {"sip-vicious"},
    {"sundayddr"},        {"sipscan"},
    {"sip-scan"},         {"sipcli"},
    {"pplsip"},           {"sipsak"},
    {"sipptk"},           {"iwar", false, true},
    {"vaxsipuseragent"},  {"vaxipuseragent"},
    {"svmap", true},      {"svwar", true},
    {"svcrack", true},    {"svreport", true},
    {"smap", true, true}, {"gulp", true, true},
    {"masscan"},          {"zgrab"},
    {"nmap", true, true},
};

bool is_word(char letter) {
    const char small = lower(letter);
    return (small >= 'a' && small <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
}

bool holds(std::string_view value, const Name& name) {
    for (auto at = value.find(name.text); at != std::string_view::npos; at = value.find(name.text, at + 1)) {
        const std::size_t end = at + name.text.size();
        const bool begins = at == 0 || !is_word(value[at - 1]);
        const bool ends = end == value.size() || !is_word(value[end]);
        if ((begins || !name.begins_word) && (ends || !name.ends_word)) return true;
    }
    return false;
}

}  // namespace

bool names_scanner(std::string_view message) {
    message = message.substr(0, scanned_bytes);
    for (auto end = message.find('\n'); end != std::string_view::npos; end = message.find('\n', end + 1)) {
        const std::string_view line = message.substr(end + 1);
        auto value = field_value(line, "user-agent");
        if (!value) value = field_value(line, "server");
        if (!value) continue;
        value = value->substr(0, value_bytes);
        std::array<char, value_bytes> small{};
        std::transform(value->begin(), value->end(), small.begin(), lower);
        const std::string_view agent{small.data(), value->size()};
        return std::any_of(std::begin(names), std::end(names),
                           [agent](const Name& name) { return holds(agent, name); });
    }
    return false;
}

}  // namespace trunkline::signalling
