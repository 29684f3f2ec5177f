#pragma once

#include <cstdint>

namespace trunkline::rtp {

/// Interarrival jitter of one source (RFC 3550 6.4.1, A.8).
class JitterMeter {
  public:
    explicit JitterMeter(std::uint32_t clock_hz) : clock_hz_(clock_hz) {}

    /// Process a packet; packets that share a timestamp (RFC 4733 events) must be left out.
    void note(std::uint32_t timestamp, std::int64_t arrival_ns);

    /// Forget the last transit, when the source starts its timestamps again.
    void restart() { started_ = false; }

    /// Begin anew with timestamps of another clock.
    void set_clock(std::uint32_t clock_hz) {
        if (clock_hz != clock_hz_) *this = JitterMeter(clock_hz);
    }

    /// Jitter in units of the clock.
    std::uint32_t jitter() const { return static_cast<std::uint32_t>(jitter_); }

    /// Jitter in microseconds; 0 before the second packet.
    std::uint32_t jitter_us() const;

  private:
    std::uint32_t clock_hz_;
    bool started_ = false;
    std::uint32_t transit_ = 0;  ///< Arrival minus timestamp, in clock units; its wraps cancel out.
    double jitter_ = 0;          ///< In clock units.
};

}  // namespace trunkline::rtp
