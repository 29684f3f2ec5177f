#pragma once

#include <cstdint>
#include <optional>

#include "trunkline/codec/format.hpp"
#include "trunkline/rtp/rtcp_session.hpp"

namespace trunkline::rtp {

/// Quality of both directions of a stream between two reports.
struct QualityInterval {
    std::int64_t ended_ns = 0;
    std::uint32_t duration_ms = 0;
    // Received packets, as measured here.
    std::uint32_t expected = 0;
    std::uint32_t lost = 0;
    std::uint32_t discarded = 0;         ///< Came too late to be played.
    std::uint32_t burst_hundredths = 0;  ///< Mean number of packets lost in a row, times 100.
    std::uint32_t jitter_us = 0;
    // Sent packets, as the far end reports them; `sent_expected` 0: no report.
    std::uint32_t sent_expected = 0;
    std::uint32_t sent_lost = 0;
    std::uint32_t sent_jitter_us = 0;
    std::uint32_t round_trip_us = no_round_trip;
    // Opinion scores times 100; 0 where there is nothing to judge by.
    std::uint16_t mos_received = 0;
    std::uint16_t mos_sent = 0;

    static constexpr std::uint32_t no_round_trip = 0xFFFFFFFF;
};

/// Totals of what was received.
struct ReceivedTotals {
    std::uint64_t expected = 0;
    std::uint64_t lost = 0;
    std::uint64_t discarded = 0;
    std::uint64_t bursts = 0;
    std::uint32_t jitter_us = 0;
};

/// Inputs of a stream's score besides its packets.
struct QualityContext {
    codec::Codec codec = codec::Codec::pcmu;
    std::uint32_t clock_hz = 8000;
    std::uint32_t ptime_ms = 20;
    std::optional<std::uint32_t> round_trip_us;
};

/// Delay from mouth to ear as far as it can be known: half the round trip, a packet, and a jitter buffer of
/// twice the jitter, which a receiver needs at least.
double one_way_delay_ms(const QualityContext& context, std::uint32_t jitter_us);

/// Score times 100 of what was received; 0 when nothing was expected.
std::uint16_t score_received(const ReceivedTotals& totals, const QualityContext& context);

/// Score times 100 of what was sent; 0 when nothing was expected. The discard rate is in 1/256.
std::uint16_t score_sent(std::uint32_t expected, std::uint32_t lost, std::uint8_t discard_rate,
                         std::uint32_t jitter_us, const QualityContext& context);

/// Cuts the totals of a stream into intervals, both directions at a time.
class QualityMeter {
  public:
    explicit QualityMeter(std::int64_t now_ns = 0) : began_ns_(now_ns) {}

    /// End an interval and begin the next.
    QualityInterval close(const ReceivedTotals& received, const std::optional<FarReport>& far,
                          const QualityContext& context, std::int64_t now_ns);

    /// Restart the far end's reports: our SSRC changed.
    void forget_far() { far_.reset(); }

  private:
    void judge_sent(QualityInterval& interval, const FarReport& far, const QualityContext& context);

    std::int64_t began_ns_;
    ReceivedTotals received_;
    std::optional<FarReport> far_;
};

}  // namespace trunkline::rtp
