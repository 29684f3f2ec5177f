// The control thread's hold on taps.

#include "trunkline/engine/tap_handle.hpp"

#include <algorithm>
#include <cstring>

#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::engine {

std::size_t TapHandle::write(const std::uint8_t* bytes, std::size_t size) {
    if (!open() || size == 0) return 0;
    const std::size_t unit = format_.sample_bytes();
    const std::uint64_t capacity_bytes = std::uint64_t{Tap::capacity_ms} * format_.bytes_per_ms();
    const std::uint64_t room = capacity_bytes - std::min(queued_bytes(), capacity_bytes);
    const std::size_t carried = has_odd_byte_ ? 1 : 0;
    const std::size_t whole = (carried + size) / unit * unit;
    const std::size_t kept = std::min<std::uint64_t>(whole, room / unit * unit);
    if (kept != 0) {
        auto item = std::make_unique<graph::PlayoutItem>();
        item->size_bytes = static_cast<std::uint32_t>(kept);
        item->bytes = std::make_unique_for_overwrite<std::uint8_t[]>(kept);
        if (carried != 0) item->bytes[0] = odd_byte_;
        std::memcpy(item->bytes.get() + carried, bytes, kept - carried);
        written_bytes_ += kept;
        append(std::move(item), false);
    }
    // Half a sample waits for its other half.
    has_odd_byte_ = carried + size > whole;
    if (has_odd_byte_) odd_byte_ = bytes[size - 1];
    return whole - kept;
}

void TapHandle::mark(std::uint32_t mark) {
    if (!open()) return;
    auto item = std::make_unique<graph::PlayoutItem>();
    item->is_mark = true;
    item->mark = mark;
    // With nothing before it, it is told at once.
    append(std::move(item), queued_bytes() == 0);
}

void TapHandle::clear() {
    if (!open()) return;
    cleared_bytes_ = written_bytes();
    has_odd_byte_ = false;
    stream_->shard_->submit(make_command([tap = tap_](std::int64_t) { tap->playout().clear(); }));
}

void TapHandle::pause(bool active) {
    if (!open()) return;
    stream_->shard_->submit(
        make_command([tap = tap_, active](std::int64_t) { tap->playout().pause(active); }));
}

std::uint32_t TapHandle::queued_ms() const {
    return open() ? static_cast<std::uint32_t>(queued_bytes() / format_.bytes_per_ms()) : 0;
}

std::uint64_t TapHandle::played_ms() const {
    return open() ? tap_->playout().consumed_bytes() / format_.bytes_per_ms() : 0;
}

std::uint64_t TapHandle::refused_ms() const {
    return open() ? tap_->refused_bytes() / format_.bytes_per_ms() : 0;
}

std::uint32_t TapHandle::prebuffer_ms() const {
    return open() ? tap_->playout().prebuffer_ms() : 0;
}

void TapHandle::watch_level(std::uint32_t full_ms, std::uint32_t low_ms) {
    if (!open()) return;
    auto action = [tap = tap_, full_ms, low_ms](std::int64_t) {
        tap->playout().watch_level(full_ms, low_ms);
    };
    stream_->shard_->submit(make_command(std::move(action)), false);
}

void TapHandle::close() {
    if (!open()) return;
    tap_ = nullptr;
    stream_->order([](Stream& stream, std::int64_t now_ns) { stream.detach_tap(now_ns); });
    stream_->use(Use::tap, false);
}

/// The stream's clock is running, so that audio is picked up within 20 ms without a wake-up.
void TapHandle::append(std::unique_ptr<graph::PlayoutItem> item, bool wake) {
    auto action = [tap = tap_, item = std::move(item)](std::int64_t now_ns) mutable {
        tap->playout().append(item.release(), now_ns);
    };
    stream_->shard_->submit(make_command(std::move(action)), wake);
}

std::uint64_t TapHandle::written_bytes() const {
    return written_bytes_ + tap_->written_bytes();
}

std::uint64_t TapHandle::queued_bytes() const {
    const std::uint64_t gone = std::max(tap_->playout().consumed_bytes(), cleared_bytes_);
    // What the socket queued may be played before it is counted here.
    return std::max(written_bytes(), gone) - gone;
}

bool TapHandle::open() const {
    return tap_ != nullptr && stream_->open();
}

}  // namespace trunkline::engine
