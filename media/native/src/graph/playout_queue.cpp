#include "trunkline/graph/playout_queue.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::graph {

namespace {

constexpr std::int64_t ms_ns = 1'000'000;

bool is_heard(std::int16_t sample) {
    return std::abs(int{sample}) > PlayoutQueue::quiet_peak;
}

}  // namespace

void PlayoutQueue::append(PlayoutItem* item, std::int64_t now_ns) {
    item->next_node = nullptr;
    if (item->is_mark && first_ == nullptr) {
        listener_.mark_reached(item->mark, false);
        listener_.spent(item);
        return;
    }
    if (!item->is_mark) note_arrival(now_ns);
    if (first_ == nullptr) {
        first_ = item;
    } else {
        last_->next_node = item;
    }
    last_ = item;
    queued_bytes_ += item->size_bytes;
    // What waits because it was played late is not ahead.
    const std::int64_t late_ns = state_ == State::filling ? now_ns - filling_since_ns_ : delay_ns_;
    if (queued_ns() - late_ns >= ahead_ms * ms_ns) ahead_ = true;
    check_level();
}

std::int64_t PlayoutQueue::queued_ns() const {
    return static_cast<std::int64_t>(queued_bytes_) * ms_ns / format_.bytes_per_ms();
}

/// Learn from when the audio comes that is about to be queued.
void PlayoutQueue::note_arrival(std::int64_t now_ns) {
    if (state_ == State::idle) {
        begin_filling(now_ns);
    } else if (state_ == State::filling || now_ns - pulled_ns_ <= 2 * pull_ns_) {
        // While digits are sent instead, nothing tells how long what is queued lasts.
        if (stalled_ns_ != 0) look_for_backlog(now_ns);
        if (!ahead_) prebuffer_.note(lead_ns(now_ns), now_ns - arrived_ns_);
    }
    arrived_ns_ = now_ns;
    prebuffer_ms_.store(static_cast<std::uint32_t>(prebuffer_.prebuffer_ns() / ms_ns),
                        std::memory_order_relaxed);
}

/// How much sooner the audio comes than the beginning of its utterance would have it.
std::int64_t PlayoutQueue::lead_ns(std::int64_t now_ns) const {
    // Until it plays, its beginning is queued. Then, what is queued lasts so many pulls.
    if (state_ == State::filling) return filling_since_ns_ + queued_ns() - now_ns;
    return pulled_ns_ + pull_ns_ * (1 + queued_ns() / pull_ns_) - delay_ns_ - now_ns;
}

/// After a gap, what an agent that had stalled owes comes at once, as much as it is late, and then it goes on
/// by its clock: all of that is late by the gap. Anything else is another utterance.
void PlayoutQueue::look_for_backlog(std::int64_t now_ns) {
    if (now_ns - arrived_ns_ < PrebufferEstimator::burst_ns) return;
    if (now_ns - filling_since_ns_ > backlog_ns) {
        stalled_ns_ = 0;
        run_since_ns_ = filling_since_ns_;
        return;
    }
    // The gap is seen by the pull after its beginning, and what comes now is not queued yet.
    const bool owed = std::abs(lead_ns(now_ns) - stalled_ns_) <= 2 * pull_ns_;
    if (!owed || owed_since_ns_ == 0) owed_since_ns_ = owed ? now_ns : 0;
    if (!owed || now_ns - owed_since_ns_ < owed_ns) return;
    const std::int64_t stalled_ns = std::exchange(stalled_ns_, 0);
    if (state_ == State::filling) {
        filling_since_ns_ -= stalled_ns;
    } else {
        delay_ns_ += stalled_ns;
    }
    ahead_ = false;
}

void PlayoutQueue::begin_filling(std::int64_t now_ns) {
    const bool underrun = has_played_ && now_ns - dry_ns_ < underrun_ns;
    const bool ran = has_played_ && !ahead_ && dry_ns_ - run_since_ns_ >= run_ns;
    stalled_ns_ = ran && now_ns - dry_ns_ < longest_stall_ns ? now_ns - dry_ns_ + delay_ns_ : 0;
    if (stalled_ns_ == 0) run_since_ns_ = now_ns;
    owed_since_ns_ = 0;
    if (underrun) {
        listener_.playout_underrun();
        // What was far ahead and is over was not late.
        if (!ahead_) prebuffer_.note_gap(dry_ns_ - delay_ns_ - now_ns);
    }
    prebuffer_.begin();
    wanted_ns_ = underrun ? grown_prebuffer_ns : prebuffer_.prebuffer_ns();
    enough_ns_ = underrun ? grown_prebuffer_ns : PrebufferEstimator::full_ns;
    state_ = State::filling;
    filling_since_ns_ = now_ns;
    ahead_ = false;
}

