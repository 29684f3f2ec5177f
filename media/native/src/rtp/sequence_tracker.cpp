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
    expected_before_ += expected();
    started_ = false;
}

std::uint64_t SequenceTracker::lost() const {
    const std::uint64_t all = expected_before_ + expected();
    return all > received_ ? all - received_ : 0;
}

void SequenceTracker::begin(std::uint16_t sequence) {
    started_ = true;
    jumped_ = false;
    // One cycle up, so that a straggler from before the first packet does not fall below zero.
    base_ = highest_ = 0x10000U + sequence;
    window_ = 1;
    ++received_;
}

Arrival SequenceTracker::advance(std::uint16_t step) {
    highest_ += step;
    window_ = step < window_bits ? window_ << step | 1 : 1;
    jumped_ = false;
    ++received_;
    return Arrival::in_order;
}

Arrival SequenceTracker::look_back(std::uint16_t distance) {
    // Beyond the window a repeat cannot be told from a straggler; a straggler is too late for every consumer.
    if (distance >= window_bits) return Arrival::duplicate;
    const std::uint64_t bit = std::uint64_t{1} << distance;
    if ((window_ & bit) != 0) return Arrival::duplicate;
    window_ |= bit;
    // A packet from before the first one widens the run backwards.
    if (highest_ - distance < base_) base_ = highest_ - distance;
    ++received_;
    return Arrival::reordered;
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
