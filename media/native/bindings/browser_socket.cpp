// The socket of all browsers, and their legs.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "trunkline/engine/browser_socket_handle.hpp"
#include "trunkline/engine/engine.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using engine::BrowserLegHandle;
using engine::BrowserSocketHandle;

io::Address address_of(const std::string& host, std::uint16_t udp_port) {
    const auto address = io::Address::parse(host, udp_port);
    if (!address) throw std::invalid_argument("an address must be an IP literal");
    return *address;
}

}  // namespace

void bind_browser_socket(nb::module_& module, nb::class_<engine::Engine>& engine) {
    engine.def("open_browser_socket", &engine::Engine::open_browser_socket);
    nb::class_<BrowserSocketHandle>(module, "BrowserSocket")
        .def("send",
             [](BrowserSocketHandle& socket, const nb::bytes& datagram, const std::string& host,
                std::uint16_t udp_port) {
                 return socket.send(octets_of(datagram), address_of(host, udp_port));
             })
        .def("open_leg", &BrowserSocketHandle::open_leg)
        .def("release", &BrowserSocketHandle::release);
    nb::class_<BrowserLegHandle>(module, "BrowserLeg")
        .def_prop_ro("packets", &BrowserLegHandle::packets)
        .def("learn", [](BrowserLegHandle& leg, const std::string& host,
                         std::uint16_t udp_port) { leg.learn(address_of(host, udp_port)); })
        .def("select", [](BrowserLegHandle& leg, const std::string& host,
                          std::uint16_t udp_port) { leg.select(address_of(host, udp_port)); })
        .def("connect", [](BrowserLegHandle& leg, const std::string& host,
                           std::uint16_t udp_port) { return leg.connect(address_of(host, udp_port)); })
        .def("close", &BrowserLegHandle::close);
}

}  // namespace trunkline::bindings
