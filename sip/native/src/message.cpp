#include "trunkline/wire/message.hpp"

#include "trunkline/wire/characters.hpp"
#include "trunkline/wire/names.hpp"

namespace trunkline::wire {

namespace {

constexpr std::uint32_t max_max_forwards = 255;  // RFC 3261 20.22
constexpr std::uint32_t max_body = 0x7fffffff;

bool is_call_id(std::string_view text) {
    return !text.empty() && text.find_first_of(" \t") == std::string_view::npos;
}

/// The values of the mandatory fields, and of those that say how to read the message.
struct Values {
    std::string_view cseq, max_forwards, content_length;
    bool has_max_forwards = false, has_length = false;
    std::uint32_t seen = 0;
};

bool take_line(const Line& line, Message& message, Values& values) {
    const Field field = field_of(line.name);
    if (stands_once(field)) {
        const auto bit = std::uint32_t{1} << static_cast<unsigned>(field);
        if ((values.seen & bit) != 0) return false;
        values.seen |= bit;
    }
    switch (field) {
        case Field::via:
            // The first Via says where answers go: an empty one must not make the next one the first, and
            // of a list each element counts.
            if (line.value.empty() || line.value.find(',') != std::string_view::npos) return false;
            if (message.via_count++ == 0) message.via_text = line.value;
            return true;
        case Field::from:
            message.from_text = line.value;
            return true;
        case Field::to:
            message.to_text = line.value;
            return true;
        case Field::call_id:
            message.call_id = line.value;
            return true;
        case Field::cseq:
            values.cseq = line.value;
            return true;
        case Field::max_forwards:
            values.has_max_forwards = true;
            values.max_forwards = line.value;
            return true;
        case Field::content_length:
            values.has_length = true;
            values.content_length = line.value;
            return true;
        default:
            return true;
    }
}

bool read_values(const Values& values, Message& message) {
    if (message.from_text.empty() || message.to_text.empty() || !is_call_id(message.call_id)) return false;
    const auto cseq = read_cseq(values.cseq);
    if (!cseq || (message.head.is_request && cseq->method != message.head.method)) return false;
    message.cseq = *cseq;
    const auto via = read_via(message.via_text);
    if (!via) return false;
    message.via = *via;
    message.max_forwards.reset();
    if (message.head.is_request && values.has_max_forwards) {
        message.max_forwards = read_number(values.max_forwards, 10, max_max_forwards);
        if (!message.max_forwards) return false;
    }
    message.body = message.head.rest;
    if (values.has_length) {
        const auto declared = read_number(values.content_length, 10, max_body);
        if (!declared || *declared > message.body.size()) return false;
        message.body = message.body.substr(0, *declared);
    }
    return true;
}

}  // namespace

bool read_message(std::string_view data, const Limits& limits, Message& message) {
    if (!read_head(data, limits, message.head)) return false;
    message.via_count = 0;
    message.via_text = message.from_text = message.to_text = message.call_id = {};
    Values values;
    for (const Line& line : message.head.lines) {
        if (!take_line(line, message, values)) return false;
    }
    if (!read_values(values, message)) return false;
    message.from = read_address(message.from_text);
    message.to = read_address(message.to_text);
    message.uri.reset();
    if (message.head.is_request) message.uri = read_uri(message.head.uri);
    return true;
}

std::string_view tag_of(const Params& params) {
    for (const Param& param : params) {
        if (equals_lower(param.name, "tag")) return param.value;
    }
    return {};
}

std::optional<Stamp> stamp_via(std::string_view text, const Via& via, std::string_view host,
                               std::uint16_t port) {
    const bool asked = via.rport.has_value();
    const auto equals_host = [&via](std::string_view source) {
        if (source.size() != via.host.size()) return false;
        for (std::size_t place = 0; place < source.size(); ++place) {
            if (source[place] != to_lower(via.host[place])) return false;
        }
        return true;
    };
    Stamp stamp;
    const bool names_source = asked || !equals_host(host);
    if (!asked && (names_source ? via.received && *via.received == host : !via.received)) return std::nullopt;
    // The zone of a link-local address means nothing elsewhere.
    if (names_source) stamp.received = host.substr(0, host.find('%'));
    if (asked) stamp.rport = port;
    stamp.text.reserve(text.size() + stamp.received.size() + 16);
    for (bool first = true; !text.empty() || first; first = false) {
        const auto part = text.substr(0, text.find(';'));
        text.remove_prefix(part.size() < text.size() ? part.size() + 1 : text.size());
        const auto name = part.substr(0, part.find('='));
        if (!first && equals_lower(name, "received")) continue;
        if (!first) stamp.text += ';';
        if (!first && equals_lower(name, "rport")) {
            stamp.text.append(name).append("=").append(std::to_string(port));
        } else {
            stamp.text += part;
        }
    }
    if (names_source) stamp.text.append(";received=").append(stamp.received);
    return stamp;
}

}  // namespace trunkline::wire
