#include "trunkline/rtp/dtmf_sender.hpp"

#include <algorithm>

#include "trunkline/rtp/dtmf_receiver.hpp"

namespace trunkline::rtp {

namespace {

constexpr std::uint32_t max_duration = 0xFFFF;
constexpr std::uint8_t volume_dbm0 = 10;

std::uint32_t pause_ms(char key) {
    if (key == 'w') return 500;
    if (key == 'W') return 1000;
    return 0;
}

}  // namespace

void DtmfSender::start(std::string_view digits, std::uint32_t duration_ms, std::uint32_t gap_ms,
                       std::uint32_t clock_hz) {
    digits_ = digits;
    clock_per_ms_ = clock_hz / 1000;
    press_samples_ = duration_ms * clock_per_ms_;
    gap_samples_ = gap_ms * clock_per_ms_;
    next_digit();
}

std::optional<DtmfPacket> DtmfSender::step(std::uint32_t frame_samples) {
    switch (state_) {
        case State::idle:
            return std::nullopt;
        case State::gap:
            gap_left_ -= std::min(gap_left_, frame_samples);
            if (gap_left_ == 0) next_digit();
            return std::nullopt;
        case State::press:
            return press(frame_samples);
        case State::ending: {
            const DtmfPacket packet = make(true);
            elapsed_ += frame_samples;
            if (--repeats_left_ == 0) {
                state_ = State::gap;
                // The repeats take time as well; what they took of the gap is not waited for again.
                gap_left_ = gap_samples_ > 2 * frame_samples ? gap_samples_ - 2 * frame_samples : 0;
                if (gap_left_ == 0) next_digit();
            }
            return packet;
        }
    }
    return std::nullopt;
}

DtmfPacket DtmfSender::press(std::uint32_t frame_samples) {
    const std::uint32_t end = elapsed_ + frame_samples;
    const std::uint32_t segment_samples = end - segment_;
    // The longest duration there is closes a segment, without the end bit.
    const bool full = segment_samples > max_duration;
    duration_ = full ? max_duration : segment_samples;
    const bool ended = !full && end >= press_samples_;
    const DtmfPacket packet = make(ended);
    if (full) segment_ += max_duration;
    if (ended) {
        state_ = State::ending;
        repeats_left_ = 2;
    }
    elapsed_ = end;
    return packet;
}

void DtmfSender::next_digit() {
    while (!digits_.empty()) {
        const char key = digits_.front();
        digits_.remove_prefix(1);
        if (const std::uint32_t pause = pause_ms(key); pause != 0) {
            state_ = State::gap;
            gap_left_ = pause * clock_per_ms_;
            return;
        }
        if (const auto event = event_of_key(key)) {
            state_ = State::press;
            event_ = *event;
            elapsed_ = 0;
            segment_ = 0;
            return;
        }
    }
    state_ = State::idle;
}

DtmfPacket DtmfSender::make(bool ended) const {
    DtmfPacket packet;
    packet.first = elapsed_ == 0;
    packet.age_samples = elapsed_ - segment_;
    packet.payload = {event_, static_cast<std::uint8_t>((ended ? 0x80 : 0) | volume_dbm0),
                      static_cast<std::uint8_t>(duration_ >> 8), static_cast<std::uint8_t>(duration_)};
    return packet;
}

}  // namespace trunkline::rtp
