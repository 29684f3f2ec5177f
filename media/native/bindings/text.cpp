// Base64 for the frames of agent streams, the one text that is read and written fifty times a second.

#include <cstring>
#include <span>

#include "bindings.hpp"
#include "trunkline/text/base64.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

/// An uninitialised bytes object to write into.
nb::bytes made_bytes(std::size_t size) {
    PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (made == nullptr) throw nb::python_error();
    return nb::steal<nb::bytes>(made);
}

nb::bytes to_base64(const nb::bytes& before, const nb::bytes& audio, const nb::bytes& after) {
    const std::size_t size = text::base64_size(audio.size());
    nb::bytes made = made_bytes(before.size() + size + after.size());
    char* out = PyBytes_AS_STRING(made.ptr());
    std::memcpy(out, before.c_str(), before.size());
    text::to_base64({reinterpret_cast<const std::uint8_t*>(audio.c_str()), audio.size()},
                    out + before.size());
    std::memcpy(out + before.size() + size, after.c_str(), after.size());
    return made;
}

nb::object from_base64(const nb::bytes& frame, const nb::bytes& before, const nb::bytes& after) {
    const std::span<const char> text(frame.c_str(), frame.size());
    const std::size_t around = before.size() + after.size();
    if (text.size() < around || std::memcmp(text.data(), before.c_str(), before.size()) != 0 ||
        std::memcmp(text.data() + text.size() - after.size(), after.c_str(), after.size()) != 0) {
        return nb::none();
    }
    const auto payload = text.subspan(before.size(), text.size() - around);
    PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(payload.size() / 4 * 3));
    if (made == nullptr) throw nb::python_error();
    const auto size = text::from_base64(payload, reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(made)));
    if (!size) {
        Py_DECREF(made);
        return nb::none();
    }
    if (_PyBytes_Resize(&made, static_cast<Py_ssize_t>(*size)) != 0) throw nb::python_error();
    return nb::steal(made);
}

}  // namespace

void bind_text(nb::module_& module) {
    module.def("to_base64", &to_base64);
    module.def("from_base64", &from_base64);
}

}  // namespace trunkline::bindings
