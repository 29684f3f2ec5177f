#pragma once

#include <nanobind/nanobind.h>

#include "trunkline/engine/engine.hpp"

namespace trunkline::bindings {

/// Each part of the module binds what it has; see media/_engine.pyi for the contract.
void bind_settings(nanobind::module_& module);
void bind_playback(nanobind::class_<engine::StreamHandle>& stream);

}  // namespace trunkline::bindings
