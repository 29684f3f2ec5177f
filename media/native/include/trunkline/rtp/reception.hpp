#pragma once

#include <cstdint>

#include "trunkline/rtp/jitter_meter.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/rtp/rtcp.hpp"
#include "trunkline/rtp/sequence_tracker.hpp"

namespace trunkline::rtp {

/// Verdict on a packet of the far end.
enum class Verdict : std::uint8_t {
    heard,      ///< The next packet of the source, or a straggler.
    restarted,  ///< Heard; timestamps and numbers begin anew.
    duplicate,  ///< Came before.
    suspect,    ///< Of another source or another run of numbers, which has not proved itself.
};

/// Follows one far end's packets: which source it is, what is lost, doubled, late, how evenly it comes.
///
/// Another SSRC from the same address is believed when two of its packets come in a row (RFC 3550 A.1) and
/// the source before it has fallen silent: who forges packets beside a living stream is not heard.
class Reception {
  public:
    /// Silence after which another SSRC may take over; longer than any distance between packets.
    static constexpr std::int64_t handover_ns = 80'000'000;

    explicit Reception(std::uint32_t clock_hz) : jitter_(clock_hz) {}

    /// Timestamps are counted in another clock from the next packet on.
    void set_clock(std::uint32_t clock_hz) { jitter_.set_clock(clock_hz); }

    /// The far end moved: the next packet may bring another SSRC.
    void reopen() { open_ = true; }

    /// Judge a packet. Those that do not tell the time of their sending (RFC 4733 events) are not `timed`.
    Verdict note(const Header& header, bool timed, std::int64_t now_ns);

    /// True if a source was heard.
    bool started() const { return started_; }
    std::uint32_t ssrc() const { return ssrc_; }
    std::uint64_t duplicates() const { return duplicates_; }
    /// Packets of sources that did not prove themselves.
    std::uint64_t suspects() const { return suspects_; }
    std::uint32_t jitter_us() const { return jitter_.jitter_us(); }
    const SequenceTracker& sequence() const { return sequence_; }

    /// True if anything came since the last `report`.
    bool news() const { return started_ && received_with_duplicates() != prior_received_; }

    /// Report block about the source; the next one begins where this ends (RFC 3550 A.3).
    ReportBlock report();

  private:
    bool belongs(const Header& header, std::int64_t now_ns);
    void adopt(std::uint32_t ssrc);
    void begin_run();
    std::uint64_t received_with_duplicates() const { return sequence_.run_received() + run_duplicates_; }

    bool started_ = false;
    bool open_ = true;
    bool adopted_ = false;  ///< The packet being judged is the first of its source.
    std::uint32_t ssrc_ = 0;
    std::int64_t last_ns_ = 0;
    bool has_candidate_ = false;
    std::uint32_t candidate_ssrc_ = 0;
    std::uint16_t candidate_next_ = 0;

    SequenceTracker sequence_;
    JitterMeter jitter_;
    std::uint64_t duplicates_ = 0;
    std::uint64_t suspects_ = 0;
    std::uint64_t run_duplicates_ = 0;
    std::uint64_t prior_expected_ = 0;
    std::uint64_t prior_received_ = 0;
};

}  // namespace trunkline::rtp
