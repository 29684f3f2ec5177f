#pragma once

#include <cstdint>

#include "trunkline/io/address.hpp"

namespace trunkline::engine {

/// Symmetric RTP (RFC 4961): where the far end really is, learnt from its first valid packet and then kept.
///
/// Another source cannot take the stream over; only a newly signalled address opens it again, or a change of
/// port or address within the same network after the far end fell silent, as a rebooted NAT makes it.
class Latch {
  public:
    static constexpr std::int64_t silence_ns = 3'000'000'000;

    /// The address signalled in SDP. The same as before changes nothing.
    void signal(const io::Address& remote);

    /// Whether a valid packet from `source` belongs to the far end.
    bool accept(const io::Address& source, std::int64_t now_ns);

    bool latched() const { return latched_; }

    /// Where to send to; empty before anything was signalled.
    const io::Address& remote() const { return latched_ ? source_ : signalled_; }

  private:
    io::Address signalled_;
    io::Address source_;
    bool latched_ = false;
    std::int64_t last_ns_ = 0;
};

}  // namespace trunkline::engine
