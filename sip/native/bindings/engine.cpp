#include "engine.hpp"

#include <nanobind/stl/string_view.h>

#include <cmath>
#include <limits>
#include <utility>

#include "trunkline/signalling/derived.hpp"

namespace trunkline::signalling {

namespace {

constexpr double ns_per_s = 1e9;
constexpr std::uint16_t sip_port = 5060;

std::int64_t to_ns(double seconds) {
    return std::llround(seconds * ns_per_s);
}

std::string_view view_of(const nb::bytes& bytes) {
    return {bytes.c_str(), bytes.size()};
}

std::string_view bytes_at(const nb::tuple& fields, std::size_t place) {
    const nb::handle found = fields[place];
    if (!PyBytes_Check(found.ptr())) throw nb::type_error("a field of a message is bytes");
    return {PyBytes_AS_STRING(found.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(found.ptr()))};
}

nb::object to_bytes(std::string_view bytes) {
    return nb::bytes(bytes.data(), bytes.size());
}

Timers timers_of(const nb::object& timers) {
    const auto ns = [&timers](const char* name) { return to_ns(nb::cast<double>(timers.attr(name))); };
    return {ns("t1_s"), ns("t2_s"), ns("t4_s"), ns("trying_s"), ns("completed_invite_s")};
}

Flow foreign_flow(bool reliable) {
    Flow flow;
    flow.reliable = reliable;
    return flow;
}

/// True for a verdict of which Python needs the message.
bool is_told(Kind kind, bool reliable) {
    switch (kind) {
        case Kind::absorbed:
            return false;
        case Kind::repeated:
            return reliable;  // Its Via says what the connection may be used for.
        default:
            return true;
    }
}

nb::int_ number(Kind kind) {
    return nb::int_(static_cast<int>(kind));
}

Opening opening(bool opens) {
    return opens ? Opening::if_room : Opening::never;
}

RequestFields request_fields(const nb::tuple& fields) {
    RequestFields request;
    request.method = bytes_at(fields, 0);
    if (!fields[1].is_none()) request.branch = bytes_at(fields, 1);
    request.host = bytes_at(fields, 2);
    if (!fields[3].is_none()) request.port = nb::cast<std::uint16_t>(fields[3]);
    request.call_id = bytes_at(fields, 4);
    request.cseq = nb::cast<std::uint32_t>(fields[5]);
    request.from_tag = bytes_at(fields, 6);
    return request;
}

nb::tuple unread() {
    return nb::make_tuple(number(Kind::unread), 0, nb::none(), nb::none(), 0);
}

/// The tag of a From that was read by Python.
std::string_view tag_in(const nb::object& message) {
    const nb::object tag = message.attr("from_").attr("tag");
    if (tag.is_none()) return {};
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(tag.ptr(), &size);
    if (text == nullptr) nb::raise_python_error();
    return {text, static_cast<std::size_t>(size)};
}

}  // namespace

PythonEngine::PythonEngine(nb::object reader, nb::object limits, const nb::object& timers,
                           std::size_t most_servers)
    : reader_object_(std::move(reader)),
      limits_object_(std::move(limits)),
      reader_(nb::cast<wire::Reader&>(reader_object_)),
      engine_(timers_of(timers), most_servers) {}

nb::tuple PythonEngine::receive(const nb::bytes& data, std::string_view host, std::uint16_t port,
                                bool reliable, bool opens, double now_s) {
    if (!wire::read_message(view_of(data), reader_.limits_of(limits_object_), message_)) return unread();
    const bool is_request = message_.head.is_request;
    std::optional<wire::Stamp> stamp;
    if (is_request) stamp = wire::stamp_via(message_.via_text, message_.via, host, port);
    nb::object made = nb::none();
    const auto make = [&] { made = reader_.make(message_, stamp ? &*stamp : nullptr); };
    if (!message_.is_certain()) {
        make();
        if (made.is_none()) return unread();
    }
    Verdict found;
    if (is_request) {
        RequestFields fields = request_fields(message_);
        if (!message_.from) fields.from_tag = tag_in(made);
        found = engine_.take_request(fields, foreign_flow(reliable), opening(opens), to_ns(now_s));
        if (found.kind == Kind::request && found.id != 0 && fields.method == "INVITE") {
            engine_.keep_trying(found.id, make_trying(message_, stamp ? stamp->text : message_.via_text));
        }
    } else {
        found = engine_.take_response(response_fields(message_), to_ns(now_s));
    }
    const nb::object send = found.send == nullptr ? nb::none() : to_bytes(*found.send);
    if (made.is_none() && is_told(found.kind, reliable)) {
        make();
        if (made.is_none()) {
            // It cannot be: it was certain. Python then finds out why, and opens the transaction.
            if (found.kind == Kind::request) engine_.release(found.id);
            return unread();
        }
    }
    const std::uint16_t reply_port = message_.via.rport ? port : message_.via.port.value_or(sip_port);
    return nb::make_tuple(number(found.kind), found.id, std::move(made), send, reply_port);
}

nb::tuple PythonEngine::take_request(const nb::tuple& fields, const nb::bytes& trying, bool reliable,
                                     bool opens, double now_s) {
    const Verdict found =
        engine_.take_request(request_fields(fields), foreign_flow(reliable), opening(opens), to_ns(now_s));
    if (found.kind == Kind::request) engine_.keep_trying(found.id, std::string(view_of(trying)));
    return verdict(found);
}

Id PythonEngine::open_server(const nb::tuple& fields, const nb::bytes& trying, bool reliable, double now_s) {
    const Verdict found =
        engine_.take_request(request_fields(fields), foreign_flow(reliable), Opening::always, to_ns(now_s));
    engine_.keep_trying(found.id, std::string(view_of(trying)));
    return found.id;
}

nb::tuple PythonEngine::take_response(const nb::tuple& fields, double now_s) {
    ResponseFields response;
    response.status = nb::cast<std::uint16_t>(fields[0]);
    response.via_count = nb::cast<std::size_t>(fields[1]);
    response.branch = bytes_at(fields, 2);
    response.method = bytes_at(fields, 3);
    response.to = bytes_at(fields, 4);
    return verdict(engine_.take_response(response, to_ns(now_s)));
}

nb::tuple PythonEngine::verdict(const Verdict& verdict) {
    return nb::make_tuple(number(verdict.kind), verdict.id,
                          verdict.send == nullptr ? nb::none() : to_bytes(*verdict.send));
}

Id PythonEngine::start_client(const nb::bytes& wire, std::string_view method, std::string_view branch,
                              bool reliable, double now_s) {
    return engine_.start_client(view_of(wire), method, branch, foreign_flow(reliable), to_ns(now_s));
}

Id PythonEngine::resume_invite(const nb::bytes& wire, std::string_view branch, bool reliable) {
    return engine_.resume_invite(view_of(wire), branch, foreign_flow(reliable));
}

bool PythonEngine::respond(Id id, std::uint16_t status, const nb::bytes& wire, double now_s) {
    return engine_.respond(id, status, view_of(wire), to_ns(now_s));
}

nb::tuple PythonEngine::cancel(Id id, const nb::bytes& reason, double now_s) {
    const Id started = engine_.cancel(id, view_of(reason), to_ns(now_s));
    return nb::make_tuple(started, to_bytes(engine_.wire_of(started)));
}

void PythonEngine::abandon(Id id, double now_s) {
    engine_.abandon(id, to_ns(now_s));
}

nb::list PythonEngine::give_up(Id id, double now_s) {
    engine_.give_up(id, to_ns(now_s), outputs_);
    return taken();
}

void PythonEngine::expire(Id id, double now_s) {
    engine_.expire(id, to_ns(now_s));
}

nb::list PythonEngine::fail_transport(Id id, double now_s) {
    engine_.fail_transport(id, to_ns(now_s), outputs_);
    return taken();
}

nb::list PythonEngine::advance(double now_s) {
    engine_.advance(to_ns(now_s), outputs_);
    return taken();
}

nb::list PythonEngine::taken() {
    nb::list list;
    for (const Output& output : outputs_) {
        list.append(nb::make_tuple(number(output.kind), output.id,
                                   output.kind == Kind::send ? to_bytes(output.bytes) : nb::none()));
    }
    outputs_.clear();
    return list;
}

double PythonEngine::due_s() const {
    const auto due_ns = engine_.next_due_ns();
    return due_ns ? static_cast<double>(*due_ns) / ns_per_s : std::numeric_limits<double>::infinity();
}

nb::object PythonEngine::state_of(Id id) const {
    const auto state = engine_.state_of(id);
    return state ? nb::object(nb::int_(*state)) : nb::none();
}

void PythonEngine::define(nb::module_& module) {
    const std::pair<const char*, Kind> kinds[] = {
        {"UNREAD", Kind::unread},     {"IGNORED", Kind::ignored},     {"REPEATED", Kind::repeated},
        {"ABSORBED", Kind::absorbed}, {"REQUEST", Kind::request},     {"CANCEL", Kind::cancel},
        {"ACK", Kind::ack},           {"RESPONSE", Kind::response},   {"STRAY", Kind::stray},
        {"SEND", Kind::send},         {"TIMED_OUT", Kind::timed_out}, {"UNSENT", Kind::unsent},
        {"ENDED", Kind::ended},
    };
    for (const auto& [name, kind] : kinds)
        module.attr(name) = static_cast<int>(kind);
    nb::class_<PythonEngine>(module, "Engine")
        .def(nb::init<nb::object, nb::object, const nb::object&, std::size_t>(), nb::arg("reader"),
             nb::arg("limits"), nb::arg("timers"), nb::arg("most_servers"))
        .def("receive", &PythonEngine::receive)
        .def("take_request", &PythonEngine::take_request)
        .def("take_response", &PythonEngine::take_response)
        .def("open_server", &PythonEngine::open_server)
        .def("start_client", &PythonEngine::start_client)
        .def("resume_invite", &PythonEngine::resume_invite)
        .def("respond", &PythonEngine::respond)
        .def("cancel", &PythonEngine::cancel)
        .def("abandon", &PythonEngine::abandon)
        .def("give_up", &PythonEngine::give_up)
        .def("expire", &PythonEngine::expire)
        .def("fail_transport", &PythonEngine::fail_transport)
        .def("release", &PythonEngine::release)
        .def("clear", &PythonEngine::clear)
        .def("advance", &PythonEngine::advance)
        .def("is_wanted", &PythonEngine::is_wanted)
        .def("state_of", &PythonEngine::state_of)
        .def_prop_ro("due_s", &PythonEngine::due_s)
        .def_prop_ro("transactions", &PythonEngine::transactions)
        .def_prop_ro("timers", &PythonEngine::timers);
}

}  // namespace trunkline::signalling
