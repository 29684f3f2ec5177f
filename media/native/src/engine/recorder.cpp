#include "trunkline/engine/recorder.hpp"

#include <algorithm>
#include <utility>

namespace trunkline::engine {

namespace {

using graph::AlignedTrack;

/// Frames handed over at once after a stall of the thread; what is older is silence.
constexpr std::int64_t max_catch_up_frames = 40;

}  // namespace

Recorder::Recorder(Recording* recording)
    : recording_(recording),
      rate_hz_(recording->options().layout.rate_hz),
      frame_samples_(static_cast<std::int64_t>(recording->frame_samples())),
      received_(rate_hz_, AlignedTrack::Run::unbroken),
      sent_(rate_hz_, AlignedTrack::Run::broken) {}

void Recorder::put(AlignedTrack& side, std::span<const std::int16_t> samples, std::int64_t now_ns) {
    if (recording_ == nullptr) return;
    const std::int64_t at = position(now_ns);
    hand_over(at - AlignedTrack::lag_ms * rate_hz_ / 1000);
    side.put(samples, at);
}

bool Recorder::tick(std::int64_t now_ns) {
    if (recording_ == nullptr || recording_->over()) return false;
    hand_over(position(now_ns) - AlignedTrack::lag_ms * rate_hz_ / 1000);
    return true;
}

void Recorder::pause(bool paused, std::int64_t now_ns) {
    note_pauses(position(now_ns) / frame_samples_);
    paused_ = paused;
}

void Recorder::finish(std::int64_t now_ns) {
    if (recording_ == nullptr) return;
    hand_over(position(now_ns) + frame_samples_ - 1);
    end();
}

/// The present, in samples since the recording began: a frame earlier, so that the first packet, whose last
/// sample passes when it is put in, has a place.
std::int64_t Recorder::position(std::int64_t now_ns) {
    if (start_ns_ < 0) start_ns_ = now_ns;
    const std::int64_t position = frame_samples_ + (now_ns - start_ns_) * (rate_hz_ / 1000) / 1'000'000;
    note_pauses(position / frame_samples_);
    return position;
}

/// Frames of time up to this one are over, or have begun, as things stand.
void Recorder::note_pauses(std::int64_t frame) {
    for (; noted_frame_ < frame; ++noted_frame_) {
        const std::uint64_t bit = std::uint64_t{1} << ((noted_frame_ + 1) % 64);
        pauses_ = paused_ ? pauses_ | bit : pauses_ & ~bit;
    }
}

/// Hand over the frames that end before `until`.
void Recorder::hand_over(std::int64_t until) {
    const std::int64_t due = (until - received_.pulled()) / frame_samples_;
    if (due > max_catch_up_frames) {
        const std::int64_t skipped = due - max_catch_up_frames;
        received_.skip(skipped * frame_samples_);
        sent_.skip(skipped * frame_samples_);
        if (!paused_ || recording_->options().pause_as_silence) {
            number_ += static_cast<std::uint64_t>(skipped);
        }
    }
    while (received_.pulled() + frame_samples_ <= until) {
        hand_over_frame();
    }
}

void Recorder::hand_over_frame() {
    std::array<std::int16_t, Recording::max_frame_samples / 2> received;
    std::array<std::int16_t, Recording::max_frame_samples / 2> sent;
    std::array<std::int16_t, Recording::max_frame_samples> frame;
    const bool paused = was_paused(received_.pulled() / frame_samples_);
    const auto size = static_cast<std::size_t>(frame_samples_);
    received_.pull(std::span(received).first(size));
    sent_.pull(std::span(sent).first(size));
    if (paused) {
        if (!recording_->options().pause_as_silence) return;
        received.fill(0);
        sent.fill(0);
    }
    const bool stereo = recording_->options().layout.channels == 2;
    for (std::size_t n = 0; n < size; ++n) {
        if (stereo) {
            frame[2 * n] = received[n];
            frame[2 * n + 1] = sent[n];
        } else {
            frame[n] = static_cast<std::int16_t>(std::clamp(received[n] + sent[n], -32768, 32767));
        }
    }
    recording_->push(number_++, std::span(frame).first(stereo ? 2 * size : size));
}

void Recorder::end() {
    if (recording_ != nullptr) std::exchange(recording_, nullptr)->end();
}

}  // namespace trunkline::engine
