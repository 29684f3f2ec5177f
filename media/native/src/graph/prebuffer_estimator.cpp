#include "trunkline/graph/prebuffer_estimator.hpp"

namespace trunkline::graph {

void PrebufferEstimator::note(std::int64_t lead_ns, std::int64_t since_ns) {
    if (since_ns >= burst_ns) greatest_lead_ns_ = std::max(greatest_lead_ns_, lead_ns);
    note_lag(lead_ns);
    seen_ns_ += std::clamp<std::int64_t>(since_ns, 0, max_since_ns);
    if (seen_ns_ < window_ns_) return;
    lags_ns_ = {0, lags_ns_[0]};
    seen_ns_ = 0;
    steady_ = true;
}

void PrebufferEstimator::note_gap(std::int64_t lead_ns) {
    if (-lead_ns > max_lag_ns) return;
    note_lag(lead_ns);
    if (steady_) window_ns_ = std::min(2 * window_ns_, longest_window_ns);
    seen_ns_ = 0;
    steady_ = false;
}

void PrebufferEstimator::note_lag(std::int64_t lead_ns) {
    const std::int64_t lag_ns = std::min(greatest_lead_ns_ - lead_ns, max_lag_ns);
    lags_ns_[0] = std::max(lags_ns_[0], lag_ns);
}

}  // namespace trunkline::graph
