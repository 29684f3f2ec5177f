#pragma once

#include <algorithm>
#include <cstdint>

namespace trunkline::rtp {

/// How much a far end may send: what it says in half as much time again as passes, and a reserve for what a
/// path that was blocked delivers at once.
///
/// Nobody speaks faster than that. Packets that do are a flood, or go round between streams that were pointed
/// at one another; each would be decoded, mixed, encoded and sent on.
class Allowance {
  public:
    static constexpr std::int64_t most_ns = 10'000'000'000;
    /// What a packet counts at least, however little it holds.
    static constexpr std::int64_t least_ns = 2'000'000;

    /// Whether a packet of this length may be heard; it is counted then.
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
