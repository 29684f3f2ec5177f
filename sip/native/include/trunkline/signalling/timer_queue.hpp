#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

/// The signalling engine: transactions of SIP and what they send by themselves. Like `trunkline::wire` it has
/// no clock and no I/O: bytes and the time in, bytes and events out. Times are nanoseconds of one clock that
/// never goes back.
namespace trunkline::signalling {

/// All running timers, in one line per delay.
///
/// SIP uses few different delays, and timers of one delay expire in the order in which they were armed. To
/// arm, to disarm and to fire therefore take constant time, whatever the number of calls. A heap would cost
/// its logarithm for tens of thousands of 32 s timers, nearly all of which end unneeded.
class TimerQueue {
  public:
    /// A running timer; valid until it fires or is disarmed. `none` is no timer.
    using Handle = std::uint32_t;
    static constexpr Handle none = 0;

    /// A timer that has expired: whose it was, and for which event it was armed.
    struct Fired {
        std::uint64_t owner = 0;
        std::uint8_t event = 0;
    };

    /// Arm a timer of an owner; a delay below 0 counts as 0.
    Handle arm(std::int64_t now_ns, std::int64_t delay_ns, std::uint64_t owner, std::uint8_t event);

    /// Stop a running timer.
    void disarm(Handle timer);

    /// Take the timer that is due first, if it is due at `now_ns`; of two at one time, the one armed first.
    std::optional<Fired> take_due(std::int64_t now_ns);

    /// When the next timer is due; nothing when none runs.
    std::optional<std::int64_t> next_due_ns() const;

    /// Number of running timers.
    std::size_t size() const { return size_; }

  private:
    struct Timer {
        std::int64_t due_ns = 0;
        std::uint64_t owner = 0;
        std::uint64_t order = 0;
        Handle before = none, after = none;
        std::uint32_t line = 0;
        std::uint8_t event = 0;
    };
    struct Line {
        std::int64_t delay_ns = 0;
        Handle first = none, last = none;
    };

    std::uint32_t line_of(std::int64_t delay_ns);
    const Line* first_due() const;

    /// The first place is nobody's, so that 0 is no timer.
    std::vector<Timer> timers_ = std::vector<Timer>(1);
    std::vector<Handle> free_;
    std::vector<Line> lines_;
    std::uint64_t order_ = 0;
    std::size_t size_ = 0;
};

}  // namespace trunkline::signalling
