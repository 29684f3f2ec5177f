#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trunkline/signalling/flow.hpp"

namespace trunkline::signalling {

/// The endpoint of a literal of an IP address, with its zone if any; nothing for other text.
std::optional<Endpoint> endpoint_of(const std::string& host, std::uint16_t port);

/// The endpoint that the system names, for example as the source of a datagram.
Endpoint endpoint_of(const sockaddr_storage& address, socklen_t size);

/// As the system wants it.
const sockaddr* address_of(const Endpoint& endpoint);

/// Literal of the address; empty for what is none.
std::string host_of(const Endpoint& endpoint);
std::uint16_t port_of(const Endpoint& endpoint);
Endpoint with_port(Endpoint endpoint, std::uint16_t port);

/// The bytes of the address alone.
std::string_view address_bytes(const Endpoint& endpoint);

}  // namespace trunkline::signalling
