// Sockets to agents.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "conversion.hpp"
#include "tls.hpp"
#include "trunkline/engine/agent_socket_handle.hpp"
#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/tap_handle.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using engine::AgentSocketHandle;

std::string text_of(const nb::bytes& bytes) {
    return {bytes.c_str(), bytes.size()};
}

websocket::Track track_of(bool outbound) {
    return outbound ? websocket::Track::outbound : websocket::Track::inbound;
}

std::shared_ptr<AgentSocketHandle> open_socket(engine::Engine& engine, const engine::StreamHandle* near,
                                               int descriptor, TlsHolder* tls, const nb::bytes& read,
                                               bool binary, const std::string& encoding,
                                               std::uint32_t rate_hz, std::size_t max_frames,
                                               std::size_t max_message_bytes) {
    const graph::AudioFormat format = format_of(encoding, rate_hz);
    engine::AgentSocketSettings settings;
    settings.max_message_bytes = max_message_bytes;
    settings.audio.binary = binary;
    settings.audio.frame_bytes = std::size_t{engine::Tap::frame_ms} * format.bytes_per_ms();
    settings.audio.max_frames = max_frames;
    settings.audio.frame_ms = engine::Tap::frame_ms;
    settings.audio.silence = format.silence();
    // Without its TLS it would pass for a connection that has none.
    if (tls != nullptr && tls->client == nullptr) throw std::logic_error("an engine has the connection");
    auto client = tls != nullptr ? std::move(tls->client) : nullptr;
    return engine.open_agent_socket(near, descriptor, std::move(client), octets_of(read), settings);
}

void listen(AgentSocketHandle& socket, std::uint8_t listening) {
    if (listening > static_cast<std::uint8_t>(websocket::Listening::silence)) {
        throw std::invalid_argument("the agent hears all, nothing or silence: 0, 1 or 2");
    }
    socket.listen(static_cast<websocket::Listening>(listening));
}

using Member = std::tuple<std::string, std::uint8_t, std::string, std::uint64_t>;

std::shared_ptr<graph::AudioConverter> converter_of(const ConverterHolder* holder) {
    return holder != nullptr && !holder->converter->unchanged() ? holder->converter : nullptr;
}

void learn_event(AgentSocketHandle& socket, const std::vector<Member>& members, bool binary,
                 const ConverterHolder* converter, bool whole) {
    using websocket::AudioEvent;
    std::vector<AudioEvent::Member> described;
    for (const auto& [place, kind, value, least] : members) {
        if (kind < 1 || kind > 4) throw std::invalid_argument("there is no member of that kind");
        described.push_back({place, static_cast<AudioEvent::Kind>(kind), value, least});
    }
    socket.learn(
        {std::make_unique<AudioEvent>(std::move(described), binary), converter_of(converter), whole});
}

}  // namespace

void bind_agent_socket(nb::module_& module, nb::class_<engine::Engine>& engine) {
    engine.def("open_agent_socket", &open_socket, nb::arg("near").none(), nb::arg("descriptor"),
               nb::arg("tls").none(), nb::arg("read"), nb::arg("binary"), nb::arg("encoding"),
               nb::arg("rate_hz"), nb::arg("max_frames"), nb::arg("max_message_bytes"));
    nb::class_<AgentSocketHandle>(module, "AgentSocket")
        .def_prop_ro("id", &AgentSocketHandle::id)
        .def_prop_ro("frames_sent", &AgentSocketHandle::frames_sent)
        .def_prop_ro("frames_dropped", &AgentSocketHandle::frames_dropped)
        .def_prop_ro("clock_ms", &AgentSocketHandle::clock_ms)
        .def("attach", &AgentSocketHandle::attach)
        .def("set_templates",
             [](AgentSocketHandle& socket, const nb::bytes& inbound, const nb::bytes& outbound,
                std::uint64_t origin_ms) {
                 socket.set_templates(text_of(inbound), text_of(outbound), origin_ms);
             })
        .def("learn", [](AgentSocketHandle& socket, const nb::bytes& before,
                         const nb::bytes& after) { socket.learn(text_of(before), text_of(after)); })
        .def("learn_event", &learn_event, nb::arg("members"), nb::arg("binary"), nb::arg("converter").none(),
             nb::arg("whole"))
        .def(
            "convert",
            [](AgentSocketHandle& socket, const ConverterHolder* converter) {
                socket.convert(converter_of(converter));
            },
            nb::arg("converter").none())
        .def("unlearn", &AgentSocketHandle::unlearn)
        .def("listen", &listen)
        .def("audio", [](AgentSocketHandle& socket, bool outbound,
                         const nb::bytes& frame) { socket.audio(track_of(outbound), octets_of(frame)); })
        .def("send", [](AgentSocketHandle& socket, const nb::bytes& text) { socket.send(text_of(text)); })
        .def("ping", &AgentSocketHandle::ping)
        .def("finish", [](AgentSocketHandle& socket, const nb::bytes& last) { socket.finish(text_of(last)); })
        .def("close", &AgentSocketHandle::close)
        .def("disconnect", &AgentSocketHandle::disconnect)
        .def("handled", &AgentSocketHandle::handled)
        .def("release", &AgentSocketHandle::release);
}

}  // namespace trunkline::bindings
