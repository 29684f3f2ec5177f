// Playbacks: clips whose samples stay in the Python objects they came in.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "bindings.hpp"
#include "trunkline/graph/playback.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

constexpr std::size_t max_clips = 1024;
constexpr std::uint32_t max_pause_ms = 60'000;
/// Eight times: 18 dB.
constexpr std::int32_t max_gain = 8 * graph::Playback::unity_gain;

/// Keeps a bytes object alive as long as it is played from; let go with the interpreter lock held.
std::shared_ptr<const void> keep(const nb::bytes& bytes) {
    return {new nb::bytes(bytes), [](const void* object) {
                const nb::gil_scoped_acquire lock;
                delete static_cast<const nb::bytes*>(object);
            }};
}

graph::Clip clip_of(const nb::handle& entry) {
    const auto fields = nb::cast<nb::tuple>(entry);
    if (fields.size() != 3) throw std::invalid_argument("a clip has samples, a rate and a pause");
    const auto pcm = nb::cast<nb::bytes>(fields[0]);
    graph::Clip clip;
    clip.rate_hz = nb::cast<std::uint32_t>(fields[1]);
    clip.pause_ms = nb::cast<std::uint32_t>(fields[2]);
    if (clip.rate_hz != 8000 && clip.rate_hz != 16000) {
        throw std::invalid_argument("a clip's rate must be 8000 or 16000");
    }
    if (clip.pause_ms > max_pause_ms) throw std::invalid_argument("a pause lasts at most 60 s");
    clip.bytes = {reinterpret_cast<const std::uint8_t*>(pcm.c_str()), pcm.size()};
    clip.owner = keep(pcm);
    return clip;
}

void play(engine::StreamHandle& stream, std::uint64_t id, const nb::sequence& clips, std::uint32_t plays,
          std::int32_t gain, std::uint32_t position_every_ms, bool ends_by_digit, bool ends_by_speech) {
    auto playback = make_playback(id, clips, plays, gain, position_every_ms);
    playback->ends_by_digit = ends_by_digit;
    playback->ends_by_speech = ends_by_speech;
    stream.play(std::move(playback));
}

void play_track(engine::StreamHandle& stream, std::size_t track, std::uint64_t id, const nb::sequence& clips,
                std::uint32_t plays, std::int32_t gain) {
    stream.play_track(track, make_playback(id, clips, plays, gain, 0));
}

}  // namespace

std::unique_ptr<graph::Playback> make_playback(std::uint64_t id, const nb::sequence& clips,
                                               std::uint32_t plays, std::int32_t gain,
                                               std::uint32_t position_every_ms) {
    if (nb::len(clips) > max_clips) throw std::invalid_argument("a playback has at most 1024 clips");
    if (gain < 0 || gain > max_gain) throw std::invalid_argument("the gain must be at most 18 dB");
    auto playback = std::make_unique<graph::Playback>();
    playback->id = id;
    playback->plays = plays;
    playback->gain = gain;
    playback->position_every_ms = position_every_ms;
    playback->clips.reserve(nb::len(clips));
    for (const nb::handle entry : clips) {
        playback->clips.push_back(clip_of(entry));
    }
    return playback;
}

void bind_playback(nb::class_<engine::StreamHandle>& stream) {
    stream.def("play", &play)
        .def("pause_playback", &engine::StreamHandle::pause_playback)
        .def("resume_playback", &engine::StreamHandle::resume_playback)
        .def("stop_playback", &engine::StreamHandle::stop_playback)
        .def("play_track", &play_track)
        .def("stop_track", &engine::StreamHandle::stop_track);
}

}  // namespace trunkline::bindings
