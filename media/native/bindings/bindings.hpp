#pragma once

#include <nanobind/nanobind.h>

namespace trunkline::bindings {

/// Each part of the module binds what it has; see media/_engine.pyi for the contract.
void bind_settings(nanobind::module_& module);
void bind_recording(nanobind::module_& module);

}  // namespace trunkline::bindings
