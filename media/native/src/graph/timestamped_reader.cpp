#include "trunkline/graph/timestamped_reader.hpp"

#include <algorithm>
#include <limits>

namespace trunkline::graph {

namespace {

/// So many late packets in a row mean that the delay has changed, not that packets lag.
constexpr int max_late_run = 5;
constexpr std::uint32_t trim_interval_samples = 16000;
/// Depth beyond the target that is put up with.
constexpr std::int32_t slack_samples = 240;

}  // namespace

void TimestampedReader::put(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool restarted) {
    if (!started_ || restarted) anchor(timestamp);
    switch (ring_.write(timestamp, samples)) {
        case SampleRing::Stored::stored:
            late_run_ = 0;
            return;
        case SampleRing::Stored::late:
            ++late_;
            // With nothing newer in the ring no audio is lost by starting over here.
            if (++late_run_ < max_late_run && ring_.ahead() > 0) return;
            break;
        case SampleRing::Stored::too_far:
            break;
    }
    anchor(timestamp);
    ring_.write(timestamp, samples);
}

std::uint32_t TimestampedReader::pull(std::span<std::int16_t> out) {
    if (!started_) {
        std::fill(out.begin(), out.end(), std::int16_t{0});
        return 0;
    }
    trim(static_cast<std::uint32_t>(out.size()));
    return ring_.read(out);
}

void TimestampedReader::anchor(std::uint32_t timestamp) {
    started_ = true;
    late_run_ = 0;
    since_trim_ = 0;
    shallowest_ = std::numeric_limits<std::int32_t>::max();
    ring_.reset(timestamp - target_samples_);
}

void TimestampedReader::trim(std::uint32_t pulled_samples) {
    shallowest_ = std::min(shallowest_, ring_.ahead());
    since_trim_ += pulled_samples;
    if (since_trim_ < trim_interval_samples) return;
    // Depth that was never needed for so long is delay without a use.
    const std::int32_t excess = shallowest_ - static_cast<std::int32_t>(target_samples_);
    if (excess > slack_samples) ring_.skip(static_cast<std::uint32_t>(excess));
    since_trim_ = 0;
    shallowest_ = std::numeric_limits<std::int32_t>::max();
}

}  // namespace trunkline::graph
