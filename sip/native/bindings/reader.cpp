#include "reader.hpp"

#include <cstring>

namespace trunkline::wire {

namespace {

std::string_view view_of(nb::handle text) {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) nb::raise_python_error();
    return {data, static_cast<std::size_t>(size)};
}

/// A tuple of text, of which the collector need know nothing.
template <class... Values>
nb::object text_tuple(const Values&... values) {
    nb::object made = nb::steal(PyTuple_Pack(sizeof...(values), values.ptr()...));
    if (!made.is_valid()) nb::raise_python_error();
    PyObject_GC_UnTrack(made.ptr());
    return made;
}

bool is_call_id(std::string_view text) {
    return !text.empty() && text.find_first_of(" \t") == std::string_view::npos;
}

}  // namespace

Reader::Reader(const nb::dict& classes, const nb::dict& names, const nb::object& single,
               const nb::object& split, const nb::dict& readers)
    : request_(classes["Request"], {"method", "uri", "headers", "body"}),
      response_(classes["Response"], {"status", "reason", "headers", "body"}),
      headers_(classes["Headers"], {"entries", "views", "via", "from_", "to", "call_id", "cseq"}),
      cseq_(classes["CSeq"], {"number", "method"}),
      via_(classes["Via"], {"transport", "host", "port", "branch", "received", "rport", "params"}),
      uri_(classes["SipUri"], {"scheme", "user", "password", "host", "port", "params", "headers"}),
      address_(classes["NameAddr"], {"display_name", "uri", "params", "tag"}),
      parse_uri_(readers["uri"]),
      parse_address_(readers["address"]),
      split_list_(readers["list"]),
      parse_error_(readers["error"]),
      empty_(nb::str("")),
      no_params_(nb::steal(PyTuple_New(0))),
      limits_object_(nb::none()) {
    const std::unordered_map<std::string_view, Name::Role> roles = {
        {"via", Name::Role::via},
        {"from", Name::Role::from},
        {"to", Name::Role::to},
        {"call-id", Name::Role::call_id},
        {"cseq", Name::Role::cseq},
        {"max-forwards", Name::Role::max_forwards},
        {"content-length", Name::Role::content_length},
    };
    std::unordered_map<std::string_view, std::uint64_t> bits;
    for (const auto& [spelling, known] : names) {
        Name name{known[0], known[1]};
        const std::string_view key = view_of(name.key);
        if (const auto role = roles.find(key); role != roles.end()) name.role = role->second;
        name.split = nb::cast<bool>(split.attr("__contains__")(name.key));
        if (nb::cast<bool>(single.attr("__contains__")(name.key))) {
            name.single = bits.try_emplace(key, std::uint64_t{1} << bits.size()).first->second;
        }
        names_.emplace(view_of(spelling), std::move(name));
    }
    if (bits.size() > 63) throw nb::value_error("more single fields than there are bits");
    for (const char* text :
         {"INVITE", "ACK",   "BYE",    "CANCEL",  "OPTIONS",   "REGISTER", "PRACK", "UPDATE",
          "INFO",   "REFER", "NOTIFY", "MESSAGE", "SUBSCRIBE", "UDP",      "TCP",   "TLS",
          "sip",    "sips",  "tag",    "lr",      "transport", "user",     "udp",   "tcp",
          "tls",    "phone", "OK",     "Trying",  "Ringing",   "alias",    "ob"}) {
        words_.emplace(text, nb::steal(PyUnicode_InternFromString(text)));
    }
}

nb::object Reader::read(const nb::bytes& data, const nb::object& limits) {
    if (!read_head({data.c_str(), data.size()}, limits_of(limits), head_)) return nb::none();
    try {
        return make_message();
    } catch (nb::python_error& error) {
        // It is read again, by who can tell what is wrong with it.
        if (!error.matches(parse_error_)) throw;
        return nb::none();
    }
}

Limits Reader::limits_of(const nb::object& limits) {
    if (!limits.is(limits_object_)) {
        limits_ = {nb::cast<std::size_t>(limits.attr("message_bytes")),
                   nb::cast<std::size_t>(limits.attr("header_count")),
                   nb::cast<std::size_t>(limits.attr("line_chars")),
                   nb::cast<std::size_t>(limits.attr("value_chars"))};
        limits_object_ = limits;
    }
    return limits_;
}

nb::object Reader::make_message() {
    nb::list entries;
    Views views;
    Seen seen;
    for (const Line& line : head_.lines) {
        if (!add_entry(line, entries, seen)) return nb::none();
    }
    if (!add_views(seen, views)) return nb::none();
    std::size_t size = head_.rest.size();
    if (seen.has_length) {
        const auto declared = read_number(seen.content_length, 10, 0x7fffffff);
        if (!declared || *declared > size) return nb::none();
        size = *declared;
    }
    nb::object body = nb::steal(PyBytes_FromStringAndSize(head_.rest.data(), static_cast<Py_ssize_t>(size)));
    if (!body.is_valid()) nb::raise_python_error();
    if (!head_.is_request) {
        nb::object headers = make_headers(std::move(entries), std::move(views));
        return response_.make(nb::object(nb::int_(head_.status)), word(head_.reason), std::move(headers),
                              std::move(body));
    }
    nb::object uri = view_of_uri(head_.uri);
    if (!uri.is_valid()) return nb::none();
    nb::object headers = make_headers(std::move(entries), std::move(views));
    return request_.make(word(head_.method), std::move(uri), std::move(headers), std::move(body));
}

