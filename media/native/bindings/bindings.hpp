#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>

#include "trunkline/codec/format.hpp"
#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::bindings {

/// Each part of the module binds what it has; see media/_engine.pyi for the contract.
void bind_agent_socket(nanobind::module_& module, nanobind::class_<engine::Engine>& engine);
void bind_audio(nanobind::module_& module);
void bind_browser_socket(nanobind::module_& module, nanobind::class_<engine::Engine>& engine);
void bind_conference(nanobind::module_& module);
void bind_conversion(nanobind::module_& module);
void bind_detection(nanobind::module_& module, nanobind::class_<engine::StreamHandle>& stream);
void bind_playback(nanobind::class_<engine::StreamHandle>& stream);
void bind_quality(nanobind::class_<engine::StreamHandle>& stream);
void bind_recording(nanobind::module_& module);
void bind_settings(nanobind::module_& module);
void bind_text(nanobind::module_& module);
void bind_tls(nanobind::module_& module);

/// Make a playback of clips, each with its samples, its rate and the pause behind it in ms; throws
/// std::invalid_argument for values out of range.
std::unique_ptr<graph::Playback> make_playback(std::uint64_t id, const nanobind::sequence& clips,
                                               std::uint32_t plays, std::int32_t gain,
                                               std::uint32_t position_every_ms);

inline std::span<const std::uint8_t> octets_of(const nanobind::bytes& bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()};
}

/// The format of audio by its encoding, "l16", "mulaw" or "alaw"; throws std::invalid_argument for another,
/// and for a rate other than 8000 and 16000.
graph::AudioFormat format_of(const std::string& encoding, std::uint32_t rate_hz);

/// The codec of that name, as media/types.py writes it; throws std::invalid_argument for another.
codec::Codec codec_of(const std::string& name);

}  // namespace trunkline::bindings
