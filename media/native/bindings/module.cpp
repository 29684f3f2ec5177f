// The Python module media._engine: thin, every method one call into the engine. The contract with the Python
// side is media/_engine.pyi.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "bindings.hpp"
#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/frame_listener.hpp"
#include "trunkline/engine/monitor.hpp"
#include "values.hpp"

namespace nb = nanobind;
using namespace trunkline;
using engine::Engine;
using engine::FrameListenerHandle;
using engine::MonitorHandle;
using engine::StreamHandle;
using engine::TapHandle;

namespace {

std::shared_ptr<Engine> make_engine(const std::string& listen, std::uint16_t port_min, std::uint16_t port_max,
                                    std::size_t threads, std::uint32_t quarantine_ms, bool driven,
                                    bool continuous) {
    return Engine::create(
        {listen, port_min, port_max, threads, std::int64_t{quarantine_ms} * 1'000'000, driven, continuous});
}

/// All messages of agents that are there now.
nb::list take_messages(Engine& engine) {
    nb::list messages;
    util::Node* const first = engine.take_messages();
    for (const util::Node* node = first; node != nullptr; node = node->next_node) {
        const auto& message = static_cast<const engine::AgentMessage&>(*node);
        messages.append(nb::make_tuple(message.socket, static_cast<std::uint32_t>(message.kind), message.code,
                                       nb::bytes(message.bytes.data(), message.bytes.size()),
                                       message.audio_bytes));
    }
    util::NodeStack::destroy(first);
    return messages;
}

/// All events, then all frames and messages, that are there now.
nb::tuple drain_engine(Engine& engine) {
    engine.acknowledge();
    nb::list events;
    for (engine::Event event; engine.next_event(event);) {
        events.append(
            nb::make_tuple(event.stream, static_cast<std::uint32_t>(event.kind), event.a, event.b, event.c));
    }
    nb::list frames;
    while (const auto frame = engine.front_frame()) {
        frames.append(nb::make_tuple(frame->tag, nb::bytes(frame->bytes.data(), frame->bytes.size())));
        engine.release_frame();
    }
    return nb::make_tuple(events, frames, take_messages(engine));
}

nb::dict engine_stats(const Engine& engine) {
    const engine::EngineFigures figures = engine.figures();
    nb::dict stats;
    stats["streams"] = figures.streams;
    stats["ports_in_use"] = figures.ports_in_use;
    stats["ports_total"] = figures.ports_total;
    stats["packets_in"] = figures.packets_in;
    stats["packets_out"] = figures.packets_out;
    stats["events_dropped"] = figures.events_dropped;
    stats["frames_dropped"] = figures.frames_dropped;
    stats["underruns"] = figures.underruns;
    return stats;
}

/// What was dropped, in the order of `media.aio.engine`'s reasons.
nb::tuple engine_drops(const Engine& engine) {
    const engine::EngineDrops drops = engine.drops();
    return nb::make_tuple(drops.foreign, drops.invalid, drops.unwanted, drops.unauthentic, drops.duplicates,
                          drops.late);
}

void connect_stream(StreamHandle& stream, const engine::MediaSettings& settings) {
    if (settings.remote.empty()) throw std::invalid_argument("no remote address was set");
    if (settings.ptime_ms < 10 || settings.ptime_ms > engine::max_packet_ms || settings.ptime_ms % 5 != 0) {
        throw std::invalid_argument("ptime must be 10 to 60 ms in steps of 5");
    }
    if (settings.format.codec == codec::Codec::opus && settings.ptime_ms % 10 != 0) {
        throw std::invalid_argument("ptime of Opus must be 10 to 60 ms in steps of 10");
    }
    if (settings.srtp_send.has_value() != settings.srtp_receive.has_value()) {
        throw std::invalid_argument("SRTP takes a key for each direction");
    }
    stream.connect(settings);
}

void send_digits(StreamHandle& stream, std::uint32_t token, const std::string& digits,
                 std::uint32_t duration_ms, std::uint32_t gap_ms) {
    auto text = std::make_unique<engine::DtmfText>();
    text->token = token;
    text->digits = digits;
    text->duration_ms = duration_ms;
    text->gap_ms = gap_ms;
    stream.send_dtmf(std::move(text));
}

std::size_t write_audio(TapHandle& tap, const nb::bytes& audio) {
    return tap.write(reinterpret_cast<const std::uint8_t*>(audio.c_str()), audio.size());
}

void raise_os_error(const std::exception_ptr& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (const std::system_error& error) {
        PyErr_SetObject(PyExc_OSError, nb::make_tuple(error.code().value(), error.what()).ptr());
    }
}

}  // namespace

