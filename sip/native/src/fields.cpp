#include "trunkline/wire/fields.hpp"

#include "trunkline/wire/characters.hpp"

namespace trunkline::wire {

namespace {

constexpr std::size_t max_host = 255;
constexpr std::uint32_t max_port = 65535;
constexpr std::uint32_t max_cseq = 0x7fffffff;  // RFC 3261 8.1.1.5

bool all_are(std::string_view text, Class wanted) {
    for (const char character : text) {
        if (!is(character, wanted)) return false;
    }
    return true;
}

bool is_host_name(std::string_view text) {
    return !text.empty() && text.size() <= max_host && all_are(text, Class::host);
}

/// `host` or `host:port`.
template <class Target>
bool read_host_port(std::string_view text, Target& target) {
    const auto colon = text.find(':');
    target.host = text.substr(0, colon);
    if (!is_host_name(target.host)) return false;
    if (colon == std::string_view::npos) return true;
    const auto port = read_number(text.substr(colon + 1), 5, max_port);
    if (!port || *port == 0) return false;
    target.port = static_cast<std::uint16_t>(*port);
    return true;
}

bool read_params(std::string_view text, Params& params) {
    while (!text.empty()) {
        if (text.front() != ';' || params.count == max_params) return false;
        text.remove_prefix(1);
        const auto part = text.substr(0, text.find(';'));
        text.remove_prefix(part.size());
        const auto equals = part.find('=');
        Param param{part.substr(0, equals), {}, equals != std::string_view::npos};
        if (param.has_value) param.value = part.substr(equals + 1);
        if (!is_token(param.name) || !all_are(param.value, Class::value)) return false;
        params.items[params.count++] = param;
    }
    return true;
}

/// The tag is there once at most, and is never empty.
bool tag_is_sound(const Params& params) {
    bool seen = false;
    for (const Param& param : params) {
        if (!equals_lower(param.name, "tag")) continue;
        if (seen || param.value.empty()) return false;
        seen = true;
    }
    return true;
}

bool take_via_param(const Param& param, Via& via) {
    if (equals_lower(param.name, "branch")) {
        if (via.branch || param.value.empty()) return false;
        via.branch = param.value;
    } else if (equals_lower(param.name, "received")) {
        if (via.received || !is_host_name(param.value)) return false;
        via.received = param.value;
    } else if (equals_lower(param.name, "rport")) {
        if (via.rport) return false;
        via.rport = 0;
        if (param.value.empty()) return true;
        const auto port = read_number(param.value, 5, max_port);
        if (!port || *port == 0) return false;
        via.rport = static_cast<std::uint16_t>(*port);
    } else {
        via.params.items[via.params.count++] = param;
    }
    return true;
}

}  // namespace

bool is_token(std::string_view text) {
    return !text.empty() && all_are(text, Class::token);
}

bool equals_lower(std::string_view text, std::string_view lower) {
    if (text.size() != lower.size()) return false;
    for (std::size_t place = 0; place < text.size(); ++place) {
        if (to_lower(text[place]) != lower[place]) return false;
    }
    return true;
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::uint32_t> read_number(std::string_view text, std::size_t max_digits, std::uint32_t max) {
    if (text.empty() || text.size() > max_digits) return std::nullopt;
    std::uint64_t number = 0;
    for (const char character : text) {
        if (character < '0' || character > '9') return std::nullopt;
        number = number * 10 + static_cast<std::uint64_t>(character - '0');
        if (number > max) return std::nullopt;
    }
    return static_cast<std::uint32_t>(number);
}

std::optional<Uri> read_uri(std::string_view text) {
    Uri uri;
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    uri.scheme = text.substr(0, colon);
    if (uri.scheme != "sip" && uri.scheme != "sips") return std::nullopt;
    auto rest = text.substr(colon + 1);
    if (const auto at = rest.find('@'); at != std::string_view::npos) {
        const auto user = rest.substr(0, at);
        if (user.empty() || !all_are(user, Class::user)) return std::nullopt;
        uri.user = user;
        rest.remove_prefix(at + 1);
    }
    // What follows the host may not hold '?' or '@', so that nobody can take another part of it for the host.
    if (rest.find_first_of("?@") != std::string_view::npos) return std::nullopt;
    const auto semicolon = rest.find(';');
    if (!read_host_port(rest.substr(0, semicolon), uri)) return std::nullopt;
    if (semicolon != std::string_view::npos && !read_params(rest.substr(semicolon), uri.params)) {
        return std::nullopt;
    }
    return uri;
}

std::optional<Address> read_address(std::string_view text) {
    Address address;
    auto start = text.find('<');
    if (start == std::string_view::npos) return std::nullopt;
    if (text.front() == '"') {
        const auto quote = text.find('"', 1);
        if (quote == std::string_view::npos) return std::nullopt;
        address.display_name = text.substr(1, quote - 1);
        start = text.find_first_not_of(" \t", quote + 1);
        if (start == std::string_view::npos || text[start] != '<') return std::nullopt;
    } else {
        address.display_name = trimmed(text.substr(0, start));
    }
    if (address.display_name.find_first_of("\"\\>\t") != std::string_view::npos) return std::nullopt;
    const auto end = text.find('>', start);
    if (end == std::string_view::npos) return std::nullopt;
    const auto uri = read_uri(trimmed(text.substr(start + 1, end - start - 1)));
    if (!uri || !read_params(trimmed(text.substr(end + 1)), address.params)) return std::nullopt;
    if (!tag_is_sound(address.params)) return std::nullopt;
    address.uri = *uri;
    return address;
}

std::optional<Via> read_via(std::string_view text) {
    constexpr std::string_view protocol = "SIP/2.0/";
    Via via;
    if (!text.starts_with(protocol)) return std::nullopt;
    text.remove_prefix(protocol.size());
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    via.transport = text.substr(0, space);
    if (via.transport.empty() || !all_are(via.transport, Class::capital)) return std::nullopt;
    text.remove_prefix(space + 1);
    const auto semicolon = text.find(';');
    if (!read_host_port(text.substr(0, semicolon), via)) return std::nullopt;
    if (semicolon == std::string_view::npos) return via;
    Params params;
    if (!read_params(text.substr(semicolon), params)) return std::nullopt;
    for (const Param& param : params) {
        if (!take_via_param(param, via)) return std::nullopt;
    }
    return via;
}

std::optional<CSeq> read_cseq(std::string_view text) {
    const auto end = text.find_first_of(" \t");
    if (end == std::string_view::npos) return std::nullopt;
    const auto number = read_number(text.substr(0, end), 20, max_cseq);
    CSeq cseq{number.value_or(0), trimmed(text.substr(end))};
    if (!number || !is_token(cseq.method)) return std::nullopt;
    return cseq;
}

}  // namespace trunkline::wire
