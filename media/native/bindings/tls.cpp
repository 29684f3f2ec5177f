// The handshake of TLS, which Python drives until an engine takes over the connection.

#include "tls.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <stdexcept>

#include "bindings.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

tls::Client& client_of(TlsHolder& holder) {
    if (holder.client == nullptr) throw std::logic_error("an engine has the connection");
    return *holder.client;
}

nb::bytes read(TlsHolder& holder) {
    std::array<std::uint8_t, tls::Client::max_record_bytes> room;
    const std::size_t size = client_of(holder).read(room);
    return nb::bytes(room.data(), size);
}

nb::bytes take_output(TlsHolder& holder) {
    tls::Client& client = client_of(holder);
    const auto output = client.output();
    nb::bytes taken(output.data(), output.size());
    client.sent(output.size());
    return taken;
}

}  // namespace

void bind_tls(nb::module_& module) {
    nb::class_<tls::Context>(module, "TlsContext").def(nb::init<const std::string&>());
    nb::class_<TlsHolder>(module, "TlsClient")
        .def("__init__",
             [](TlsHolder* holder, const tls::Context& context, const std::string& host) {
                 new (holder) TlsHolder{std::make_unique<tls::Client>(context, host)};
             })
        .def_prop_ro("state",
                     [](TlsHolder& holder) { return static_cast<std::uint8_t>(client_of(holder).state()); })
        .def_prop_ro("fault", [](TlsHolder& holder) { return client_of(holder).fault(); })
        .def("receive",
             [](TlsHolder& holder, const nb::bytes& bytes) { client_of(holder).receive(octets_of(bytes)); })
        .def("read", &read)
        .def("write", [](TlsHolder& holder,
                         const nb::bytes& bytes) { return client_of(holder).write(octets_of(bytes)); })
        .def("take_output", &take_output);
}

}  // namespace trunkline::bindings
