#include "trunkline/io/address.hpp"

#include <arpa/inet.h>

#include <cstring>

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

bool Address::same_network(const Address& other) const {
    if (family() != other.family()) return false;
    if (family() == AF_INET) {
        return ((any_.v4.sin_addr.s_addr ^ other.any_.v4.sin_addr.s_addr) & htonl(0xFFFFFF00)) == 0;
    }
    return std::memcmp(&any_.v6.sin6_addr, &other.any_.v6.sin6_addr, 8) == 0;
}

bool Address::reachable() const {
    if (any_.v4.sin_port == 0) return false;
    if (family() == AF_INET) return any_.v4.sin_addr.s_addr != htonl(INADDR_ANY);
    return family() == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&any_.v6.sin6_addr);
}

std::string Address::host() const {
    char text[INET6_ADDRSTRLEN] = "";
    if (family() == AF_INET) inet_ntop(AF_INET, &any_.v4.sin_addr, text, sizeof text);
    if (family() == AF_INET6) inet_ntop(AF_INET6, &any_.v6.sin6_addr, text, sizeof text);
    return text;
}

}  // namespace trunkline::io
