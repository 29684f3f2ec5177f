#include "trunkline/engine/timer_wheel.hpp"

#include <algorithm>
#include <cassert>

namespace trunkline::engine {

void TimerWheel::arm(Ticker& ticker, std::uint32_t period_ms, std::int64_t now_ns) {
    if (ticker.armed()) disarm(ticker);
    if (armed_ == 0) done_slot_ = now_ns / slot_ns;
    ticker.period_slots_ = static_cast<std::uint32_t>(period_ms * 1'000'000 / slot_ns);
    assert(ticker.period_slots_ >= 1 && ticker.period_slots_ < slot_count);
    std::size_t best = 0;
    std::size_t best_count = std::numeric_limits<std::size_t>::max();
    for (std::int64_t n = 1; n <= ticker.period_slots_; ++n) {
        const auto slot = static_cast<std::size_t>(done_slot_ + n) % slot_count;
        if (counts_[slot] < best_count) {
            best = slot;
            best_count = counts_[slot];
        }
    }
    ticker.wheel_ = this;
    ++armed_;
    link(ticker, best);
}

void TimerWheel::disarm(Ticker& ticker) {
    if (!ticker.armed()) return;
    unlink(ticker);
    ticker.wheel_ = nullptr;
    --armed_;
}

std::int64_t TimerWheel::next_due_ns() const {
    if (armed_ == 0) return never_ns;
    for (std::int64_t n = 1; n <= static_cast<std::int64_t>(slot_count); ++n) {
        if (counts_[static_cast<std::size_t>(done_slot_ + n) % slot_count] != 0) {
            return (done_slot_ + n) * slot_ns;
        }
    }
    return never_ns;
}

void TimerWheel::advance(std::int64_t now_ns) {
    if (armed_ == 0) return;
    const std::int64_t due_slot = now_ns / slot_ns;
    done_slot_ = std::max(done_slot_, due_slot - max_catch_up_slots);
    while (done_slot_ < due_slot && armed_ != 0) {
        ++done_slot_;
        run_slot(static_cast<std::size_t>(done_slot_) % slot_count, now_ns);
    }
}

void TimerWheel::link(Ticker& ticker, std::size_t slot) {
    ticker.slot_ = slot;
    ticker.previous_ = nullptr;
    ticker.next_ = first_[slot];
    if (ticker.next_ != nullptr) ticker.next_->previous_ = &ticker;
    first_[slot] = &ticker;
    ++counts_[slot];
}

void TimerWheel::unlink(Ticker& ticker) {
    if (ticker.previous_ != nullptr) {
        ticker.previous_->next_ = ticker.next_;
    } else {
        first_[ticker.slot_] = ticker.next_;
    }
    if (ticker.next_ != nullptr) ticker.next_->previous_ = ticker.previous_;
    --counts_[ticker.slot_];
}

void TimerWheel::run_slot(std::size_t slot, std::int64_t now_ns) {
    // The list moves aside first: a ticker goes back into the wheel before it is called, and may then be
    // disarmed, or disarm others of the list, without upsetting the walk.
    first_[running_slot] = first_[slot];
    counts_[running_slot] = counts_[slot];
    first_[slot] = nullptr;
    counts_[slot] = 0;
    for (Ticker* ticker = first_[running_slot]; ticker != nullptr; ticker = ticker->next_) {
        ticker->slot_ = running_slot;
    }
    while (Ticker* ticker = first_[running_slot]) {
        unlink(*ticker);
        link(*ticker, (slot + ticker->period_slots_) % slot_count);
        ticker->tick(now_ns);
    }
}

}  // namespace trunkline::engine
