// The Python module sip._wire: what reading and writing of plain messages takes, and of datagrams. The
// contract with the Python side is sip/_wire.pyi.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>

#include "datagrams.hpp"
#include "engine.hpp"
#include "reader.hpp"
#include "timer_queue.hpp"

namespace nb = nanobind;
using namespace trunkline::wire;

namespace {

std::string_view text_of(PyObject* text) {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(text, &size);
    if (data == nullptr) nb::raise_python_error();
    return {data, static_cast<std::size_t>(size)};
}

/// Calls `take` with the value of each entry of a key, until it returns false.
template <class Take>
void each_value(const nb::list& entries, const nb::str& key, Take take) {
    const Py_ssize_t length = PyUnicode_GET_LENGTH(key.ptr());
    for (nb::handle entry : entries) {
        if (!PyTuple_Check(entry.ptr()) || PyTuple_GET_SIZE(entry.ptr()) != 3) {
            throw nb::type_error("an entry is a tuple of key, name and value");
        }
        PyObject* const other = PyTuple_GET_ITEM(entry.ptr(), 0);
        if (other != key.ptr()) {
            if (!PyUnicode_Check(other) || PyUnicode_GET_LENGTH(other) != length) continue;
            if (PyUnicode_Compare(other, key.ptr()) != 0) continue;
        }
        if (!take(nb::handle(PyTuple_GET_ITEM(entry.ptr(), 2)))) return;
    }
}

nb::object first_value(const nb::list& entries, const nb::str& key) {
    nb::object found = nb::none();
    each_value(entries, key, [&found](nb::handle value) {
        found = nb::borrow(value);
        return false;
    });
    return found;
}

nb::list all_values(const nb::list& entries, const nb::str& key) {
    nb::list found;
    each_value(entries, key, [&found](nb::handle value) {
        found.append(value);
        return true;
    });
    return found;
}

/// Calls `take` with each piece of the header lines in turn.
template <class Take>
void each_piece(const nb::list& entries, Take take) {
    for (nb::handle entry : entries) {
        if (!PyTuple_Check(entry.ptr()) || PyTuple_GET_SIZE(entry.ptr()) != 3) {
            throw nb::type_error("an entry is a tuple of key, name and value");
        }
        if (text_of(PyTuple_GET_ITEM(entry.ptr(), 0)) == "content-length") continue;
        take(text_of(PyTuple_GET_ITEM(entry.ptr(), 1)));
        take(": ");
        take(text_of(PyTuple_GET_ITEM(entry.ptr(), 2)));
        take("\r\n");
    }
}

nb::object write_message(const nb::str& start, const nb::list& entries, const nb::bytes& body) {
    const std::string_view first = text_of(start.ptr());
    const std::string end = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    std::size_t size = first.size() + 2 + end.size() + body.size();
    each_piece(entries, [&size](std::string_view piece) { size += piece.size(); });
    nb::object written = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!written.is_valid()) nb::raise_python_error();
    char* out = PyBytes_AS_STRING(written.ptr());
    const auto put = [&out](std::string_view piece) {
        std::memcpy(out, piece.data(), piece.size());
        out += piece.size();
    };
    put(first);
    put("\r\n");
    each_piece(entries, put);
    put(end);
    put({body.c_str(), body.size()});
    return written;
}

}  // namespace

NB_MODULE(_wire, module) {
    module.doc() = "Reading and writing of plain SIP messages, their transactions and sources.";
    nb::set_leak_warnings(false);  // What is made at import lives until the process ends.
    nb::class_<Reader>(module, "Reader")
        .def(nb::init<const nb::dict&, const nb::dict&, const nb::object&, const nb::dict&>(),
             nb::arg("classes"), nb::arg("names"), nb::arg("split"), nb::arg("readers"))
        .def("read", &Reader::read, nb::arg("data"), nb::arg("limits"));
    trunkline::signalling::PythonSourceGuard::define(module);
    trunkline::signalling::DatagramReader::define(module);
    trunkline::signalling::PythonTimerQueue::define(module);
    trunkline::signalling::PythonEngine::define(module);
    // No names for their arguments, which are found by place: these are asked for every header field.
    module.def("first", &first_value);
    module.def("all_of", &all_values);
    module.def("write", &write_message, nb::arg("start"), nb::arg("entries"), nb::arg("body"));
}
