#pragma once

#include <cstdint>
#include <span>

#include "trunkline/graph/sample_ring.hpp"

namespace trunkline::graph {

/// A fixed jitter buffer for a consumer with a clock of its own (a recorder, a mixer).
///
/// Audio comes out `target_samples` after it came in. Missing audio is silence. A sender whose clock differs
/// is followed by leaving out time it is ahead, and by silence for time it lags.
class TimestampedReader {
  public:
    explicit TimestampedReader(std::uint32_t target_samples) : target_samples_(target_samples) {}

    /// Take in decoded audio. `restarted` says that its timestamps have nothing to do with earlier ones.
    void put(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool restarted);

    /// Hand out the next piece of the unbroken stream. Returns how many samples of it were received.
    std::uint32_t pull(std::span<std::int16_t> out);

    /// Packets that came too late to be heard.
    std::uint64_t late() const { return late_; }

  private:
    void anchor(std::uint32_t timestamp);
    void trim(std::uint32_t pulled_samples);

    std::uint32_t target_samples_;
    SampleRing ring_;
    bool started_ = false;
    int late_run_ = 0;
    std::uint64_t late_ = 0;
    std::int32_t shallowest_ = 0;   ///< Least depth since the last trim.
    std::uint32_t since_trim_ = 0;  ///< Samples pulled since then.
};

}  // namespace trunkline::graph
