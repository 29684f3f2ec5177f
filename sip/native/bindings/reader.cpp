#include "reader.hpp"

#include <cstring>

#include "header_fields.hpp"

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
    nb::object made = owned(PyTuple_New(sizeof...(values)));
    Py_ssize_t place = 0;
    (PyTuple_SET_ITEM(made.ptr(), place++, Py_NewRef(values.ptr())), ...);
    PyObject_GC_UnTrack(made.ptr());
    return made;
}

}  // namespace

Reader::Reader(const nb::dict& classes, const nb::dict& names, const nb::object& split,
               const nb::dict& readers)
    : request_(classes["Request"], {"method", "uri", "headers", "body"}),
      response_(classes["Response"], {"status", "reason", "headers", "body"}),
      cseq_(classes["CSeq"], {"number", "method"}),
      via_(classes["Via"], {"transport", "host", "port", "branch", "received", "rport", "params"}),
      uri_(classes["SipUri"], {"scheme", "user", "password", "host", "port", "params", "headers"}),
      address_(classes["NameAddr"], {"display_name", "uri", "params", "tag"}),
      headers_(classes["Headers"]),
      parse_uri_(readers["uri"]),
      parse_address_(readers["address"]),
      split_list_(readers["list"]),
      parse_error_(readers["error"]),
      empty_(nb::str("")),
      no_params_(nb::steal(PyTuple_New(0))),
      limits_object_(nb::none()) {
    for (const auto& [spelling, known] : names) {
        Name name{known[0], known[1]};
        name.split = nb::cast<bool>(split.attr("__contains__")(name.key));
        names_.emplace(view_of(spelling), std::move(name));
    }
    for (const char* text :
         {"INVITE", "ACK",   "BYE",    "CANCEL",  "OPTIONS",   "REGISTER", "PRACK", "UPDATE",
          "INFO",   "REFER", "NOTIFY", "MESSAGE", "SUBSCRIBE", "UDP",      "TCP",   "TLS",
          "sip",    "sips",  "tag",    "lr",      "transport", "user",     "udp",   "tcp",
          "tls",    "phone", "OK",     "Trying",  "Ringing",   "alias",    "ob"}) {
        words_.emplace(text, nb::steal(PyUnicode_InternFromString(text)));
    }
}

nb::object Reader::read(const nb::bytes& data, const nb::object& limits) {
    if (!read_message({data.c_str(), data.size()}, limits_of(limits), message_)) return nb::none();
    return make(message_, nullptr);
}

nb::object Reader::make(const Message& message, const Stamp* stamp) {
    try {
        return make_message(message, stamp);
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

nb::object Reader::make_message(const Message& message, const Stamp* stamp) {
    nb::list entries;
    for (const Line& line : message.head.lines) {
        const bool is_top = stamp != nullptr && line.value.data() == message.via_text.data();
        add_entry(line.name, is_top ? std::string_view(stamp->text) : line.value, entries);
    }
    Views views = make_views(message, stamp);
    nb::object body = nb::steal(
        PyBytes_FromStringAndSize(message.body.data(), static_cast<Py_ssize_t>(message.body.size())));
    if (!body.is_valid()) nb::raise_python_error();
    const Head& head = message.head;
    if (!head.is_request) {
        nb::object headers = make_headers(std::move(entries), std::move(views));
        return response_.make(nb::object(nb::int_(head.status)), word(head.reason), std::move(headers),
                              std::move(body));
    }
    nb::object uri = message.uri ? make_uri(*message.uri) : parse_uri_(to_str(head.uri));
    if (!message.uri && !uri.attr("headers").is_none()) return nb::none();
    nb::object headers = make_headers(std::move(entries), std::move(views));
    return request_.make(word(head.method), std::move(uri), std::move(headers), std::move(body));
}

nb::object Reader::make_headers(nb::list&& entries, Views&& views) {
    nb::object made = make_header_fields(headers_, std::move(entries), std::move(views.others));
    auto& fields = *reinterpret_cast<HeaderFields*>(made.ptr());
    fields[Attribute::via] = views.via.release().ptr();
    fields[Attribute::from] = views.from.release().ptr();
    fields[Attribute::to] = views.to.release().ptr();
    fields[Attribute::call_id] = views.call_id.release().ptr();
    fields[Attribute::cseq] = views.cseq.release().ptr();
    return made;
}

const Reader::Name* Reader::name_of(std::string_view spelling) const {
    const auto known = names_.find(spelling);
    return known == names_.end() ? nullptr : &known->second;
}

void Reader::add_entry(std::string_view spelling, std::string_view value, nb::list& entries) {
    const Name* name = name_of(spelling);
    Name unknown;
    if (name == nullptr) {
        unknown.key = to_lower_str(spelling);
        name = name_of(view_of(unknown.key));
        if (name == nullptr) {
            unknown.written = to_str(spelling);
            name = &unknown;
        }
    }
    if (name->split && value.find(',') != std::string_view::npos) {
        for (nb::handle element : split_list_(to_str(value))) {
            entries.append(text_tuple(name->key, name->written, element));
        }
        return;
    }
    entries.append(text_tuple(name->key, name->written, to_str(value)));
}

Reader::Views Reader::make_views(const Message& message, const Stamp* stamp) {
    Views views;
    views.via = make_via(message.via, stamp);
    views.from = make_address(message.from, message.from_text);
    views.to = make_address(message.to, message.to_text);
    views.call_id = to_str(message.call_id);
    views.cseq = cseq_.make(nb::object(nb::int_(message.cseq.number)), word(message.cseq.method));
    if (message.max_forwards) views.others["max-forwards"] = *message.max_forwards;
    return views;
}

nb::object Reader::make_via(const Via& via, const Stamp* stamp) {
    nb::object rport = nb::none(), received = nb::none();
    if (stamp != nullptr) {
        if (stamp->rport) rport = nb::int_(*stamp->rport);
        if (!stamp->received.empty()) received = to_str(stamp->received);
    } else {
        if (via.rport) rport = *via.rport == 0 ? empty_ : nb::object(nb::int_(*via.rport));
        if (via.received) received = to_str(*via.received);
    }
    return via_.make(word(via.transport), to_lower_str(via.host),
                     via.port ? nb::object(nb::int_(*via.port)) : nb::none(),
                     via.branch ? to_str(*via.branch) : nb::none(), std::move(received), std::move(rport),
                     params_of(via.params));
}

nb::object Reader::make_address(const std::optional<Address>& address, std::string_view text) {
    if (!address) return parse_address_(to_str(text));
    const std::string_view tag = tag_of(address->params);
    return address_.make(none_or_str(address->display_name), make_uri(address->uri),
                         params_of(address->params), none_or_str(tag));
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