nb::object Reader::make_headers(nb::list&& entries, Views&& views) {
    return headers_.make(std::move(entries), std::move(views.others), std::move(views.via),
                         std::move(views.from), std::move(views.to), std::move(views.call_id),
                         std::move(views.cseq));
}

const Reader::Name* Reader::name_of(std::string_view spelling) const {
    const auto known = names_.find(spelling);
    return known == names_.end() ? nullptr : &known->second;
}

bool Reader::add_entry(const Line& line, nb::list& entries, Seen& seen) {
    const Name* name = name_of(line.name);
    Name unknown;
    if (name == nullptr) {
        unknown.key = to_lower_str(line.name);
        name = name_of(view_of(unknown.key));
        if (name == nullptr) {
            unknown.written = to_str(line.name);
            name = &unknown;
        }
    }
    if (name->split && line.value.find(',') != std::string_view::npos) {
        if (name->role == Name::Role::via) return false;
        for (nb::handle element : split_list_(to_str(line.value))) {
            entries.append(text_tuple(name->key, name->written, element));
        }
        return true;
    }
    if (name->single != 0) {
        if ((seen.singles & name->single) != 0) return false;
        seen.singles |= name->single;
    }
    // The first Via says where answers go, so an empty one must not make the next one the first.
    if (name->role == Name::Role::via && line.value.empty()) return false;
    entries.append(text_tuple(name->key, name->written, to_str(line.value)));
    if (name->role != Name::Role::other) note(name->role, line.value, seen);
    return true;
}

void Reader::note(Name::Role role, std::string_view value, Seen& seen) const {
    switch (role) {
        case Name::Role::via:
            if (seen.via.data() == nullptr) seen.via = value;
            break;
        case Name::Role::from:
            seen.from = value;
            break;
        case Name::Role::to:
            seen.to = value;
            break;
        case Name::Role::call_id:
            seen.call_id = value;
            break;
        case Name::Role::cseq:
            seen.cseq = value;
            break;
        case Name::Role::max_forwards:
            seen.has_max_forwards = true;
            seen.max_forwards = value;
            break;
        case Name::Role::content_length:
            seen.has_length = true;
            seen.content_length = value;
            break;
        case Name::Role::other:
            break;
    }
}

bool Reader::add_views(const Seen& seen, Views& views) {
    if (seen.from.empty() || seen.to.empty() || !is_call_id(seen.call_id)) return false;
    const auto cseq = read_cseq(seen.cseq);
    if (!cseq || (head_.is_request && cseq->method != head_.method)) return false;
    views.via = view_of_via(seen.via);
    if (!views.via.is_valid()) return false;
    views.from = view_of_address(seen.from);
    views.to = view_of_address(seen.to);
    views.call_id = to_str(seen.call_id);
    views.cseq = cseq_.make(nb::object(nb::int_(cseq->number)), word(cseq->method));
    if (head_.is_request && seen.has_max_forwards) {
        const auto hops = read_number(seen.max_forwards, 10, 255);
        if (!hops) return false;
        views.others["max-forwards"] = *hops;
    }
    return true;
}

nb::object Reader::view_of_via(std::string_view text) {
    const auto via = read_via(text);
    if (!via) return {};
    nb::object rport = nb::none();
    if (via->rport) rport = *via->rport == 0 ? empty_ : nb::object(nb::int_(*via->rport));
    return via_.make(word(via->transport), to_lower_str(via->host),
                     via->port ? nb::object(nb::int_(*via->port)) : nb::none(),
                     via->branch ? to_str(*via->branch) : nb::none(),
                     via->received ? to_str(*via->received) : nb::none(), std::move(rport),
                     params_of(via->params));
}

nb::object Reader::view_of_address(std::string_view text) {
    const auto address = read_address(text);
    if (!address) return parse_address_(to_str(text));
    nb::object tag = nb::none();
    for (const Param& param : address->params) {
        if (equals_lower(param.name, "tag")) tag = to_str(param.value);
    }
    return address_.make(none_or_str(address->display_name), make_uri(address->uri),
                         params_of(address->params), std::move(tag));
}

nb::object Reader::view_of_uri(std::string_view text) {
    if (const auto uri = read_uri(text)) return make_uri(*uri);
    nb::object uri = parse_uri_(to_str(text));
    return uri.attr("headers").is_none() ? uri : nb::object();
}

nb::object Reader::make_uri(const Uri& uri) {
    return uri_.make(word(uri.scheme), uri.user ? to_str(*uri.user) : nb::none(), nb::none(),
                     to_lower_str(uri.host), uri.port ? nb::object(nb::int_(*uri.port)) : nb::none(),
                     params_of(uri.params), nb::none());
}

nb::object Reader::params_of(const Params& params) {
    if (params.count == 0) return no_params_;
    nb::object made = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(params.count)));
    if (!made.is_valid()) nb::raise_python_error();
    Py_ssize_t place = 0;
    for (const Param& param : params) {
        nb::object name = words_.contains(param.name) ? word(param.name) : to_lower_str(param.name);
        nb::object value = param.has_value ? word(param.value) : nb::none();
        PyTuple_SET_ITEM(made.ptr(), place++, text_tuple(name, value).release().ptr());
    }
    PyObject_GC_UnTrack(made.ptr());
    return made;
}

nb::object Reader::word(std::string_view text) {
    const auto known = words_.find(text);
    return known == words_.end() ? to_str(text) : known->second;
}

}  // namespace trunkline::wire
