#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace trunkline::util {

/// The last `capacity` records that one thread wrote, for others to read without holding it up. A reader
/// leaves out what was overwritten while it read.
template <typename Record, std::size_t capacity>
class History {
    static_assert(std::is_trivially_copyable_v<Record>);

  public:
    /// Writer: add a record.
    void push(const Record& record) {
        Words words{};
        std::memcpy(words.data(), &record, sizeof record);
        const std::uint64_t number = count_.load(std::memory_order_relaxed);
        Slot& slot = slots_[number % capacity];
        for (std::size_t n = 0; n < word_count; ++n) {
            // Who sees one of these words sees the count that allowed them.
            slot[n].store(words[n], std::memory_order_release);
        }
        count_.store(number + 1, std::memory_order_release);
    }

    /// Any thread: the records that are still there, oldest first.
    std::vector<Record> read() const {
        std::vector<Record> records;
        const std::uint64_t end = count_.load(std::memory_order_acquire);
        const std::uint64_t begin = end > capacity ? end - capacity : 0;
        records.reserve(static_cast<std::size_t>(end - begin));
        for (std::uint64_t number = begin; number < end; ++number) {
            Words words;
            const Slot& slot = slots_[number % capacity];
            for (std::size_t n = 0; n < word_count; ++n) {
                words[n] = slot[n].load(std::memory_order_acquire);
            }
            if (count_.load(std::memory_order_acquire) >= number + capacity) continue;
            std::memcpy(static_cast<void*>(&records.emplace_back()), words.data(), sizeof(Record));
        }
        return records;
    }

    /// Number written so far.
    std::uint64_t count() const { return count_.load(std::memory_order_acquire); }

  private:
    static constexpr std::size_t word_count = (sizeof(Record) + 7) / 8;
    using Words = std::array<std::uint64_t, word_count>;
    using Slot = std::array<std::atomic<std::uint64_t>, word_count>;

    std::array<Slot, capacity> slots_{};
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace trunkline::util
