#include "engine.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <limits>
#include <utility>

#include "trunkline/signalling/derived.hpp"
#include "trunkline/signalling/endpoint.hpp"

namespace trunkline::signalling {

namespace {

constexpr double ns_per_s = 1e9;
constexpr std::uint16_t sip_port = 5060;

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

Flow flow_to(std::int32_t socket, const std::string& host, std::uint16_t port, bool reliable) {
    Flow flow;
    flow.reliable = reliable;
    if (socket == Flow::foreign) return flow;
    if (const auto remote = endpoint_of(host, port)) {
        flow.socket = socket;
        flow.remote = *remote;
    }
    return flow;
}

/// A flow of a tuple: number of its socket, host, port, and whether it is reliable.
Flow flow_of(const nb::tuple& flow) {
    return flow_to(nb::cast<std::int32_t>(flow[0]), nb::cast<std::string>(flow[1]),
                   nb::cast<std::uint16_t>(flow[2]), nb::cast<bool>(flow[3]));
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
      service_(timers_of(timers), most_servers, reader_.limits_of(limits_object_)) {}

PythonEngine::Answer PythonEngine::copied(const Verdict& verdict) {
    Answer answer{verdict.kind, verdict.id, std::nullopt};
    if (verdict.send != nullptr) answer.send = *verdict.send;
    return answer;
}

nb::tuple PythonEngine::told(const Answer& answer) {
    return nb::make_tuple(number(answer.kind), answer.id, answer.send ? to_bytes(*answer.send) : nb::none());
}

nb::tuple PythonEngine::receive(const nb::bytes& data, const std::string& host, std::uint16_t port,
                                std::int32_t socket, bool reliable, bool opens, double now_s) {
    const std::int64_t now_ns = to_ns(now_s);
    Flow flow = flow_to(socket, host, port, reliable);
    const bool is_native = flow.socket != Flow::foreign;
    if (is_native) service_.note_served(now_ns, opens ? &flow.remote : nullptr);
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
    const std::uint16_t reply_port = message_.via.rport ? port : message_.via.port.value_or(sip_port);
    Answer answer;
    if (is_request) {
        RequestFields fields = request_fields(message_);
        if (!message_.from) fields.from_tag = tag_in(made);
        if (is_native) flow.remote = with_port(flow.remote, reply_port);
        auto engine = service_.locked();
        answer = copied(engine->take_request(fields, flow, opening(opens), now_ns));
        if (answer.kind == Kind::request && answer.id != 0 && fields.method == "INVITE") {
            engine->keep_trying(answer.id, make_trying(message_, stamp ? stamp->text : message_.via_text));
        }
    } else {
        answer = copied(service_.locked()->take_response(response_fields(message_), now_ns));
        if (is_matched(answer.kind)) {
            const auto remote = is_native ? flow.remote : endpoint_of(host, port);
            if (remote) service_.trust_sender(view_of(data), *remote, now_ns);
        }
    }
    if (made.is_none() && is_told(answer.kind, reliable)) {
        make();
        if (made.is_none()) {
            // It cannot be: it was certain. Python then finds out why, and opens the transaction.
            if (answer.kind == Kind::request) release(answer.id);
            return unread();
        }
    }
    return nb::make_tuple(number(answer.kind), answer.id, std::move(made),
                          answer.send ? to_bytes(*answer.send) : nb::none(), reply_port);
}

nb::tuple PythonEngine::take_request(const nb::tuple& fields, const nb::bytes& trying, const nb::tuple& flow,
                                     bool opens, double now_s) {
    Answer answer;
    {
        const RequestFields request = request_fields(fields);
        const Flow source = flow_of(flow);
        auto engine = service_.locked();
        answer = copied(engine->take_request(request, source, opening(opens), to_ns(now_s)));
        if (answer.kind == Kind::request) engine->keep_trying(answer.id, std::string(view_of(trying)));
    }
    return told(answer);
}

Id PythonEngine::open_server(const nb::tuple& fields, const nb::bytes& trying, const nb::tuple& flow,
                             double now_s) {
    const RequestFields request = request_fields(fields);
    const Flow source = flow_of(flow);
    auto engine = service_.locked();
    const Id id = engine->take_request(request, source, Opening::always, to_ns(now_s)).id;
    engine->keep_trying(id, std::string(view_of(trying)));
    return id;
}

nb::tuple PythonEngine::take_response(const nb::tuple& fields, double now_s) {
    ResponseFields response;
    response.status = nb::cast<std::uint16_t>(fields[0]);
    response.via_count = nb::cast<std::size_t>(fields[1]);
    response.branch = bytes_at(fields, 2);
    response.method = bytes_at(fields, 3);
    response.to = bytes_at(fields, 4);
    const Answer answer = copied(service_.locked()->take_response(response, to_ns(now_s)));
    return told(answer);
}

Id PythonEngine::start_client(const nb::bytes& wire, std::string_view method, std::string_view branch,
                              const nb::tuple& flow, double now_s) {
    const Flow target = flow_of(flow);
    return service_.locked()->start_client(view_of(wire), method, branch, target, to_ns(now_s));
}

Id PythonEngine::resume_invite(const nb::bytes& wire, std::string_view branch, const nb::tuple& flow) {
    const Flow target = flow_of(flow);
    return service_.locked()->resume_invite(view_of(wire), branch, target);
}

bool PythonEngine::respond(Id id, std::uint16_t status, const nb::bytes& wire, double now_s) {
    return service_.locked()->respond(id, status, view_of(wire), to_ns(now_s));
}

nb::tuple PythonEngine::cancel(Id id, const nb::bytes& reason, double now_s) {
    Id started = 0;
    std::string wire;
    {
        auto engine = service_.locked();
        started = engine->cancel(id, view_of(reason), to_ns(now_s));
        wire = engine->wire_of(started);
    }
    return nb::make_tuple(started, to_bytes(wire));
}

void PythonEngine::abandon(Id id, double now_s) {
    service_.locked()->abandon(id, to_ns(now_s));
}

nb::list PythonEngine::give_up(Id id, double now_s) {
    std::vector<Output> outputs;
    service_.locked()->give_up(id, to_ns(now_s), outputs);
    return listed(outputs);
}

void PythonEngine::expire(Id id, double now_s) {
    service_.locked()->expire(id, to_ns(now_s));
}

nb::list PythonEngine::fail_transport(Id id, double now_s) {
    std::vector<Output> outputs;
    service_.locked()->fail_transport(id, to_ns(now_s), outputs);
    return listed(outputs);
}

nb::list PythonEngine::advance(double now_s) {
    std::vector<Output> outputs;
    service_.note_served(to_ns(now_s), nullptr);
    service_.locked()->advance(to_ns(now_s), outputs);
    return listed(outputs);
}

nb::list PythonEngine::listed(std::vector<Output>& outputs) {
    nb::list list;
    for (const Output& output : outputs) {
        list.append(nb::make_tuple(number(output.kind), output.id,
                                   output.kind == Kind::send ? to_bytes(output.bytes) : nb::none()));
    }
    return list;
}

double PythonEngine::due_s() {
    const auto due_ns = service_.locked()->next_due_ns();
    return due_ns ? static_cast<double>(*due_ns) / ns_per_s : std::numeric_limits<double>::infinity();
}

Id PythonEngine::find_wanted(const nb::bytes& method, const nb::bytes& branch) {
    return service_.locked()->find_wanted(view_of(method), view_of(branch));
}

nb::object PythonEngine::state_of(Id id) {
    const auto state = service_.locked()->state_of(id);
    return state ? nb::object(nb::int_(*state)) : nb::none();
}

std::size_t PythonEngine::transactions() {
    auto engine = service_.locked();
    return engine->clients() + engine->servers();
}

bool PythonEngine::note_served(double now_s) {
    return service_.note_served(to_ns(now_s), nullptr);
}

nb::list PythonEngine::take_kept(std::size_t most) {
    nb::list list;
    for (const Kept& kept : service_.take(most)) {
        list.append(nb::make_tuple(static_cast<int>(kept.what), found_in(kept), to_bytes(kept.bytes),
                                   kept.flow.socket,
                                   nb::make_tuple(host_of(kept.flow.remote), port_of(kept.flow.remote)),
                                   static_cast<double>(kept.at_ns) / ns_per_s));
    }
    return list;
}

nb::tuple PythonEngine::found_in(const Kept& kept) {
    if (kept.what != Kept::What::message) {
        return nb::make_tuple(number(kept.kind), kept.id, nb::none(), nb::none(), 0);
    }
    // It was plain for the thread, and is so still.
    wire::read_message(kept.bytes, reader_.limits_of(limits_object_), message_);
    std::optional<wire::Stamp> stamp;
    const std::uint16_t port = port_of(kept.flow.remote);
    std::uint16_t reply_port = 0;
    if (message_.head.is_request) {
        stamp = wire::stamp_via(message_.via_text, message_.via, host_of(kept.flow.remote), port);
        reply_port = message_.via.rport ? port : message_.via.port.value_or(sip_port);
    }
    return nb::make_tuple(number(kept.kind), kept.id, reader_.make(message_, stamp ? &*stamp : nullptr),
                          nb::none(), reply_port);
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
    const std::pair<const char*, Kept::What> kept[] = {
        {"KEPT_DATAGRAM", Kept::What::datagram}, {"KEPT_ADMITTED", Kept::What::admitted},
        {"KEPT_MESSAGE", Kept::What::message},   {"KEPT_OUTPUT", Kept::What::output},
        {"KEPT_SENT", Kept::What::sent},
    };
    for (const auto& [name, what] : kept)
        module.attr(name) = static_cast<int>(what);
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
        .def("add_socket", &PythonEngine::add_socket)
        .def("set_reading", &PythonEngine::set_reading)
        .def("remove_socket", &PythonEngine::remove_socket)
        .def("note_served", &PythonEngine::note_served)
        .def("set_guard", &PythonEngine::set_guard)
        .def("set_tracing", &PythonEngine::set_tracing)
        .def("set_opening", &PythonEngine::set_opening)
        .def("take_kept", &PythonEngine::take_kept)
        .def("stop", &PythonEngine::stop)
        .def_prop_ro("wake_descriptor", &PythonEngine::wake_descriptor)
        .def("is_wanted", &PythonEngine::is_wanted)
        .def("find_wanted", &PythonEngine::find_wanted)
        .def("state_of", &PythonEngine::state_of)
        .def_prop_ro("due_s", &PythonEngine::due_s)
        .def_prop_ro("transactions", &PythonEngine::transactions)
        .def_prop_ro("timers", &PythonEngine::timers);
}

}  // namespace trunkline::signalling
