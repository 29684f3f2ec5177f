#pragma once

#include <atomic>
#include <cstdint>

#include "trunkline/engine/thread.hpp"

namespace trunkline::engine {

/// The clock of one engine: the system's monotonic one, or one that only its owner moves.
class Clock {
  public:
    explicit Clock(bool driven) : driven_(driven) {}

    /// True if the engine has no threads and runs when its owner says so.
    bool driven() const { return driven_; }

    /// Time that never goes back, in nanoseconds.
    std::int64_t now_ns() const { return driven_ ? now_ns_.load(std::memory_order_relaxed) : monotonic_ns(); }

    /// Move a driven clock; a time in the past leaves it where it is.
    void advance(std::int64_t now_ns) {
        if (now_ns > now_ns_.load(std::memory_order_relaxed))
            now_ns_.store(now_ns, std::memory_order_relaxed);
    }

  private:
    const bool driven_;
    std::atomic<std::int64_t> now_ns_ = 0;
};

}  // namespace trunkline::engine