void PlayoutQueue::watch_level(std::uint32_t full_ms, std::uint32_t low_ms) {
    full_bytes_ = std::uint64_t{full_ms} * format_.bytes_per_ms();
    low_bytes_ = std::uint64_t{low_ms} * format_.bytes_per_ms();
    full_ = full_ && full_bytes_ != 0;
    check_level();
}

void PlayoutQueue::clear() {
    const bool silent = std::exchange(paused_, false);
    if (state_ == State::idle) return;
    if (state_ == State::playing && !silent) fade_out();
    consume(queued_bytes_);
    while (first_ != nullptr) {
        if (first_->is_mark) listener_.mark_reached(first_->mark, true);
        pop_first();
    }
    state_ = State::idle;
    has_played_ = false;
    listener_.playout_drained();
}

void PlayoutQueue::pause(bool active) {
    if (active == paused_) return;
    if (active && state_ == State::playing) fade_out();
    paused_ = active;
    // What came meanwhile did not come by the clock of what plays.
    ahead_ = ahead_ || !active;
}

/// Take what would play next, and let it fade out.
void PlayoutQueue::fade_out() {
    fade_left_ = static_cast<std::uint32_t>(take(std::span(fade_).first(fade_ms * format_.rate_hz / 1000)));
    for (std::uint32_t n = 0; n < fade_left_; ++n) {
        fade_[n] = static_cast<std::int16_t>(fade_[n] * static_cast<int>(fade_left_ - n) /
                                             static_cast<int>(fade_left_ + 1));
    }
}

bool PlayoutQueue::pull(std::span<std::int16_t> out, std::int64_t now_ns) {
    if (paused_) return pull_fade(out);
    if (state_ == State::filling && ready(now_ns)) begin_playing(now_ns);
    if (state_ == State::playing && first_ == nullptr) run_dry(now_ns);
    if (!playing()) return false;
    pulled_ns_ = now_ns;
    pull_ns_ = static_cast<std::int64_t>(out.size()) * ms_ns / (format_.rate_hz / 1000);
    std::size_t filled = play_fade(out);
    if (state_ == State::playing && adjust(out.size())) {
        filled += take(out.subspan(filled));
        drop_spent();
        if (filled < out.size()) run_dry(now_ns);
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(filled), out.end(), std::int16_t{0});
    note_level(out);
    return true;
}

bool PlayoutQueue::ready(std::int64_t now_ns) const {
    const std::int64_t waited_ns = now_ns - filling_since_ns_;
    return waited_ns >= wanted_ns_ || (queued_ns() >= enough_ns_ && waited_ns >= prebuffer_.wait_ns());
}

void PlayoutQueue::begin_playing(std::int64_t now_ns) {
    state_ = State::playing;
    delay_ns_ = now_ns - filling_since_ns_;
    quiet_ns_ = 0;
}

/// In a pause, leave out the next packet or send one of silence before it, whichever brings the delay nearer
/// to the prebuffer. Returns false when nothing of the queue plays now.
bool PlayoutQueue::adjust(std::size_t samples) {
    if (quiet_ns_ < pause_ns || ahead_ || !prebuffer_.steady()) return true;
    const std::int64_t wanted_ns = std::max(prebuffer_.prebuffer_ns(), prebuffer_.wait_ns());
    const std::int64_t waits_ns = delay_ns_ + prebuffer_.greatest_lead_ns();
    // What the agent itself is ahead is left to it.
    const bool too_much = waits_ns >= wanted_ns + pull_ns_ && delay_ns_ >= pull_ns_;
    const bool too_little = waits_ns < wanted_ns;
    if ((!too_much && !too_little) || !is_quiet(samples)) return true;
    if (too_much && queued_ns() < 2 * pull_ns_) return true;
    if (too_much) skip(samples);
    delay_ns_ += too_much ? -pull_ns_ : pull_ns_;
    return too_much;
}

