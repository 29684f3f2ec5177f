#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace trunkline::rtp {

/// Wall-clock time as RTCP carries it: seconds since 1900 and a fraction, 32 bits each (RFC 3550 4).
using NtpTime = std::uint64_t;

/// The middle 32 bits, in units of 1/65536 s, as reports refer to them.
constexpr std::uint32_t middle_of(NtpTime time) {
    return static_cast<std::uint32_t>(time >> 16);
}

/// Report block of a receiver about one source (RFC 3550 6.4.1).
struct ReportBlock {
    std::uint32_t ssrc = 0;              ///< The source it is about.
    std::uint8_t fraction_lost = 0;      ///< In 1/256, since the report before.
    std::int32_t cumulative_lost = 0;    ///< 24 bits; negative when there were more duplicates than losses.
    std::uint32_t highest_sequence = 0;  ///< Extended by the number of wraps.
    std::uint32_t jitter = 0;            ///< In units of the RTP clock.
    std::uint32_t last_report = 0;       ///< Middle of the time in the last sender report; 0 before one came.
    std::uint32_t delay = 0;             ///< Since that report, in 1/65536 s.
};

/// Sender information (RFC 3550 6.4.1).
struct SenderInfo {
    NtpTime ntp = 0;
    std::uint32_t rtp_timestamp = 0;  ///< Of the same instant.
    std::uint32_t packets = 0;
    std::uint32_t payload_bytes = 0;
};

/// When a receiver that sends nothing was last heard of, and how long ago (RFC 3611 4.5).
struct ReferenceDelay {
    std::uint32_t ssrc = 0;
    std::uint32_t last_reference = 0;
    std::uint32_t delay = 0;  ///< In 1/65536 s.
};

/// The figures of a VoIP metrics block that we make use of (RFC 3611 4.7).
struct VoipMetrics {
    std::uint32_t ssrc = 0;
    std::uint8_t loss_rate = 0;     ///< In 1/256, since reception began.
    std::uint8_t discard_rate = 0;  ///< Likewise, of packets that came and were not played.
    std::uint16_t round_trip_ms = 0;
    std::uint16_t end_system_ms = 0;
    std::uint8_t r_factor = 127;  ///< 127 where it is not known.
    std::uint8_t mos_cq = 127;    ///< In tenths; 127 where it is not known.
};

/// Takes what a compound packet says. `reporter` is the SSRC of who says it.
class RtcpHandler {
  public:
    virtual void sender_report(std::uint32_t reporter, const SenderInfo& info) = 0;
    virtual void receiver_report(std::uint32_t reporter) = 0;
    virtual void report_block(std::uint32_t reporter, const ReportBlock& block) = 0;
    virtual void cname(std::uint32_t ssrc, std::string_view name) = 0;
    virtual void bye(std::uint32_t ssrc) = 0;
    virtual void reference_time(std::uint32_t reporter, NtpTime time) = 0;
    virtual void reference_delay(std::uint32_t reporter, const ReferenceDelay& item) = 0;
    virtual void voip_metrics(std::uint32_t reporter, const VoipMetrics& metrics) = 0;

  protected:
    ~RtcpHandler() = default;
};

/// Read a compound packet. False, and no call, unless all of it is well formed: it begins with a report,
/// lengths add up, padding stands only at its end (RFC 3550 6.1, A.2). Types not known are skipped.
bool read_rtcp(std::span<const std::uint8_t> datagram, RtcpHandler& handler);

/// Writes a compound packet, part by part, into a buffer of the caller's.
class RtcpWriter {
  public:
    explicit RtcpWriter(std::span<std::uint8_t> room) : room_(room) {}

    // The report comes first, and a CNAME must follow it (RFC 3550 6.1). At most 31 blocks are written.

    void sender_report(std::uint32_t ssrc, const SenderInfo& info, std::span<const ReportBlock> blocks);
    void receiver_report(std::uint32_t ssrc, std::span<const ReportBlock> blocks);
    /// At most 255 bytes of the name are written.
    void cname(std::uint32_t ssrc, std::string_view name);
    void bye(std::uint32_t ssrc);
    void reference_time(std::uint32_t ssrc, NtpTime time);
    void reference_delay(std::uint32_t ssrc, const ReferenceDelay& item);

    /// The packet; empty when it did not fit.
    std::span<std::uint8_t> packet() const { return room_.first(overflowed_ ? 0 : size_); }

  private:
    std::uint8_t* begin(std::size_t count, std::uint8_t type, std::size_t body_bytes);
    void write_blocks(std::uint8_t* at, std::span<const ReportBlock> blocks);

    std::span<std::uint8_t> room_;
    std::size_t size_ = 0;
    bool overflowed_ = false;
};

}  // namespace trunkline::rtp
