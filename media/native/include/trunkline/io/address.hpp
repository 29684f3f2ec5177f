#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace trunkline::io {

/// An IPv4 or IPv6 address with a UDP port.
class Address {
  public:
    Address() { any_.v4 = {}; }

    /// Parse an IP literal; nothing when it is none.
    static std::optional<Address> parse(const std::string& host, std::uint16_t udp_port);

    bool operator==(const Address& other) const;

    /// Of host and port, for tables.
    struct Hash {
        std::size_t operator()(const Address& address) const;
    };

    /// True if both are in one /24 (IPv4) or /64 (IPv6): the same network behind a NAT that changed its
    /// address.
    bool same_network(const Address& other) const;

    /// True if both are the same host, whatever the port.
    bool same_host(const Address& other) const;

    /// True if it lies in a network that is not reached from the internet, so that a NAT must stand between
    /// (RFC 1918, 4193, 6598), or on this machine.
    bool is_private() const;

    bool is_loopback() const;
    bool is_wildcard() const;

    /// The same host with another port.
    Address with_port(std::uint16_t udp_port) const;

    /// The IP literal.
    std::string host() const;
    /// Its host as the network writes it: 4 or 16 bytes.
    std::span<const std::uint8_t> host_bytes() const;
    std::uint16_t udp_port() const { return ntohs(any_.v4.sin_port); }
    /// True if audio may be sent there: to one host, not to a group or to all. The wildcard address means
    /// hold in older offers (RFC 3264 8.4).
    bool reachable() const;
    bool empty() const { return any_.v4.sin_family == AF_UNSPEC; }
    int family() const { return any_.v4.sin_family; }

    /// For system calls that read an address, and for those that write one.
    sockaddr* raw() { return reinterpret_cast<sockaddr*>(&any_); }
    const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&any_); }
    socklen_t raw_size() const { return family() == AF_INET6 ? sizeof any_.v6 : sizeof any_.v4; }
    static constexpr socklen_t raw_capacity = sizeof(sockaddr_in6);

  private:
    std::uint32_t v4_host() const { return ntohl(any_.v4.sin_addr.s_addr); }
    /// True for an IPv4-mapped IPv6 address (RFC 4291 2.5.5.2), which a socket of IPv6 sends
    /// to all the same; and the host then.
    bool mapped() const { return family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&any_.v6.sin6_addr); }
    std::uint32_t mapped_host() const {
        const std::uint8_t* host = &any_.v6.sin6_addr.s6_addr[12];
        return std::uint32_t{host[0]} << 24 | std::uint32_t{host[1]} << 16 | std::uint32_t{host[2]} << 8 |
               host[3];
    }

    union {
        sockaddr_in v4;
        sockaddr_in6 v6;
    } any_;
};

}  // namespace trunkline::io
