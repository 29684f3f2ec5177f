#include "trunkline/signalling/derived.hpp"

#include <array>

#include "trunkline/wire/names.hpp"

namespace trunkline::signalling {

namespace {

using wire::Field;

/// The lines of a message that we wrote, one after the other.
class Lines {
  public:
    explicit Lines(std::string_view message) : left_(message) {}

    /// The next line; empty at the end of the head.
    std::string_view next() {
        const auto end = left_.find("\r\n");
        const auto line = left_.substr(0, end);
        left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 2);
        return line;
    }

  private:
    std::string_view left_;
};

std::string_view name_of(std::string_view line) {
    return line.substr(0, line.find(':'));
}

std::string_view value_of(std::string_view line) {
    const auto colon = line.find(':');
    return colon == std::string_view::npos ? std::string_view{} : wire::trimmed(line.substr(colon + 1));
}

/// Request-URI, or what stands between the first and the last space of a request line.
std::string_view uri_of(std::string_view start) {
    const auto first = start.find(' ');
    const auto last = start.rfind(' ');
    if (first == last) return {};
    return start.substr(first + 1, last - first - 1);
}

/// A request of the INVITE's transaction or for it; without `to` it has the To of the INVITE.
std::string derive(std::string_view invite, std::string_view method, std::string_view to,
                   std::string_view reason) {
    Lines lines(invite);
    std::string made;
    made.reserve(512);
    made.append(method).append(" ").append(uri_of(lines.next())).append(" SIP/2.0\r\n");
    std::string_view cseq;
    bool has_via = false;
    for (auto line = lines.next(); !line.empty(); line = lines.next()) {
        switch (wire::field_of(name_of(line))) {
            case Field::via:
                if (has_via) break;
                has_via = true;
                [[fallthrough]];
            case Field::route:
            case Field::from:
            case Field::call_id:
            case Field::session_id:
                made.append(line).append("\r\n");
                break;
            case Field::to:
                if (to.empty()) to = value_of(line);
                break;
            case Field::cseq:
                cseq = value_of(line);
                break;
            default:
                break;
        }
    }
    made.append("To: ").append(to).append("\r\nCSeq: ").append(cseq.substr(0, cseq.find(' ')));
    made.append(" ").append(method).append("\r\nMax-Forwards: 70\r\n");
    if (!reason.empty()) made.append("Reason: ").append(reason).append("\r\n");
    made += "Content-Length: 0\r\n\r\n";
    return made;
}

/// The name under which a response repeats a field; empty when it does not.
std::string_view repeated_name(Field field) {
    switch (field) {
        case Field::via:
            return "Via";
        case Field::from:
            return "From";
        case Field::to:
            return "To";
        case Field::call_id:
            return "Call-ID";
        case Field::cseq:
            return "CSeq";
        case Field::timestamp:
            return "Timestamp";
        default:
            return {};
    }
}

}  // namespace

std::string make_ack(std::string_view invite, std::string_view to) {
    return derive(invite, "ACK", to, {});
}

std::string make_cancel(std::string_view invite, std::string_view reason) {
    return derive(invite, "CANCEL", {}, reason);
}

std::string make_trying(const wire::Message& invite, std::string_view via) {
    std::string made = "SIP/2.0 100 Trying\r\n";
    made.reserve(512);
    for (const wire::Line& line : invite.head.lines) {
        const auto name = repeated_name(wire::field_of(line.name));
        if (name.empty()) continue;
        const bool is_top = line.value.data() == invite.via_text.data() && !line.value.empty();
        made.append(name).append(": ").append(is_top ? via : line.value).append("\r\n");
    }
    made += "Content-Length: 0\r\n\r\n";
    return made;
}

}  // namespace trunkline::signalling
