#include "trunkline/rtp/sequence_tracker.hpp"

namespace trunkline::rtp {

namespace {

constexpr std::uint16_t max_dropout = 3000;
constexpr std::uint16_t max_misorder = 100;
constexpr std::uint16_t window_bits = 64;

}  // namespace

Arrival SequenceTracker::note(std::uint16_t sequence) {
    if (!started_) {
        begin(sequence);
        return Arrival::in_order;
    }
    const auto ahead = static_cast<std::uint16_t>(sequence - static_cast<std::uint16_t>(highest_));
    const auto behind = static_cast<std::uint16_t>(-ahead);
    if (ahead == 0) return Arrival::duplicate;
    if (ahead < max_dropout) return advance(ahead);
    if (behind <= max_misorder) return look_back(behind);
    return jump(sequence);
}

void SequenceTracker::restart() {
    expected_before_ += run_expected();
    started_ = false;
}

std::uint64_t SequenceTracker::lost() const {
    return expected() > received_ ? expected() - received_ : 0;
}

void SequenceTracker::begin(std::uint16_t sequence) {
    started_ = true;
    jumped_ = false;
    // One cycle up, so that a straggler from before the first packet does not fall below zero.
    base_ = highest_ = one_cycle + sequence;
    window_ = 1;
    run_received_ = 1;
    ++received_;
}

Arrival SequenceTracker::advance(std::uint16_t step) {
    highest_ += step;
    window_ = step < window_bits ? window_ << step | 1 : 1;
    jumped_ = false;
    if (step > 1) ++bursts_;
    ++run_received_;
    ++received_;
    return Arrival::in_order;
}

Arrival SequenceTracker::look_back(std::uint16_t distance) {
    // Beyond the window a repeat cannot be told from a straggler; a straggler is too late for every consumer.
    if (distance >= window_bits) return Arrival::duplicate;
    const std::uint64_t bit = std::uint64_t{1} << distance;
    if ((window_ & bit) != 0) return Arrival::duplicate;
    window_ |= bit;
    if (highest_ - distance < base_) {
        widen(highest_ - distance);
    } else {
        // It ends a burst, shortens one, or parts one in two.
        const int neighbours = (came(static_cast<std::uint16_t>(distance - 1)) ? 1 : 0) +
                               (came(static_cast<std::uint16_t>(distance + 1)) ? 1 : 0);
        if (neighbours == 2) --bursts_;
        if (neighbours == 0) ++bursts_;
    }
    ++run_received_;
    ++received_;
    return Arrival::reordered;
}

/// A packet from before the first one widens the run backwards.
void SequenceTracker::widen(std::uint64_t number) {
    if (base_ - number > 1) ++bursts_;
    base_ = number;
}

/// True if the packet so far behind the highest has come, or cannot be missed.
bool SequenceTracker::came(std::uint16_t distance) const {
    if (distance >= window_bits || highest_ - distance < base_) return true;
    return (window_ & std::uint64_t{1} << distance) != 0;
}

Arrival SequenceTracker::jump(std::uint16_t sequence) {
    if (!jumped_ || sequence != after_jump_) {
        jumped_ = true;
        after_jump_ = static_cast<std::uint16_t>(sequence + 1);
        return Arrival::suspect;
    }
    restart();
    begin(sequence);
    return Arrival::restarted;
}

}  // namespace trunkline::rtp
