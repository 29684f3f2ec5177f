#pragma once

#include <nanobind/nanobind.h>

/// Construction of data classes of Python: what their generated `__init__`
/// does, without a call of Python.
namespace trunkline::bindings {

namespace nb = nanobind;

/// Let a data class with slots be constructed here; a class whose `__init__`
/// does more than to set its fields stays as it is. Arguments that do not fit
/// are left to `__init__`, which says what is wrong with them.
void construct_natively(const nb::object& cls);

}  // namespace trunkline::bindings
