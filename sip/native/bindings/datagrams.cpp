#include "datagrams.hpp"

#include <algorithm>
#include <cerrno>

#include "trunkline/signalling/datagrams.hpp"
#include "trunkline/signalling/endpoint.hpp"

namespace trunkline::wire {

namespace nb = nanobind;

nb::list receive_datagrams(int socket, std::size_t most) {
    static signalling::Datagrams batch;  // Used under the interpreter lock, which is never given away here.
    nb::list received;
    const int count = batch.receive(socket, most);
    if (count < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return received;
        PyErr_SetFromErrno(PyExc_OSError);
        nb::raise_python_error();
    }
    for (std::size_t place = 0; place < static_cast<std::size_t>(count); ++place) {
        const std::string_view data = batch.data(place);
        const signalling::Endpoint source = batch.source(place);
        received.append(nb::make_tuple(
            nb::bytes(data.data(), data.size()),
            nb::make_tuple(nb::str(signalling::host_of(source).c_str()), signalling::port_of(source))));
    }
    return received;
}

int send_datagram(int socket, const nb::bytes& data, const std::string& host, std::uint16_t port) {
    const auto remote = signalling::endpoint_of(host, port);
    if (!remote) return EINVAL;
    return signalling::send_datagram(socket, {data.c_str(), data.size()}, *remote);
}

}  // namespace trunkline::wire
