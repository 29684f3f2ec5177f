#pragma once

#include <nanobind/nanobind.h>

/// Messages, URIs and addresses as text: the objects of `sip.message` written without a call of Python.
namespace trunkline::wire {

namespace nb = nanobind;

/// Adds the classes and functions to the module.
void define_writing(nb::module_& module);

}  // namespace trunkline::wire
