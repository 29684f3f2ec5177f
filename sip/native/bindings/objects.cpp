#include "objects.hpp"

#include <structmember.h>

#include <cstring>

#include "trunkline/wire/characters.hpp"

namespace trunkline::wire {

namespace {

nb::object empty_str(std::size_t size) {
    PyObject* const text = PyUnicode_New(static_cast<Py_ssize_t>(size), 127);
    if (text == nullptr) nb::raise_python_error();
    return nb::steal(text);
}

}  // namespace

void refuse(nb::handle error, const char* text) {
    PyErr_SetString(error.ptr(), text);
    nb::raise_python_error();
}

nb::object owned(PyObject* made) {
    if (made == nullptr) nb::raise_python_error();
    return nb::steal(made);
}

nb::object to_str(std::string_view ascii) {
    nb::object text = empty_str(ascii.size());
    if (!ascii.empty()) std::memcpy(PyUnicode_1BYTE_DATA(text.ptr()), ascii.data(), ascii.size());
    return text;
}

nb::object to_lower_str(std::string_view ascii) {
    nb::object text = empty_str(ascii.size());
    auto* out = ascii.empty() ? nullptr : PyUnicode_1BYTE_DATA(text.ptr());
    for (const char character : ascii)
        *out++ = static_cast<Py_UCS1>(to_lower(character));
    return text;
}

nb::object none_or_str(std::string_view ascii) {
    return ascii.empty() ? nb::none() : to_str(ascii);
}

Py_ssize_t slot_offset(nb::handle type, const char* name) {
    const nb::object found = nb::steal(PyObject_GetAttrString(type.ptr(), name));
    if (!found.is_valid()) nb::raise_python_error();
    if (!PyObject_TypeCheck(found.ptr(), &PyMemberDescr_Type))
        throw nb::type_error("the class has no such slot");
    return reinterpret_cast<PyMemberDescrObject*>(found.ptr())->d_member->offset;
}

}  // namespace trunkline::wire
