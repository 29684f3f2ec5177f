#pragma once

#include <cstdint>

namespace trunkline::rtp {

/// Meaning of a packet's sequence number.
enum class Arrival : std::uint8_t {
    in_order,   ///< Newer than all before it; there may be a gap in front of it.
    reordered,  ///< Older than the newest, seen for the first time.
    duplicate,  ///< Seen before.
    suspect,    ///< Far from the others; counts only when the next one follows it.
    restarted,  ///< The second of a new run of numbers: the sender started again.
};

/// Follows the sequence numbers of one source: loss, order, duplicates, restarts (RFC 3550 A.1, A.3).
class SequenceTracker {
  public:
    /// Judge the next sequence number received.
    Arrival note(std::uint16_t sequence);

    /// Expect a new run of numbers (another SSRC); the totals go on.
    void restart();

    /// Packets received, without duplicates.
    std::uint64_t received() const { return received_; }

    /// Packets that never came, over all runs; those still on their way count as lost until they arrive.
    std::uint64_t lost() const;

    /// Packets that should have come, over all runs.
    std::uint64_t expected() const { return expected_before_ + run_expected(); }

    /// Number of loss bursts, over all runs.
    std::uint64_t bursts() const { return bursts_; }

    // Of the present run, as report blocks want it (RFC 3550 6.4.1, A.3).

    std::uint64_t run_expected() const { return started_ ? highest_ - base_ + 1 : 0; }
    std::uint64_t run_received() const { return run_received_; }
    /// Highest number, extended by the number of wraps.
    std::uint32_t extended_highest() const {
        return started_ ? static_cast<std::uint32_t>(highest_ - one_cycle) : 0;
    }

  private:
    static constexpr std::uint64_t one_cycle = 0x10000;

    void begin(std::uint16_t sequence);
    Arrival advance(std::uint16_t step);
    Arrival look_back(std::uint16_t distance);
    Arrival jump(std::uint16_t sequence);
    void widen(std::uint64_t number);
    bool came(std::uint16_t distance) const;

    bool started_ = false;
    bool jumped_ = false;
    std::uint16_t after_jump_ = 0;
    std::uint64_t base_ = 0;
    std::uint64_t highest_ = 0;  ///< Extended by the number of wraps.
    std::uint64_t window_ = 0;   ///< Bit n: the packet n before the highest has come.
    std::uint64_t received_ = 0;
    std::uint64_t run_received_ = 0;
    std::uint64_t bursts_ = 0;
    std::uint64_t expected_before_ = 0;  ///< By earlier runs.
};

}  // namespace trunkline::rtp
