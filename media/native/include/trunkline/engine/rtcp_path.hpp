#pragma once

#include <cstdint>
#include <optional>

#include "trunkline/engine/latch.hpp"
#include "trunkline/io/address.hpp"

namespace trunkline::engine {

/// Destination and accepted source of a stream's RTCP, following the latch of its RTP.
///
/// On the port of RTP (RFC 5761) both go the same way. On a port of its own, RTCP is heard from the host that
/// RTP comes from, or from the signalled address, and answered to the port it came from (RFC 4961).
class RtcpPath {
  public:
    /// Silence after which another port of the same host may take over: several reports.
    static constexpr std::int64_t silence_ns = 20'000'000'000;

    /// The address signalled in SDP; nothing where RTCP shares the port of RTP. The same as before changes
    /// nothing.
    void signal(const std::optional<io::Address>& remote);

    bool separate() const { return signalled_.has_value(); }

    /// True if RTCP from `source`, on our port for RTCP or (`shared`) for RTP, may be the far end's.
    bool allows(const io::Address& source, bool shared, const Latch& rtp, std::int64_t now_ns) const;

    /// A valid packet that was allowed came.
    void heard(const io::Address& source, bool shared, std::int64_t now_ns);

    /// Destination; may not be reachable.
    io::Address remote(const Latch& rtp) const;

  private:
    std::optional<io::Address> signalled_;
    std::optional<io::Address> source_;
    std::int64_t last_ns_ = 0;
};

}  // namespace trunkline::engine
