#include "trunkline/rtp/reception.hpp"

#include <algorithm>

namespace trunkline::rtp {

namespace {

constexpr std::int64_t max_cumulative = 0x7FFFFF;
constexpr std::int64_t min_cumulative = -0x800000;

}  // namespace

Verdict Reception::note(const Header& header, bool timed, std::int64_t now_ns) {
    adopted_ = false;
    if (!belongs(header, now_ns)) {
        ++suspects_;
        return Verdict::suspect;
    }
    const Arrival arrival = sequence_.note(header.sequence);
    if (arrival == Arrival::suspect) {
        ++suspects_;
        return Verdict::suspect;
    }
    last_ns_ = now_ns;
    if (arrival == Arrival::duplicate) {
        ++duplicates_;
        ++run_duplicates_;
        return Verdict::duplicate;
    }
    const bool restarted = adopted_ || arrival == Arrival::restarted;
    if (restarted) begin_run();
    if (timed) jitter_.note(header.timestamp, now_ns);
    return restarted ? Verdict::restarted : Verdict::heard;
}

ReportBlock Reception::report() {
    const std::uint64_t expected = sequence_.run_expected();
    const std::uint64_t received = received_with_duplicates();
    const auto cumulative = static_cast<std::int64_t>(expected - received);
    const auto newly_expected = static_cast<std::int64_t>(expected - prior_expected_);
    const auto newly_lost = newly_expected - static_cast<std::int64_t>(received - prior_received_);
    prior_expected_ = expected;
    prior_received_ = received;
    ReportBlock block;
    block.ssrc = ssrc_;
    if (newly_expected > 0 && newly_lost > 0) {
        block.fraction_lost =
            static_cast<std::uint8_t>(std::min<std::int64_t>(newly_lost * 256 / newly_expected, 255));
    }
    block.cumulative_lost = static_cast<std::int32_t>(std::clamp(cumulative, min_cumulative, max_cumulative));
    block.highest_sequence = sequence_.extended_highest();
    block.jitter = jitter_.jitter();
    return block;
}

/// True if the packet is of the source that is heard, or of one that may follow it.
bool Reception::belongs(const Header& header, std::int64_t now_ns) {
    if (started_ && header.ssrc == ssrc_) {
        has_candidate_ = false;
        open_ = false;
        return true;
    }
    if (!started_ || open_) {
        adopt(header.ssrc);
        return true;
    }
    const bool follows =
        has_candidate_ && header.ssrc == candidate_ssrc_ && header.sequence == candidate_next_;
    if (follows && now_ns - last_ns_ >= handover_ns) {
        adopt(header.ssrc);
        return true;
    }
    has_candidate_ = true;
    candidate_ssrc_ = header.ssrc;
    candidate_next_ = static_cast<std::uint16_t>(header.sequence + 1);
    return false;
}

void Reception::adopt(std::uint32_t ssrc) {
    adopted_ = true;
    if (started_) sequence_.restart();
    started_ = true;
    open_ = false;
    has_candidate_ = false;
    ssrc_ = ssrc;
}

void Reception::begin_run() {
    jitter_.restart();
    run_duplicates_ = 0;
    prior_expected_ = 0;
    prior_received_ = 0;
}

}  // namespace trunkline::rtp
