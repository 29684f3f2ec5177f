#include "trunkline/engine/event_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace trunkline::engine {

Notifier::Notifier() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Notifier::~Notifier() {
    ::close(descriptor_);
}

void Notifier::signal() {
    if (signalled_.exchange(true, std::memory_order_acq_rel)) return;
    const std::uint64_t one = 1;
    (void)!write(descriptor_, &one, sizeof one);
}

void Notifier::acknowledge() {
    std::uint64_t count = 0;
    (void)!read(descriptor_, &count, sizeof count);
    signalled_.exchange(false, std::memory_order_acq_rel);
}

EventQueue::EventQueue(Notifier& notifier)
    : notifier_(notifier), events_(event_capacity), frames_(frame_capacity_bytes) {}

void EventQueue::emit(const Event& event) {
    if (!events_.push(event)) events_dropped_.add(1);
    flush_due_ns_ = 0;
}

std::uint8_t* EventQueue::reserve_frame(std::size_t size_bytes) {
    std::uint8_t* room = frames_.reserve(size_bytes);
    if (room == nullptr) frames_dropped_.add(1);
    return room;
}

void EventQueue::commit_frame(std::uint64_t tap, std::size_t size_bytes, std::int64_t now_ns) {
    frames_.commit(tap, size_bytes);
    // Rounded up to the grid the ticks stand on, so that frames and ticks share their wake-ups.
    const std::int64_t due_ns = (now_ns / flush_interval_ns + 1) * flush_interval_ns;
    flush_due_ns_ = std::min(flush_due_ns_, due_ns);
}

void EventQueue::flush(std::int64_t now_ns) {
    if (now_ns < flush_due_ns_) return;
    flush_due_ns_ = nothing_due_ns;
    notifier_.signal();
}

}  // namespace trunkline::engine
