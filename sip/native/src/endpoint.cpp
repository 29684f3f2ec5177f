#include "trunkline/signalling/endpoint.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace trunkline::signalling {

namespace {

static_assert(sizeof(Endpoint::bytes) >= sizeof(sockaddr_in6));

template <class Address>
Endpoint pack(const Address& address) {
    Endpoint endpoint;
    std::memcpy(endpoint.bytes.data(), &address, sizeof(address));
    endpoint.size = sizeof(address);
    return endpoint;
}

template <class Address>
Address unpack(const Endpoint& endpoint) {
    Address address{};
    std::memcpy(&address, endpoint.bytes.data(), sizeof(address));
    return address;
}

bool is_six(const Endpoint& endpoint) {
    return endpoint.size == sizeof(sockaddr_in6);
}

}  // namespace

std::optional<Endpoint> endpoint_of(const std::string& host, std::uint16_t port) {
    sockaddr_in four{};
    if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        return pack(four);
    }
    sockaddr_in6 six{};
    const auto zone = host.find('%');
    if (inet_pton(AF_INET6, host.substr(0, zone).c_str(), &six.sin6_addr) != 1) return std::nullopt;
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (zone != std::string::npos) six.sin6_scope_id = if_nametoindex(host.c_str() + zone + 1);
    return pack(six);
}

Endpoint endpoint_of(const sockaddr_storage& address, socklen_t size) {
    Endpoint endpoint;
    endpoint.size = static_cast<std::uint8_t>(std::min<std::size_t>(size, endpoint.bytes.size()));
    std::memcpy(endpoint.bytes.data(), &address, endpoint.size);
    return endpoint;
}

const sockaddr* address_of(const Endpoint& endpoint) {
    return reinterpret_cast<const sockaddr*>(endpoint.bytes.data());
}

std::string host_of(const Endpoint& endpoint) {
    std::array<char, NI_MAXHOST> text{};
    sockaddr_storage address{};
    std::memcpy(&address, endpoint.bytes.data(), endpoint.size);
    const int failed = getnameinfo(reinterpret_cast<const sockaddr*>(&address), endpoint.size, text.data(),
                                   text.size(), nullptr, 0, NI_NUMERICHOST);
    return failed == 0 ? text.data() : "";
}

std::uint16_t port_of(const Endpoint& endpoint) {
    return ntohs(is_six(endpoint) ? unpack<sockaddr_in6>(endpoint).sin6_port
                                  : unpack<sockaddr_in>(endpoint).sin_port);
}

Endpoint with_port(Endpoint endpoint, std::uint16_t port) {
    if (is_six(endpoint)) {
        auto six = unpack<sockaddr_in6>(endpoint);
        six.sin6_port = htons(port);
        return pack(six);
    }
    auto four = unpack<sockaddr_in>(endpoint);
    four.sin_port = htons(port);
    return pack(four);
}

std::string_view address_bytes(const Endpoint& endpoint) {
    if (is_six(endpoint)) {
        return {endpoint.bytes.data() + offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr)};
    }
    return {endpoint.bytes.data() + offsetof(sockaddr_in, sin_addr), sizeof(in_addr)};
}

}  // namespace trunkline::signalling
