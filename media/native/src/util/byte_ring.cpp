#include "trunkline/util/byte_ring.hpp"

#include <cstring>

namespace trunkline::util {

ByteRing::ByteRing(std::size_t capacity_bytes)
    : capacity_(capacity_bytes), bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(capacity_bytes)) {}

std::uint8_t* ByteRing::reserve(std::size_t size) {
    const std::size_t needed = footprint(size);
    std::size_t tail = tail_.load(std::memory_order_relaxed);
    const std::size_t to_end = capacity_ - (tail & (capacity_ - 1));
    const std::size_t skipped = needed > to_end ? to_end : 0;
    const std::size_t used = tail - head_.load(std::memory_order_acquire);
    if (used + skipped + needed > capacity_) return nullptr;
    if (skipped != 0) {
        const Prefix skip{0, 0, 1};
        std::memcpy(bytes_.get() + (tail & (capacity_ - 1)), &skip, sizeof skip);
        tail += skipped;
    }
    reserved_at_ = tail;
    return bytes_.get() + (tail & (capacity_ - 1)) + sizeof(Prefix);
}

void ByteRing::commit(std::uint64_t tag, std::size_t size) {
    const Prefix prefix{tag, static_cast<std::uint32_t>(size), 0};
    std::memcpy(bytes_.get() + (reserved_at_ & (capacity_ - 1)), &prefix, sizeof prefix);
    tail_.store(reserved_at_ + footprint(size), std::memory_order_release);
}

std::optional<ByteRing::Record> ByteRing::front() {
    for (;;) {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
        const std::uint8_t* at = bytes_.get() + (head & (capacity_ - 1));
        Prefix prefix;
        std::memcpy(&prefix, at, sizeof prefix);
        if (prefix.is_skip == 0) return Record{prefix.tag, {at + sizeof prefix, prefix.size_bytes}};
        head_.store(head + capacity_ - (head & (capacity_ - 1)), std::memory_order_release);
    }
}

void ByteRing::release() {
    const auto record = front();
    if (!record) return;
    head_.store(head_.load(std::memory_order_relaxed) + footprint(record->bytes.size()),
                std::memory_order_release);
}

}  // namespace trunkline::util
