#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "trunkline/codec/format.hpp"
#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::bindings {

/// Each part of the module binds what it has; see media/_engine.pyi for the contract.
void bind_audio(nanobind::module_& module);
void bind_detection(nanobind::module_& module, nanobind::class_<engine::StreamHandle>& stream);
void bind_playback(nanobind::class_<engine::StreamHandle>& stream);
void bind_quality(nanobind::class_<engine::StreamHandle>& stream);
void bind_recording(nanobind::module_& module);
void bind_settings(nanobind::module_& module);
void bind_text(nanobind::module_& module);

/// Put what RTCP tells into the figures of a stream.
void add_quality(nanobind::dict& stats, const engine::StreamSnapshot& snapshot);

/// The codec of that name, as media/types.py writes it; throws std::invalid_argument for another.
codec::Codec codec_of(const std::string& name);

}  // namespace trunkline::bindings
