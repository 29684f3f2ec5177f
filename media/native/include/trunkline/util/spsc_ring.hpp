#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace trunkline::util {

/// A bounded queue between one writing and one reading thread. `Item` must be trivially copyable.
template <typename Item>
class SpscRing {
  public:
    /// Make a ring for `capacity` items, a power of two.
    explicit SpscRing(std::size_t capacity)
        : mask_(capacity - 1), items_(std::make_unique_for_overwrite<Item[]>(capacity)) {}

    /// Append an item; false when the ring is full. Writing thread only.
    bool push(const Item& item) {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) > mask_) return false;
        items_[tail & mask_] = item;
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }

    /// Take the oldest item; false when there is none. Reading thread only.
    bool pop(Item& item) {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire)) return false;
        item = items_[head & mask_];
        head_.store(head + 1, std::memory_order_release);
        return true;
    }

  private:
    std::size_t mask_;
    std::unique_ptr<Item[]> items_;
    alignas(64) std::atomic<std::size_t> head_ = 0;
    alignas(64) std::atomic<std::size_t> tail_ = 0;
};

}  // namespace trunkline::util
