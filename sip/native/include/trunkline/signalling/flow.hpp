#pragma once

#include <array>
#include <cstdint>

namespace trunkline::signalling {

/// Address and port of a peer, as the system has them; the engine does not look into it.
struct Endpoint {
    std::array<char, 28> bytes{};
    std::uint8_t size = 0;
};

/// Where messages of a transaction go: a datagram socket and a remote address, or something that the owner
/// of the engine keeps by the number of the transaction.
struct Flow {
    static constexpr std::int32_t foreign = -1;

    /// Number of the socket, or `foreign`.
    std::int32_t socket = foreign;
    /// True if messages neither get lost nor overtake each other.
    bool reliable = false;
    /// Of a socket.
    Endpoint remote;
};

}  // namespace trunkline::signalling
