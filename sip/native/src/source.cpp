#include "trunkline/signalling/source.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trunkline::signalling {

namespace {

constexpr std::size_t network_bytes = 8;
constexpr std::size_t mapped_bytes = 12;

}  // namespace

Source Source::host_of(const Endpoint& endpoint) {
    Source source;
    char* const bytes = source.bytes_.data();
    if (endpoint.size == sizeof(sockaddr_in)) {
        std::memcpy(bytes, endpoint.bytes.data() + offsetof(sockaddr_in, sin_addr), sizeof(in_addr));
        bytes[sort_at] = four;
    } else if (endpoint.size == sizeof(sockaddr_in6)) {
        sockaddr_in6 address{};
        std::memcpy(&address, endpoint.bytes.data(), sizeof(address));
        if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
            std::memcpy(bytes, address.sin6_addr.s6_addr + mapped_bytes, sizeof(in_addr));
            bytes[sort_at] = four;
        } else {
            std::memcpy(bytes, &address.sin6_addr, sizeof(in6_addr));
            std::memcpy(bytes + zone_at, &address.sin6_scope_id, sizeof(address.sin6_scope_id));
            bytes[sort_at] = six;
        }
    }
    return source;
}

Source Source::judged() const {
    if (sort() != six) return *this;
    Source source;
    std::copy_n(bytes_.begin(), network_bytes, source.bytes_.begin());
    source.bytes_[sort_at] = network;
    return source;
}

std::string Source::text() const {
    if (sort() == none) return "";
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(sort() == four ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
    std::string made = text.data();
    if (sort() == network) return made + "/64";
    std::uint32_t zone = 0;
    std::memcpy(&zone, bytes_.data() + zone_at, sizeof(zone));
    std::array<char, IF_NAMESIZE> name{};
    if (zone != 0) made += std::string("%") + (if_indextoname(zone, name.data()) ? name.data() : "");
    return made;
}

}  // namespace trunkline::signalling
