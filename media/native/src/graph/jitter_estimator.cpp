#include "trunkline/graph/jitter_estimator.hpp"

#include <algorithm>

namespace trunkline::graph {

namespace {

/// One packet counts so much more than the one before: after 500 packets a lag counts for a third.
constexpr float growth = 1.002F;
/// Where the weights are made small again, long before they lose precision.
constexpr float max_weight = 1e6F;
constexpr float tail = 0.01F;
constexpr std::uint32_t measure_interval = 8;

}  // namespace

void JitterEstimator::begin(std::int64_t media_ns, std::int64_t now_ns) {
    fastest_ = {now_ns - media_ns, never_ns};
    window_end_ns_ = now_ns + window_ns;
}

void JitterEstimator::note(std::int64_t media_ns, std::int64_t now_ns) {
    const std::int64_t transit_ns = now_ns - media_ns;
    const std::int64_t lag = std::max<std::int64_t>(transit_ns - fastest_ns(), 0);
    if (lag > max_lag_ns) return;
    if (now_ns >= window_end_ns_) {
        fastest_ = {transit_ns, fastest_[0]};
        window_end_ns_ = now_ns + window_ns;
    }
    fastest_[0] = std::min(fastest_[0], transit_ns);
    lags_[std::min<std::size_t>(static_cast<std::size_t>(lag / bin_ns), bins - 1)] += weight_;
    total_ += weight_;
    weight_ *= growth;
    if (++unmeasured_ >= measure_interval || lag > spread_ns_) measure();
}

void JitterEstimator::shift(std::int64_t by_ns) {
    for (std::int64_t& fastest : fastest_) {
        if (fastest != never_ns) fastest += by_ns;
    }
}

void JitterEstimator::measure() {
    unmeasured_ = 0;
    if (weight_ > max_weight) {
        for (float& lag : lags_) {
            lag /= weight_;
        }
        total_ /= weight_;
        weight_ = 1;
    }
    float beyond = 0;
    std::size_t bin = bins;
    while (bin > 0 && beyond + lags_[bin - 1] <= tail * total_) {
        beyond += lags_[--bin];
    }
    spread_ns_ = static_cast<std::int64_t>(bin) * bin_ns;
}

}  // namespace trunkline::graph
