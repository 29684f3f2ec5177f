// Conferences.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "trunkline/engine/conference_handle.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using engine::ConferenceHandle;
using Targets = std::optional<std::vector<std::uint64_t>>;

bool add_member(ConferenceHandle& conference, const std::shared_ptr<engine::StreamHandle>& stream,
                bool listen_only, bool muted, Targets whisper_to) {
    return conference.add(stream, {listen_only, muted, std::move(whisper_to)});
}

void change_member(ConferenceHandle& conference, std::uint64_t stream, bool listen_only, bool muted,
                   Targets whisper_to) {
    conference.change(stream, {listen_only, muted, std::move(whisper_to)});
}

/// As a stream plays, but nobody's digit or speech ends it.
void play(ConferenceHandle& conference, std::uint64_t id, const nb::sequence& clips, std::uint32_t plays,
          std::int32_t gain, std::uint32_t position_every_ms, bool, bool) {
    conference.play(make_playback(id, clips, plays, gain, position_every_ms));
}

}  // namespace

void bind_conference(nb::module_& module) {
    nb::class_<ConferenceHandle>(module, "Conference")
        .def_prop_ro("id", &ConferenceHandle::id)
        .def("add", &add_member, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
        .def("change", &change_member, nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
        .def("remove", &ConferenceHandle::remove)
        .def("levels", &ConferenceHandle::levels)
        .def("play", &play)
        .def("pause_playback", &ConferenceHandle::pause_playback)
        .def("resume_playback", &ConferenceHandle::resume_playback)
        .def("stop_playback", &ConferenceHandle::stop_playback)
        .def("start_recording", &ConferenceHandle::start_recording)
        .def("pause_recording", &ConferenceHandle::pause_recording)
        .def("stop_recording", &ConferenceHandle::stop_recording)
        .def("close", &ConferenceHandle::close);
}

}  // namespace trunkline::bindings
