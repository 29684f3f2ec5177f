#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <utility>

#include "header_fields.hpp"

/// What header fields can do; arguments are checked, and errors are those of Python.
namespace trunkline::wire::headers {

/// What `sip.message.message` knows of header fields. Set when that is imported, and never freed.
struct Rules {
    /// `KNOWN_NAMES`, and the keys of fields whose value is a list.
    nb::object names, lists;
    /// Keys of fields that only the session sets, and of those of ours that an application may replace.
    nb::object owned_keys, replaceable;
    nb::object split_list, check_encodable, invalid_value;
    PyTypeObject* base = nullptr;
    /// What reads each attribute, and the key of its field.
    std::array<std::pair<nb::object, nb::object>, attribute_count> attributes;
};

Rules& rules();

inline HeaderFields& of(PyObject* self) {
    return *reinterpret_cast<HeaderFields*>(self);
}

/// The value of the first entry of a key, or None.
nb::object first(HeaderFields& fields, nb::handle key);
/// The values of all entries of a key.
nb::object all_of(HeaderFields& fields, nb::handle key);
/// As `first`, for a name in any spelling.
nb::object get(HeaderFields& fields, nb::handle name);
/// The values of a name, lists split.
nb::object get_all(HeaderFields& fields, nb::handle name);
/// Name as written and value of each entry.
nb::object items(HeaderFields& fields);
/// The cached view of a key; read by `parse` when there is none.
nb::object typed(HeaderFields& fields, nb::handle key, nb::handle parse);
/// Append a field.
nb::object add(HeaderFields& fields, nb::handle name, nb::handle value);
/// Append pairs of name and value.
nb::object extend(HeaderFields& fields, nb::handle added);
/// Replace all fields of a name by one, in the place of the first.
nb::object set(HeaderFields& fields, nb::handle name, nb::handle value);
/// Add the fields of an application.
nb::object add_custom(HeaderFields& fields, nb::handle added);
/// Put a Via before all others.
nb::object push_via(HeaderFields& fields, nb::handle value);
/// Remove all fields of a name.
nb::object remove(HeaderFields& fields, nb::handle name);
/// Append the fields of these keys from another message.
nb::object copy_keys(HeaderFields& fields, nb::handle other, nb::handle keys);
/// An independent copy.
nb::object copy(HeaderFields& fields);

}  // namespace trunkline::wire::headers
