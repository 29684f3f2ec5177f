#pragma once

#include <atomic>
#include <cstdint>

namespace trunkline::util {

/// A figure one thread writes and others read. A write is a plain load and store; there is no locked
/// instruction on the packet path.
template <typename Value>
class Figure {
  public:
    void set(Value value) { value_.store(value, std::memory_order_relaxed); }
    void add(Value value) { set(get() + value); }
    Value get() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<Value> value_{};
};

using Counter = Figure<std::uint64_t>;

}  // namespace trunkline::util
