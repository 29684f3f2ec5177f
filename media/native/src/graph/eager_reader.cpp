#include "trunkline/graph/eager_reader.hpp"

#include <algorithm>

namespace trunkline::graph {

namespace {

constexpr std::int64_t sample_ns = 125'000;
/// A run of late packets this long means that the network has become slower for good.
constexpr std::int64_t late_run_ns = 60'000'000;

}  // namespace

void EagerReader::put(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool restarted,
                      bool marker, std::int64_t now_ns) {
    if (!started_ || restarted) {
        started_ = true;
        ring_.reset(timestamp);
        heard_ = timestamp;
    }
    covered_ns_ = std::max(covered_ns_, now_ns + static_cast<std::int64_t>(samples.size()) * sample_ns);
    const bool was_empty = ring_.ahead() <= 0;
    switch (ring_.write(timestamp, samples)) {
        case SampleRing::Stored::stored:
            first_late_ns_ = 0;
            break;
        case SampleRing::Stored::late:
            put_late(timestamp, samples, marker, now_ns);
            break;
        case SampleRing::Stored::too_far:
            ring_.reset(timestamp);
            ring_.write(timestamp, samples);
            break;
    }
    // A sender that was silent has nothing on its way that could fill the gap.
    if (marker && was_empty) waiting_ns_ = now_ns - patience_ns;
    if (waiting_ns_ == 0) waiting_ns_ = now_ns;
}

void EagerReader::put_late(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool marker,
                           std::int64_t now_ns) {
    const bool was_replaced = static_cast<std::int32_t>(timestamp - heard_) >= 0;
    if (was_replaced && ring_.ahead() <= 0) {
        if (first_late_ns_ == 0) first_late_ns_ = now_ns;
        if (marker || now_ns - first_late_ns_ >= late_run_ns) {
            first_late_ns_ = 0;
            ring_.reset(timestamp);
            ring_.write(timestamp, samples);
            return;
        }
    }
    ++late_;
}

bool EagerReader::next(std::span<std::int16_t> out, std::int64_t now_ns) {
    const auto size = static_cast<std::uint32_t>(out.size());
    if (started_ && ring_.contiguous() >= size) {
        ring_.read(out);
        heard_ = ring_.position();
        waiting_ns_ = ring_.ahead() > 0 ? now_ns : 0;
        return true;
    }
    const bool gave_up = waiting_ns_ != 0 && now_ns - waiting_ns_ >= patience_ns;
    if (started_ && ring_.ahead() > 0) {
        if (!gave_up) return false;
        const std::uint32_t present = ring_.read(out);
        filled_samples_ += size - present;
        if (present != 0) heard_ = ring_.position();
        if (ring_.ahead() <= 0) waiting_ns_ = 0;
        return true;
    }
    waiting_ns_ = 0;
    return fill(out, now_ns);
}

bool EagerReader::fill(std::span<std::int16_t> out, std::int64_t now_ns) {
    if (now_ns - covered_ns_ < (started_ ? patience_ns : 0)) return false;
    covered_ns_ += static_cast<std::int64_t>(out.size()) * sample_ns;
    filled_samples_ += out.size();
    if (started_) {
        ring_.read(out);
    } else {
        std::fill(out.begin(), out.end(), std::int16_t{0});
    }
    return true;
}

}  // namespace trunkline::graph
