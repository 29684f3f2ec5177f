#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace trunkline::engine {

class TimerWheel;

/// Callback at a steady period while it is armed.
class Ticker {
  public:
    Ticker() = default;
    Ticker(const Ticker&) = delete;
    Ticker& operator=(const Ticker&) = delete;

    bool armed() const { return wheel_ != nullptr; }

    /// Runs at each period. May arm and disarm any ticker.
    virtual void tick(std::int64_t now_ns) = 0;

  protected:
    ~Ticker() = default;

  private:
    friend class TimerWheel;

    TimerWheel* wheel_ = nullptr;
    Ticker* previous_ = nullptr;
    Ticker* next_ = nullptr;
    std::size_t slot_ = 0;
    std::uint32_t period_slots_ = 0;
};

/// The ticks of one thread, on a grid of 5 ms. Tickers are spread over the phases of their period, so that
/// the work of many streams comes in even portions; nothing runs while no ticker is armed.
class TimerWheel {
  public:
    static constexpr std::int64_t slot_ns = 5'000'000;
    static constexpr std::size_t slot_count = 16;  ///< Periods up to 75 ms.
    static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
    /// After a stall of the thread, older ticks than this are skipped.
    static constexpr std::int64_t max_catch_up_slots = 20;

    TimerWheel() = default;
    TimerWheel(const TimerWheel&) = delete;
    TimerWheel& operator=(const TimerWheel&) = delete;

    /// Call `tick` every `period_ms` (a multiple of 5, at most 75) in the phase that has fewest tickers.
    void arm(Ticker& ticker, std::uint32_t period_ms, std::int64_t now_ns);

    /// Stop; harmless when not armed.
    void disarm(Ticker& ticker);

    /// Time of the next tick; `never_ns` while no ticker is armed.
    std::int64_t next_due_ns() const;

    /// Call all tickers that are due.
    void advance(std::int64_t now_ns);

    /// Grid time of the tick being run; earlier than the present when the thread is late.
    std::int64_t tick_ns() const { return done_slot_ * slot_ns; }

    std::size_t armed() const { return armed_; }

  private:
    void link(Ticker& ticker, std::size_t slot);
    void unlink(Ticker& ticker);
    void run_slot(std::size_t slot, std::int64_t now_ns);

    /// Lists are threaded through the tickers; the one being run stands in an extra slot.
    static constexpr std::size_t running_slot = slot_count;

    std::array<Ticker*, slot_count + 1> first_{};
    std::array<std::size_t, slot_count + 1> counts_{};
    std::size_t armed_ = 0;
    std::int64_t done_slot_ = 0;  ///< Number, since the clock's zero, of the last slot run.
};

}  // namespace trunkline::engine