namespace trunkline::bindings {

graph::AudioFormat format_of(const std::string& encoding, std::uint32_t rate_hz) {
    if (rate_hz != 8000 && rate_hz != 16000) throw std::invalid_argument("the rate must be 8000 or 16000");
    if (encoding == "l16") return {graph::Encoding::l16, rate_hz};
    if (encoding == "mulaw") return {graph::Encoding::mulaw, rate_hz};
    if (encoding == "alaw") return {graph::Encoding::alaw, rate_hz};
    throw std::invalid_argument("unknown encoding: " + encoding);
}

}  // namespace trunkline::bindings

NB_MODULE(_engine, module) {
    module.doc() = "The native media engine; see media.aio for its Python face.";
    nb::register_exception_translator(raise_os_error);
    // A process may end with streams open; what a leak is, the tests say.
    nb::set_leak_warnings(false);

    trunkline::bindings::bind_audio(module);
    trunkline::bindings::bind_conference(module);
    trunkline::bindings::bind_conversion(module);
    trunkline::bindings::bind_recording(module);
    trunkline::bindings::bind_settings(module);
    trunkline::bindings::bind_text(module);
    trunkline::bindings::bind_tls(module);
    module.def("construct_natively", &trunkline::bindings::construct_natively);

    nb::class_<TapHandle>(module, "Tap")
        .def_prop_ro("id", &TapHandle::id)
        .def_prop_ro("sent_id", &TapHandle::sent_id)
        .def("write", &write_audio)
        .def("mark", &TapHandle::mark)
        .def("clear", &TapHandle::clear)
        .def("queued_ms", &TapHandle::queued_ms)
        .def("played_ms", &TapHandle::played_ms)
        .def("refused_ms", &TapHandle::refused_ms)
        .def("prebuffer_ms", &TapHandle::prebuffer_ms)
        .def("pause", &TapHandle::pause)
        .def("watch_level", &TapHandle::watch_level)
        .def("close", &TapHandle::close);

    nb::class_<FrameListenerHandle>(module, "FrameListener")
        .def_prop_ro("id", &FrameListenerHandle::id)
        .def("close", &FrameListenerHandle::close);

    nb::class_<MonitorHandle>(module, "Monitor").def("close", &MonitorHandle::close);

    auto stream = nb::class_<StreamHandle>(module, "Stream");
    stream.def_prop_ro("id", &StreamHandle::id)
        .def_prop_ro("udp_port", &StreamHandle::udp_port)
        .def("connect", &connect_stream)
        .def("link", &StreamHandle::link)
        .def("unlink", &StreamHandle::unlink)
        .def("mute", &StreamHandle::mute)
        .def("comfort_noise", &StreamHandle::comfort_noise)
        .def("send_dtmf", &send_digits)
        .def("set_media_timeout",
             [](StreamHandle& stream, std::uint32_t ms, std::uint32_t hold_ms) {
                 stream.set_media_timeout(std::int64_t{ms} * 1'000'000, std::int64_t{hold_ms} * 1'000'000);
             })
        .def("start_recording", &StreamHandle::start_recording)
        .def("pause_recording", &StreamHandle::pause_recording)
        .def("stop_recording", &StreamHandle::stop_recording)
        .def("open_tap",
             [](StreamHandle& stream, const std::string& encoding, std::uint32_t rate_hz, bool both) {
                 return stream.open_tap(trunkline::bindings::format_of(encoding, rate_hz), both);
             })
        .def("listen", &StreamHandle::listen)
        .def("monitor", &StreamHandle::monitor)
        .def("close", &StreamHandle::close);
    trunkline::bindings::bind_detection(module, stream);
    trunkline::bindings::bind_playback(stream);
    trunkline::bindings::bind_quality(stream);

    auto engine = nb::class_<Engine>(module, "Engine");
    engine.def(nb::new_(&make_engine))
        .def(
            "open_stream", [](Engine& engine, const StreamHandle* near) { return engine.open_stream(near); },
            nb::arg("near").none())
        .def("open_conference", &Engine::open_conference)
        .def("fileno", &Engine::descriptor)
        .def("advance", &Engine::advance)
        .def("next_id", &Engine::next_id)
        .def("drain", &drain_engine)
        .def("stats", &engine_stats)
        .def("dropped", &engine_drops)
        .def("close", [](Engine& engine) {
            // With the lock: the collector may let go of a handle on any other thread.
            engine.shut();
            const nb::gil_scoped_release unlocked;
            engine.close();
        });
    trunkline::bindings::bind_agent_socket(module, engine);
    trunkline::bindings::bind_browser_socket(module, engine);
}
