#pragma once

#include <algorithm>
#include <cstdint>

namespace trunkline::rtp {

/// Token bucket for audio of a far end: 1.5 times real time, and a burst of 10 s for a path that was blocked.
///
/// No codec sends faster. Packets beyond that are a flood, or loop between streams that were pointed at one
/// another; each would be decoded, mixed, encoded and sent.
class TokenBucket {
  public:
    static constexpr std::int64_t most_ns = 10'000'000'000;
    /// Least cost of a packet, however short.
    static constexpr std::int64_t least_ns = 2'000'000;

    /// Take the tokens of a packet; false if it must be dropped.
    bool take(std::int64_t duration_ns, std::int64_t now_ns) {
        const std::int64_t passed_ns = std::clamp<std::int64_t>(now_ns - last_ns_, 0, most_ns);
        last_ns_ = now_ns;
        left_ns_ = std::min(left_ns_ + passed_ns + passed_ns / 2, most_ns);
        const std::int64_t cost_ns = std::max(duration_ns, least_ns);
        if (left_ns_ < cost_ns) return false;
        left_ns_ -= cost_ns;
        return true;
    }

  private:
    std::int64_t left_ns_ = most_ns;
    std::int64_t last_ns_ = 0;
};

}  // namespace trunkline::rtp
