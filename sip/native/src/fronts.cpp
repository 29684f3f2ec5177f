#include "trunkline/signalling/fronts.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <stdexcept>

#include "trunkline/signalling/endpoint.hpp"
#include "trunkline/signalling/field_lines.hpp"

namespace trunkline::signalling {

namespace {

constexpr std::string_view field_name = "x-trunkline-source";
constexpr std::size_t most_value_bytes = 512;

template <class Number>
std::optional<Number> read_number(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::string_view without_spaces(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

Fronts::Fronts(const std::vector<std::string>& networks) {
    for (const std::string& text : networks) {
        const auto slash = text.find('/');
        const auto first = endpoint_of(text.substr(0, slash), 0);
        if (!first) throw std::invalid_argument("no network: " + text);
        const std::size_t most = address_bytes(*first).size() * 8;
        const auto bits = slash == std::string::npos
                              ? most
                              : read_number<std::size_t>(std::string_view(text).substr(slash + 1));
        if (!bits || *bits > most) throw std::invalid_argument("no network: " + text);
        networks_.push_back({*first, *bits});
    }
}

bool Fronts::Network::contains(const Endpoint& remote) const {
    if (remote.size != first.size) return false;
    const std::string_view left = address_bytes(first), right = address_bytes(remote);
    const std::size_t whole = bits / 8;
    if (left.substr(0, whole) != right.substr(0, whole)) return false;
    if (bits % 8 == 0) return true;
    const auto differ = static_cast<std::uint8_t>(left[whole] ^ right[whole]);
    return differ >> (8 - bits % 8) == 0;
}

bool Fronts::contain(const Endpoint& remote) const {
    return std::any_of(networks_.begin(), networks_.end(),
                       [&remote](const Network& network) { return network.contains(remote); });
}

Endpoint Fronts::origin_of(std::string_view data, const Endpoint& remote) const {
    if (networks_.empty() || !contain(remote)) return remote;
    std::optional<std::string_view> named;
    for (auto end = data.find('\n'); end != std::string_view::npos; end = data.find('\n', end + 1)) {
        const std::string_view lines = data.substr(end + 1);
        if (lines.starts_with("\r\n") || lines.starts_with('\n')) break;
        const auto value = field_value(lines, field_name);
        if (!value) continue;
        if (named) return {};
        named = value;
    }
    return named ? read_origin(*named).value_or(Endpoint{}) : remote;
}

std::optional<Endpoint> read_origin(std::string_view value) {
    if (value.size() > most_value_bytes) return std::nullopt;
    value = without_spaces(value.substr(0, value.find(';')));
    const auto before_host = value.find(':'), before_port = value.rfind(':');
    if (before_host == before_port) return std::nullopt;
    std::string_view host = value.substr(before_host + 1, before_port - before_host - 1);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const auto port = read_number<std::uint16_t>(value.substr(before_port + 1));
    return port ? endpoint_of(std::string(host), *port) : std::nullopt;
}

}  // namespace trunkline::signalling
