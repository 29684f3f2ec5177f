#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "trunkline/rtp/reception.hpp"
#include "trunkline/rtp/rtcp.hpp"

namespace trunkline::rtp {

/// What a stream has sent so far, for its sender reports.
struct Outgoing {
    std::uint64_t packets = 0;
    std::uint64_t payload_bytes = 0;
    std::uint32_t rtp_timestamp = 0;  ///< That belongs to the present.
};

/// What the far end last said about our packets.
struct FarReport {
    std::int32_t cumulative_lost = 0;
    std::uint32_t highest_sequence = 0;
    std::uint32_t jitter = 0;        ///< In units of our RTP clock.
    std::uint8_t fraction_lost = 0;  ///< In 1/256, since the report before.
    std::uint8_t discard_rate = 0;   ///< In 1/256, of a VoIP metrics block; 0 where none comes.
};

/// RTCP between two parties: what is said when, and what the far end says (RFC 3550 6).
///
/// Time is an argument; the clock told to the far end is the caller's, moved by a constant, so that it never
/// jumps. Sender reports name both times of one instant (6.4.1). With two parties neither reconsideration nor
/// back-off of BYE applies (6.3.3, 6.3.7).
class RtcpSession final : private RtcpHandler {
  public:
    /// Mean time between reports (6.2); the first comes after half of it.
    static constexpr std::int64_t interval_ns = 5'000'000'000;
    /// Room for any packet this makes.
    static constexpr std::size_t max_bytes = 160;
    static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

    /// `ntp_at_zero` is the wall-clock time at the zero of the clock that gives the time. From `seed` come
    /// the intervals and the CNAME, which names this stream alone (RFC 7022).
    RtcpSession(std::uint32_t ssrc, std::uint64_t seed, NtpTime ntp_at_zero);

    /// Reports may be sent from now on; harmless when they may already.
    void start(std::int64_t now_ns);

    /// When the next report is due; `never_ns` before `start`.
    std::int64_t due_ns() const { return due_ns_; }

    /// Write the report that is due and set the time of the next. With `bye`, the last one (6.6).
    std::span<std::uint8_t> report(std::span<std::uint8_t> room, const Outgoing& sent, Reception& reception,
                                   bool bye, std::int64_t now_ns);

    /// Process a compound packet of the far end; false when it is malformed.
    bool take(std::span<const std::uint8_t> datagram, std::int64_t now_ns);

    /// An SSRC to send under, when the present one is taken (8.1).
    std::uint32_t random_ssrc() { return static_cast<std::uint32_t>(random() >> 32); }

    /// Send under another SSRC from now on; its counts begin with what was `sent` before.
    void change_ssrc(std::uint32_t ssrc, const Outgoing& sent);

    /// True if the far end has sent reports of its own under our SSRC since this was last asked; those that
    /// only come back to us do not count.
    bool collided();

    std::uint32_t ssrc() const { return ssrc_; }
    std::string_view cname() const { return {cname_.data(), cname_.size()}; }
    /// True after a BYE of the far end, until its next report.
    bool far_bye() const { return far_bye_; }
    /// What the far end says about the packets of our present SSRC.
    const std::optional<FarReport>& far_report() const { return far_report_; }
    /// Time to the far end and back; nothing before the first of its reports that tells it.
    std::optional<std::uint32_t> round_trip_us() const { return round_trip_us_; }
    NtpTime ntp(std::int64_t now_ns) const;

  private:
    /// A time the far end gave, and when it came.
    struct Reference {
        std::uint32_t ssrc = 0;
        std::uint32_t middle = 0;
        std::int64_t arrival_ns = 0;
    };

    void sender_report(std::uint32_t reporter, const SenderInfo& info) override;
    void receiver_report(std::uint32_t reporter) override;
    void report_block(std::uint32_t reporter, const ReportBlock& block) override;
    void cname(std::uint32_t, std::string_view) override {}
    void bye(std::uint32_t ssrc) override;
    void reference_time(std::uint32_t reporter, NtpTime time) override;
    void reference_delay(std::uint32_t reporter, const ReferenceDelay& item) override;
    void voip_metrics(std::uint32_t reporter, const VoipMetrics& metrics) override;

    std::uint64_t random();
    void set_due(std::int64_t mean_ns, std::int64_t now_ns);
    void write_report(RtcpWriter& writer, const Outgoing& sent, Reception& reception, std::int64_t now_ns);
    void write_extended(RtcpWriter& writer, bool sender, std::int64_t now_ns);
    void measure(std::uint32_t sent_middle, std::uint32_t delay);
    void remember_sent(std::uint32_t middle);
    bool was_sent(std::uint32_t middle) const;

    std::uint32_t ssrc_;
    std::uint64_t random_state_;
    NtpTime ntp_at_zero_;
    std::array<char, 16> cname_{};
    std::int64_t due_ns_ = never_ns;
    std::int64_t now_ns_ = 0;  ///< Of the packet being taken in.

    Outgoing before_;                              ///< What was sent under earlier SSRCs.
    std::array<std::uint64_t, 2> sent_packets_{};  ///< At the last report and the one before.
    std::array<std::uint32_t, 4>
        sent_middles_{};  ///< Times in our last reports; what refers to others is made up.
    std::size_t next_middle_ = 0;

    std::optional<Reference> last_sender_report_;
    std::optional<Reference> last_reference_;
    bool far_extended_ = false;  ///< The far end sends extended reports, so it will understand ours.
    bool far_bye_ = false;
    bool collided_ = false;
    std::optional<FarReport> far_report_;
    std::uint8_t discard_rate_ = 0;
    std::optional<std::uint32_t> round_trip_us_;
};

}  // namespace trunkline::rtp
