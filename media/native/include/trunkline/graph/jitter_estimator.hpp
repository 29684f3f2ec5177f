#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace trunkline::graph {

/// Variation of packet arrivals: the quickest way through the network of late, and how far behind
/// it nearly all packets stay. It tells how long a packet is worth waiting for.
///
/// The quickest is the least of the last 4 to 8 seconds, so that it follows the drift between two clocks. The
/// lag is kept in a histogram that forgets with some 500 packets.
class JitterEstimator {
  public:
    /// Begin anew at a packet that came as quickly as can be; what is known of the lag stays.
    void begin(std::int64_t media_ns, std::int64_t now_ns);

    /// Process a packet that begins at `media_ns` on the sender's clock.
    void note(std::int64_t media_ns, std::int64_t now_ns);

    /// Shift the clocks against one another: all lag by so much more.
    void shift(std::int64_t by_ns);

    /// Delay of a packet that arrives now behind the quickest; negative when it is quicker than all.
    std::int64_t lag_ns(std::int64_t media_ns, std::int64_t now_ns) const {
        return now_ns - media_ns - fastest_ns();
    }

    /// Least of arrival minus media time.
    std::int64_t fastest_ns() const { return fastest_[0] < fastest_[1] ? fastest_[0] : fastest_[1]; }

    /// The lag that all but one packet in a hundred stay within, to the next 5 ms.
    std::int64_t spread_ns() const { return spread_ns_; }

    /// Lags beyond this say that the path or the sender has changed; they are not taken in.
    static constexpr std::int64_t max_lag_ns = 1'000'000'000;

  private:
    static constexpr std::size_t bins = 64;
    static constexpr std::int64_t bin_ns = 5'000'000;
    static constexpr std::int64_t window_ns = 4'000'000'000;
    static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

    void measure();

    std::array<std::int64_t, 2> fastest_{0, never_ns};  ///< Of this window and the one before.
    std::int64_t window_end_ns_ = 0;
    std::array<float, bins> lags_{};
    float weight_ = 1;  ///< Of the next packet; it grows, which is the same as forgetting the others.
    float total_ = 0;
    std::uint32_t unmeasured_ = 0;
    std::int64_t spread_ns_ = 0;
};

}  // namespace trunkline::graph
