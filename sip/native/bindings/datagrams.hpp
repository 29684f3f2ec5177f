#pragma once

#include <nanobind/nanobind.h>

#include <string>

/// Datagrams to and from a socket that does not block. The interpreter lock is kept: none of this waits, and
/// to give the lock away would have other threads run in the middle of a message.
namespace trunkline::wire {

/// Up to `most` datagrams that are there, each with host and port of its source; none when there are none.
/// Throws OSError for what the system says of an earlier datagram.
nanobind::list receive_datagrams(int socket, std::size_t most);

/// Send one datagram to an address; 0, or the errno of the refusal.
int send_datagram(int socket, const nanobind::bytes& data, const std::string& host, std::uint16_t port);

}  // namespace trunkline::wire
