#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>

/// The header fields of a message as Python has them: the base class of `sip.message.message.Headers`.
namespace trunkline::wire {

namespace nb = nanobind;

/// Fields that every message needs, which are attributes of the header fields.
enum class Attribute : std::size_t { via, from, to, call_id, cseq };
constexpr std::size_t attribute_count = 5;

/// An instance: entries of key, name as written and value, typed views by key, and the attributes that have
/// been read.
struct HeaderFields {
    PyObject_HEAD;
    PyObject* entries;
    PyObject* views;
    std::array<PyObject*, attribute_count> attributes;

    PyObject*& operator[](Attribute attribute) { return attributes[static_cast<std::size_t>(attribute)]; }
};

/// A new instance of `type`, which is the class or one below it, of entries and views that were checked.
nb::object make_header_fields(nb::handle type, nb::object entries, nb::object views);

/// The entries of an instance; throws a TypeError of Python for any other object.
nb::list entries_of(nb::handle headers);

/// Adds the class, and the functions that belong to it, to the module.
void define_header_fields(nb::module_& module);

}  // namespace trunkline::wire
