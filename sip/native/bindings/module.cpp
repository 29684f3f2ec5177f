// The Python module sip._wire: what reading and writing of plain messages takes, and of datagrams. The
// contract with the Python side is sip/_wire.pyi.

#include <nanobind/nanobind.h>

#include "datagrams.hpp"
#include "engine.hpp"
#include "header_fields.hpp"
#include "reader.hpp"
#include "timer_queue.hpp"
#include "values.hpp"
#include "written.hpp"

namespace nb = nanobind;
using namespace trunkline::wire;

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
    module.def("construct_natively", &trunkline::bindings::construct_natively);
    define_header_fields(module);
    define_writing(module);
}
