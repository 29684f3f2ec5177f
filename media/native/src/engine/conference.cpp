#include "trunkline/engine/conference.hpp"

#include <algorithm>
#include <utility>

namespace trunkline::engine {

namespace {

constexpr float power_smoothing = 0.2F;
/// Quieter than this nobody talks.
constexpr std::uint32_t talk_dbov = 45;
/// So much louder than the talker must somebody be to be taken for it instead.
constexpr float clearly_louder = 2.0F;
/// For so many ticks in a row: a cough is not a turn, and a pause for breath does not end one.
constexpr std::uint32_t talk_beats = 10;
constexpr std::uint32_t silence_beats = 50;

}  // namespace

Conference::Conference(std::uint64_t id, std::uint32_t rate_hz, EventQueue& event_queue, TimerWheel& wheel)
    : id_(id),
      rate_hz_(rate_hz),
      frame_samples_(rate_hz / 1000 * frame_ms),
      event_queue_(event_queue),
      wheel_(wheel),
      playback_(*this) {}

Conference::~Conference() {
    delete recorder_;
    for (std::size_t n = 0; n < member_count_; ++n) {
        delete members_[n];
    }
}

void Conference::add(ConferenceMember* member, std::int64_t now_ns) {
    if (member_count_ == max_members) {
        event_queue_.discard(member);
        return;
    }
    members_[member_count_++] = member;
    run_clock(now_ns);
}

void Conference::change(std::uint64_t stream, const ConferenceRole& role) {
    const std::size_t index = find(stream);
    if (index < member_count_) members_[index]->role = role;
}

void Conference::remove(std::uint64_t stream, std::int64_t now_ns) {
    const std::size_t index = find(stream);
    if (index < member_count_) release(index);
    run_clock(now_ns);
}

void Conference::play(graph::Playback* playback, std::int64_t now_ns) {
    playback_.append(playback);
    run_clock(now_ns);
}

void Conference::attach_recorder(Recorder* recorder, std::int64_t now_ns) {
    detach_recorder(now_ns);
    recorder_ = recorder;
    recorder_upsampler_.reset();
    recorder_downsampler_.reset();
    (void)recorder_->tick(now_ns);
    run_clock(now_ns);
}

void Conference::pause_recorder(bool paused, std::int64_t now_ns) {
    if (recorder_ != nullptr) recorder_->pause(paused, now_ns);
}

void Conference::detach_recorder(std::int64_t now_ns) {
    if (recorder_ == nullptr) return;
    recorder_->finish(now_ns);
    event_queue_.discard(std::exchange(recorder_, nullptr));
}

void Conference::shut(std::int64_t now_ns) {
    playback_.stop();
    detach_recorder(now_ns);
    while (member_count_ != 0) {
        release(member_count_ - 1);
    }
    wheel_.disarm(*this);
    event_queue_.discard(this);
}

/// The clock runs while there is something to do.
void Conference::run_clock(std::int64_t now_ns) {
    const bool needed = member_count_ != 0 || recorder_ != nullptr || !playback_.empty();
    if (!needed) {
        wheel_.disarm(*this);
    } else if (!armed()) {
        wheel_.arm(*this, frame_ms, now_ns);
    }
}

void Conference::tick(std::int64_t now_ns) {
    listen();
    if (playback_.playing()) {
        std::array<std::int16_t, graph::Mix::max_frame_samples> room;
        const auto frame = std::span(room).first(frame_samples_);
        playback_.pull(frame, rate_hz_);
        mix_.add(frame);
    }
    speak();
    record(now_ns);
    follow_talker();
    run_clock(now_ns);
}

/// Take a frame of every member and sum up those that all may hear.
void Conference::listen() {
    mix_.begin(frame_samples_);
    whisperer_count_ = 0;
    for (std::size_t n = 0; n < member_count_;) {
        ConferenceMember& member = *members_[n];
        if (member.line->hung_up()) {
            event_queue_.emit({id_, EventKind::conference_left, 0, member.stream, 0});
            release(n);
            continue;
        }
        const auto frame = std::span(member.frame).first(frame_samples_);
        member.line->read(frame);
        measure(member);
        if (in_sum(member)) mix_.add(frame);
        if (member.role.whispers && !member.silent) whisperers_[whisperer_count_++] = &member;
        ++n;
    }
}

void Conference::measure(ConferenceMember& member) {
    const auto frame = std::span<const std::int16_t>(member.frame).first(frame_samples_);
    const float power = member.role.heard ? graph::power_of(frame) : 0;
    member.silent = power == 0;
    member.power += (power - member.power) * power_smoothing;
    member.line->level_dbov.set(graph::level_dbov(member.power));
}

/// Hand to every member what it hears. What all silent members hear is the same, and made once.
void Conference::speak() {
    std::array<std::int16_t, graph::Mix::max_frame_samples> all;
    std::array<std::int16_t, graph::Mix::max_frame_samples> some;
    mix_.all(all);
    for (std::size_t n = 0; n < member_count_; ++n) {
        ConferenceMember& member = *members_[n];
        std::array<std::span<const std::int16_t>, max_members> whispers;
        std::size_t whisper_count = 0;
        for (const ConferenceMember* whisperer : std::span(whisperers_).first(whisperer_count_)) {
            if (whisperer == &member || !whisperer->role.whisper_to.test(member.slot)) continue;
            whispers[whisper_count++] = std::span(whisperer->frame).first(frame_samples_);
        }
        if (!in_sum(member) && whisper_count == 0) {
            member.line->write(std::span(all).first(frame_samples_));
            continue;
        }
        const std::size_t own_samples = in_sum(member) ? frame_samples_ : 0;
        mix_.others(std::span(member.frame).first(own_samples), std::span(whispers).first(whisper_count),
                    some);
        member.line->write(std::span(some).first(frame_samples_));
    }
}

/// What everybody may hear goes into the file; whispers stay between those they are for.
void Conference::record(std::int64_t now_ns) {
    if (recorder_ == nullptr) return;
    std::array<std::int16_t, graph::Mix::max_frame_samples> all;
    std::array<std::int16_t, 2 * graph::Mix::max_frame_samples> converted;
    const auto frame = std::span(all).first(frame_samples_);
    mix_.all(frame);
    if (recorder_->rate_hz() == rate_hz_) {
        recorder_->put_received(frame, now_ns);
    } else if (recorder_->rate_hz() > rate_hz_) {
        recorder_upsampler_.process(frame, converted.data());
        recorder_->put_received(std::span(converted).first(2 * frame_samples_), now_ns);
    } else {
        recorder_downsampler_.process(frame, converted.data());
        recorder_->put_received(std::span(converted).first(frame_samples_ / 2), now_ns);
    }
    if (!recorder_->tick(now_ns)) detach_recorder(now_ns);
}

/// Tell who talks, when that changes for longer than a moment.
void Conference::follow_talker() {
    const ConferenceMember* loudest = nullptr;
    const ConferenceMember* talker = nullptr;
    for (std::size_t n = 0; n < member_count_; ++n) {
        const ConferenceMember* member = members_[n];
        if (member->role.whispers) continue;
        if (member->stream == talker_) talker = member;
        if (loudest == nullptr || member->power > loudest->power) loudest = member;
    }
    const auto talks = [](const ConferenceMember* member) {
        return member != nullptr && graph::level_dbov(member->power) <= talk_dbov;
    };
    if (talks(talker) && loudest->power < talker->power * clearly_louder) loudest = talker;
    const std::uint64_t found = talks(loudest) ? loudest->stream : 0;
    candidate_beats_ = found == candidate_ ? candidate_beats_ + 1 : 1;
    candidate_ = found;
    if (found == talker_ || candidate_beats_ < (found == 0 ? silence_beats : talk_beats)) return;
    talker_ = found;
    event_queue_.emit({id_, EventKind::active_talker, 0, found, 0});
}

void Conference::release(std::size_t index) {
    ConferenceMember* member = std::exchange(members_[index], members_[--member_count_]);
    for (std::size_t n = 0; n < member_count_; ++n) {
        // The place may be another's soon, whom nobody meant to whisper to.
        members_[n]->role.whisper_to.reset(member->slot);
    }
    event_queue_.discard(member);
}

std::size_t Conference::find(std::uint64_t stream) const {
    const auto end = members_.begin() + static_cast<std::ptrdiff_t>(member_count_);
    const auto found = std::find_if(members_.begin(), end,
                                    [&](const ConferenceMember* member) { return member->stream == stream; });
    return static_cast<std::size_t>(found - members_.begin());
}

void Conference::playback_finished(std::uint64_t id, graph::PlaybackEnd why, char key,
                                   std::uint64_t played_ms) {
    const auto reason =
        static_cast<std::uint32_t>(why) | static_cast<std::uint32_t>(static_cast<std::uint8_t>(key)) << 8;
    event_queue_.emit({id_, EventKind::playback_finished, reason, id, played_ms});
}

void Conference::playback_position(std::uint64_t id, std::uint64_t played_ms) {
    event_queue_.emit({id_, EventKind::playback_position, 0, id, played_ms});
}

}  // namespace trunkline::engine
