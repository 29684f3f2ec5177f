#pragma once

#include <cstddef>
#include <cstdint>

#include "trunkline/engine/readable.hpp"
#include "trunkline/engine/rtcp_path.hpp"
#include "trunkline/io/udp_socket.hpp"
#include "trunkline/rtp/quality.hpp"
#include "trunkline/rtp/rtcp_session.hpp"
#include "trunkline/util/history.hpp"

namespace trunkline::engine {

class Stream;

/// Intervals of quality that are kept of a stream: about three minutes.
inline constexpr std::size_t quality_capacity = 36;

/// RTCP of a stream: the session, the path to the far end, measurements, and a socket of
/// its own where RTCP does not share the port of RTP.
class RtcpState final : public Readable {
  public:
    RtcpState(Stream& stream, std::uint32_t ssrc, std::int64_t now_ns);

    /// Read what came on the port of its own.
    bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) override;

    rtp::RtcpSession session;
    rtp::QualityMeter meter;
    RtcpPath path;
    io::UdpSocket socket;
    util::History<rtp::QualityInterval, quality_capacity> history;
    std::int64_t heard_ns = 0;
    bool spoken = false;  ///< Something was sent, so that a goodbye is due (RFC 3550 6.3.7).

  private:
    Stream& stream_;
};

}  // namespace trunkline::engine