/// True if so much waits, what comes next of it is silence, and there is no mark in it.
bool PlayoutQueue::is_quiet(std::size_t samples) const {
    if (queued_bytes_ < samples * format_.sample_bytes()) return false;
    std::uint32_t offset_bytes = offset_bytes_;
    std::array<std::int16_t, 64> room;
    for (const PlayoutItem* item = first_; samples > 0;) {
        if (item == nullptr || item->is_mark) return false;
        const std::size_t left = (item->size_bytes - offset_bytes) / format_.sample_bytes();
        const auto next = std::span(room).first(std::min({left, samples, room.size()}));
        if (next.empty()) {
            item = static_cast<const PlayoutItem*>(item->next_node);
            offset_bytes = 0;
            continue;
        }
        decode(item->bytes.get() + offset_bytes, next);
        if (std::ranges::any_of(next, is_heard)) return false;
        offset_bytes += static_cast<std::uint32_t>(next.size() * format_.sample_bytes());
        samples -= next.size();
    }
    return true;
}

void PlayoutQueue::skip(std::size_t samples) {
    std::array<std::int16_t, 64> room;
    while (samples > 0) {
        samples -= take(std::span(room).first(std::min(samples, room.size())));
    }
}

void PlayoutQueue::note_level(std::span<const std::int16_t> out) {
    quiet_ns_ = std::ranges::any_of(out, is_heard) ? 0 : quiet_ns_ + pull_ns_;
}

std::size_t PlayoutQueue::take(std::span<std::int16_t> out) {
    std::size_t filled = 0;
    while (filled < out.size()) {
        drop_spent();
        if (first_ == nullptr) break;
        const std::size_t left = (first_->size_bytes - offset_bytes_) / format_.sample_bytes();
        const std::size_t count = std::min(left, out.size() - filled);
        decode(first_->bytes.get() + offset_bytes_, out.subspan(filled, count));
        const auto bytes = static_cast<std::uint32_t>(count * format_.sample_bytes());
        offset_bytes_ += bytes;
        filled += count;
        consume(bytes);
    }
    return filled;
}

void PlayoutQueue::decode(const std::uint8_t* from, std::span<std::int16_t> out) const {
    switch (format_.encoding) {
        case Encoding::l16:
            std::memcpy(out.data(), from, out.size_bytes());
            return;
        case Encoding::mulaw:
            dsp::decode(dsp::Law::mu, {from, out.size()}, out.data());
            return;
        case Encoding::alaw:
            dsp::decode(dsp::Law::a, {from, out.size()}, out.data());
            return;
    }
}

/// Remove played audio and reached marks from the front.
void PlayoutQueue::drop_spent() {
    while (first_ != nullptr) {
        if (first_->is_mark) {
            listener_.mark_reached(first_->mark, false);
        } else if (offset_bytes_ + format_.sample_bytes() <= first_->size_bytes) {
            return;
        }
        pop_first();
    }
}

void PlayoutQueue::pop_first() {
    PlayoutItem* item = first_;
    first_ = static_cast<PlayoutItem*>(item->next_node);
    if (first_ == nullptr) last_ = nullptr;
    offset_bytes_ = 0;
    listener_.spent(item);
}

void PlayoutQueue::consume(std::uint64_t bytes) {
    queued_bytes_ -= bytes;
    consumed_bytes_.store(consumed_bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    check_level();
}

void PlayoutQueue::check_level() {
    const bool turns = full_ ? queued_bytes_ <= low_bytes_ : full_bytes_ != 0 && queued_bytes_ >= full_bytes_;
    if (!turns) return;
    full_ = !full_;
    listener_.playout_level(full_, queued_bytes_ / format_.bytes_per_ms());
}

void PlayoutQueue::run_dry(std::int64_t now_ns) {
    state_ = State::idle;
    has_played_ = true;
    dry_ns_ = now_ns;
    listener_.playout_drained();
}

bool PlayoutQueue::pull_fade(std::span<std::int16_t> out) {
    if (fade_left_ == 0) return false;
    std::ranges::fill(out.subspan(play_fade(out)), std::int16_t{0});
    return true;
}

std::size_t PlayoutQueue::play_fade(std::span<std::int16_t> out) {
    const std::size_t count = std::min<std::size_t>(fade_left_, out.size());
    std::copy_n(fade_.begin(), count, out.begin());
    fade_left_ = 0;
    return count;
}

}  // namespace trunkline::graph
