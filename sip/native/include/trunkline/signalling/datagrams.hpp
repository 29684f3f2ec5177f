#pragma once

#include <sys/socket.h>
#include <time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "trunkline/signalling/flow.hpp"

namespace trunkline::signalling {

/// Receive buffers for datagrams of a socket that does not block: memory is only used for as many as ever
/// arrived at once.
class Datagrams {
  public:
    static constexpr std::size_t most_bytes = 65535;
    static constexpr std::size_t most_at_once = 32;

    Datagrams();

    /// Receive up to `most` datagrams that wait; their number, or below 0 with `errno`.
    int receive(int descriptor, std::size_t most);

    std::string_view data(std::size_t place) const {
        return {static_cast<const char*>(places_[place].iov_base), headers_[place].msg_len};
    }
    Endpoint source(std::size_t place) const;
    /// When the system got the first of those received last, by its wall clock; nothing when the socket does
    /// not ask for time stamps (SO_TIMESTAMPNS).
    std::optional<std::int64_t> arrived_at_ns() const;

  private:
    std::unique_ptr<char[]> bytes_;
    std::array<sockaddr_storage, most_at_once> sources_{};
    std::array<iovec, most_at_once> places_{};
    std::array<mmsghdr, most_at_once> headers_{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(timespec))> stamp_{};
};

/// True for line ends, spaces and zeros, which keep a way through a NAT open and say nothing.
bool is_keep_alive(std::string_view data);

/// Send one datagram without waiting; 0, or the `errno` of the refusal.
int send_datagram(int descriptor, std::string_view data, const Endpoint& remote);

}  // namespace trunkline::signalling
