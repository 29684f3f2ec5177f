#include "trunkline/rtp/quality.hpp"

#include <algorithm>
#include <cmath>

#include "trunkline/rtp/e_model.hpp"

namespace trunkline::rtp {

namespace {

/// More packets than any stream sends between two reports; what is above is a far end's mistake.
constexpr std::uint32_t max_expected = 100'000;

std::uint64_t grown(std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
}

std::uint16_t score(double loss, double burst_ratio, double delay_ms, codec::Codec codec) {
    const double rating = transmission_rating(impairment_of(codec), {loss, burst_ratio, delay_ms});
    return static_cast<std::uint16_t>(std::lround(100 * mean_opinion_score(rating)));
}

}  // namespace

double one_way_delay_ms(const QualityContext& context, std::uint32_t jitter_us) {
    const double network_ms = context.round_trip_us.value_or(0) / 2000.0;
    const double buffer_ms = std::max<double>(context.ptime_ms, 2 * (jitter_us / 1000.0));
    return network_ms + context.ptime_ms + buffer_ms;
}

std::uint16_t score_received(const ReceivedTotals& totals, const QualityContext& context) {
    if (totals.expected == 0) return 0;
    const auto expected = static_cast<double>(totals.expected);
    const double lost_share = static_cast<double>(totals.lost) / expected;
    const double loss = std::min(1.0, static_cast<double>(totals.lost + totals.discarded) / expected);
    double burst_ratio = 1;
    if (totals.bursts != 0) {
        // Lost at random, a burst is 1/(1-p) packets long (ITU-T G.107 7.5).
        const double burst = static_cast<double>(totals.lost) / static_cast<double>(totals.bursts);
        burst_ratio = std::max(1.0, burst * (1 - lost_share));
    }
    return score(loss, burst_ratio, one_way_delay_ms(context, totals.jitter_us), context.codec);
}

std::uint16_t score_sent(std::uint32_t expected, std::uint32_t lost, std::uint8_t discard_rate,
                         std::uint32_t jitter_us, const QualityContext& context) {
    if (expected == 0) return 0;
    const double loss = std::min(1.0, static_cast<double>(lost) / expected + discard_rate / 256.0);
    return score(loss, 1, one_way_delay_ms(context, jitter_us), context.codec);
}

QualityInterval QualityMeter::close(const ReceivedTotals& received, const std::optional<FarReport>& far,
                                    const QualityContext& context, std::int64_t now_ns) {
    ReceivedTotals part;
    part.expected = grown(received.expected, received_.expected);
    // A straggler may be of an earlier interval; no more can be lost than was expected.
    part.lost = std::min(grown(received.lost, received_.lost), part.expected);
    part.discarded = grown(received.discarded, received_.discarded);
    part.bursts = grown(received.bursts, received_.bursts);
    part.jitter_us = received.jitter_us;
    QualityInterval interval;
    interval.ended_ns = now_ns;
    interval.duration_ms = static_cast<std::uint32_t>((now_ns - began_ns_) / 1'000'000);
    interval.expected = static_cast<std::uint32_t>(part.expected);
    interval.lost = static_cast<std::uint32_t>(part.lost);
    interval.discarded = static_cast<std::uint32_t>(part.discarded);
    interval.jitter_us = received.jitter_us;
    if (part.bursts != 0) {
        interval.burst_hundredths = static_cast<std::uint32_t>(100 * part.lost / part.bursts);
    }
    interval.round_trip_us = context.round_trip_us.value_or(QualityInterval::no_round_trip);
    interval.mos_received = score_received(part, context);
    if (far) judge_sent(interval, *far, context);
    received_ = received;
    far_ = far;
    began_ns_ = now_ns;
    return interval;
}

void QualityMeter::judge_sent(QualityInterval& interval, const FarReport& far,
                              const QualityContext& context) {
    if (!far_) return;
    const std::uint32_t expected = far.highest_sequence - far_->highest_sequence;
    if (expected == 0 || expected > max_expected) return;
    const std::int64_t lost = std::int64_t{far.cumulative_lost} - far_->cumulative_lost;
    interval.sent_expected = expected;
    interval.sent_lost = static_cast<std::uint32_t>(std::clamp<std::int64_t>(lost, 0, expected));
    interval.sent_jitter_us = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(far.jitter * 1'000'000ULL / context.clock_hz, 10'000'000));
    interval.mos_sent =
        score_sent(expected, interval.sent_lost, far.discard_rate, interval.sent_jitter_us, context);
}

}  // namespace trunkline::rtp
