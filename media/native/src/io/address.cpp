#include "trunkline/io/address.hpp"

#include <arpa/inet.h>

#include <cstring>
#include <functional>
#include <string_view>

namespace trunkline::io {

std::optional<Address> Address::parse(const std::string& host, std::uint16_t udp_port) {
    Address address;
    if (inet_pton(AF_INET, host.c_str(), &address.any_.v4.sin_addr) == 1) {
        address.any_.v4.sin_family = AF_INET;
        address.any_.v4.sin_port = htons(udp_port);
        return address;
    }
    address.any_.v6 = {};
    if (inet_pton(AF_INET6, host.c_str(), &address.any_.v6.sin6_addr) == 1) {
        address.any_.v6.sin6_family = AF_INET6;
        address.any_.v6.sin6_port = htons(udp_port);
        return address;
    }
    return std::nullopt;
}

bool Address::operator==(const Address& other) const {
    if (family() != other.family() || any_.v4.sin_port != other.any_.v4.sin_port) return false;
    if (family() == AF_INET) return any_.v4.sin_addr.s_addr == other.any_.v4.sin_addr.s_addr;
    if (family() == AF_INET6) {
        return std::memcmp(&any_.v6.sin6_addr, &other.any_.v6.sin6_addr, sizeof any_.v6.sin6_addr) == 0;
    }
    return true;
}

std::size_t Address::Hash::operator()(const Address& address) const {
    const auto host = address.host_bytes();
    const std::string_view bytes(reinterpret_cast<const char*>(host.data()), host.size());
    return std::hash<std::string_view>{}(bytes) ^ address.udp_port() * std::size_t{0x9E3779B97F4A7C15};
}

bool Address::same_network(const Address& other) const {
    if (family() != other.family()) return false;
    if (family() == AF_INET) {
        return ((any_.v4.sin_addr.s_addr ^ other.any_.v4.sin_addr.s_addr) & htonl(0xFFFFFF00)) == 0;
    }
    return std::memcmp(&any_.v6.sin6_addr, &other.any_.v6.sin6_addr, 8) == 0;
}

bool Address::same_host(const Address& other) const {
    return with_port(other.udp_port()) == other;
}

bool Address::is_wildcard() const {
    if (family() == AF_INET) return v4_host() == INADDR_ANY;
    return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&any_.v6.sin6_addr);
}

bool Address::is_loopback() const {
    if (family() == AF_INET) return v4_host() >> 24 == 127;
    if (family() != AF_INET6) return false;
    return mapped() ? mapped_host() >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&any_.v6.sin6_addr);
}

bool Address::is_private() const {
    if (is_loopback()) return true;
    if (family() == AF_INET6) {
        const std::uint8_t first = any_.v6.sin6_addr.s6_addr[0];
        return (first & 0xFE) == 0xFC || IN6_IS_ADDR_LINKLOCAL(&any_.v6.sin6_addr);
    }
    const std::uint32_t host = v4_host();
    return host >> 24 == 10 || host >> 20 == 0xAC1 || host >> 16 == 0xC0A8 || host >> 16 == 0xA9FE ||
           host >> 22 == 0x6440 >> 6;
}

Address Address::with_port(std::uint16_t udp_port) const {
    Address other = *this;
    other.any_.v4.sin_port = htons(udp_port);
    return other;
}

bool Address::reachable() const {
    if (empty() || udp_port() == 0 || is_wildcard()) return false;
    // From 224.0.0.0 on: groups, what is reserved, and the broadcast address.
    if (family() == AF_INET) return v4_host() >> 28 < 0xE;
    if (mapped()) return mapped_host() >> 28 < 0xE && mapped_host() != INADDR_ANY;
    return !IN6_IS_ADDR_MULTICAST(&any_.v6.sin6_addr);
}

std::span<const std::uint8_t> Address::host_bytes() const {
    if (family() == AF_INET6) return any_.v6.sin6_addr.s6_addr;
    return {reinterpret_cast<const std::uint8_t*>(&any_.v4.sin_addr), sizeof any_.v4.sin_addr};
}

std::string Address::host() const {
    char text[INET6_ADDRSTRLEN] = "";
    if (family() == AF_INET) inet_ntop(AF_INET, &any_.v4.sin_addr, text, sizeof text);
    if (family() == AF_INET6) inet_ntop(AF_INET6, &any_.v6.sin6_addr, text, sizeof text);
    return text;
}

}  // namespace trunkline::io
