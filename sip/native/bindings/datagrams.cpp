#include "datagrams.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace trunkline::wire {

namespace nb = nanobind;

namespace {

constexpr std::size_t max_datagram = 65535;
constexpr std::size_t max_batch = 32;

/// Receive buffers: memory is only used for as many datagrams as ever arrived at once.
struct Batch {
    std::unique_ptr<char[]> bytes = std::make_unique_for_overwrite<char[]>(max_batch * max_datagram);
    std::array<sockaddr_storage, max_batch> sources{};
    std::array<iovec, max_batch> places{};
    std::array<mmsghdr, max_batch> headers{};

    Batch() {
        for (std::size_t index = 0; index < max_batch; ++index) {
            places[index] = {bytes.get() + index * max_datagram, max_datagram};
        }
    }

    int receive(int socket, std::size_t most) {
        for (std::size_t index = 0; index < most; ++index) {
            headers[index] = {};
            headers[index].msg_hdr.msg_iov = &places[index];
            headers[index].msg_hdr.msg_iovlen = 1;
            headers[index].msg_hdr.msg_name = &sources[index];
            headers[index].msg_hdr.msg_namelen = sizeof(sources[index]);
        }
        return recvmmsg(socket, headers.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
    }
};

nb::object host_of(const sockaddr_storage& source, socklen_t size) {
    std::array<char, NI_MAXHOST> text{};
    const int failed = getnameinfo(reinterpret_cast<const sockaddr*>(&source), size, text.data(), text.size(),
                                   nullptr, 0, NI_NUMERICHOST);
    return nb::str(failed == 0 ? text.data() : "");
}

std::uint16_t port_of(const sockaddr_storage& source) {
    sockaddr_in6 six{};
    sockaddr_in four{};
    std::memcpy(&six, &source, sizeof(six));
    std::memcpy(&four, &source, sizeof(four));
    return ntohs(source.ss_family == AF_INET6 ? six.sin6_port : four.sin_port);
}

/// The address as the system wants it; its size, 0 for what is none.
socklen_t address_of(const std::string& host, std::uint16_t port, sockaddr_storage& address) {
    address = {};
    sockaddr_in four{};
    if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        std::memcpy(&address, &four, sizeof(four));
        return sizeof(four);
    }
    sockaddr_in6 six{};
    const auto zone = host.find('%');
    if (inet_pton(AF_INET6, host.substr(0, zone).c_str(), &six.sin6_addr) != 1) return 0;
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (zone != std::string::npos) six.sin6_scope_id = if_nametoindex(host.c_str() + zone + 1);
    std::memcpy(&address, &six, sizeof(six));
    return sizeof(six);
}

}  // namespace

nb::list receive_datagrams(int socket, std::size_t most) {
    static Batch batch;  // Used under the interpreter lock, which is never given away here.
    nb::list received;
    const int count = batch.receive(socket, std::min(most, max_batch));
    if (count < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return received;
        PyErr_SetFromErrno(PyExc_OSError);
        nb::raise_python_error();
    }
    for (int index = 0; index < count; ++index) {
        const auto at = static_cast<std::size_t>(index);
        const mmsghdr& header = batch.headers[at];
        received.append(
            nb::make_tuple(nb::bytes(static_cast<const char*>(batch.places[at].iov_base), header.msg_len),
                           nb::make_tuple(host_of(batch.sources[at], header.msg_hdr.msg_namelen),
                                          port_of(batch.sources[at]))));
    }
    return received;
}

int send_datagram(int socket, const nb::bytes& data, const std::string& host, std::uint16_t port) {
    sockaddr_storage address{};
    const socklen_t size = address_of(host, port, address);
    if (size == 0) return EINVAL;
    const auto sent = sendto(socket, data.c_str(), data.size(), MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&address), size);
    return sent < 0 ? errno : 0;
}

}  // namespace trunkline::wire
