#include "trunkline/rtp/jitter_meter.hpp"

#include <cmath>

namespace trunkline::rtp {

void JitterMeter::note(std::uint32_t timestamp, std::int64_t arrival_ns) {
    const std::int64_t whole_s = arrival_ns / 1'000'000'000;
    const std::int64_t rest_ns = arrival_ns % 1'000'000'000;
    const auto arrival =
        static_cast<std::uint32_t>(whole_s * clock_hz_ + rest_ns * clock_hz_ / 1'000'000'000);
    const std::uint32_t transit = arrival - timestamp;
    if (started_) {
        const auto difference = static_cast<std::int32_t>(transit - transit_);
        jitter_ += (std::abs(static_cast<double>(difference)) - jitter_) / 16.0;
    }
    transit_ = transit;
    started_ = true;
}

std::uint32_t JitterMeter::jitter_us() const {
    return static_cast<std::uint32_t>(jitter_ * 1e6 / clock_hz_);
}

}  // namespace trunkline::rtp
