#include "trunkline/graph/playback_queue.hpp"

#include <algorithm>

namespace trunkline::graph {

void PlaybackQueue::append(Playback* playback) {
    playback->next_node = nullptr;
    if (count_ == max_playbacks) {
        listener_.playback_finished(playback->id, PlaybackEnd::stopped, '\0', 0);
        listener_.spent(playback);
        return;
    }
    ++count_;
    if (first_ == nullptr) {
        first_ = playback;
    } else {
        last_->next_node = playback;
    }
    last_ = playback;
}

void PlaybackQueue::stop() {
    fade_out();
    while (first_ != nullptr) {
        drop_first(PlaybackEnd::stopped, '\0');
    }
    paused_ = false;
}

void PlaybackQueue::pause() {
    if (paused_) return;
    fade_out();
    paused_ = true;
}

void PlaybackQueue::resume() {
    if (!paused_) return;
    paused_ = false;
    // Not before the fade of the pause was heard, which comes first in the next pull.
    rise_left_ = first_ != nullptr && first_->played_ms() != 0 ? fade_ms * rate_hz_ / 1000 : 0;
}

void PlaybackQueue::barge_in(PlaybackEnd why, char key) {
    const auto ends = [why](const Playback& playback) {
        return why == PlaybackEnd::digit ? playback.ends_by_digit : playback.ends_by_speech;
    };
    if (first_ == nullptr || !ends(*first_)) return;
    fade_out();
    while (first_ != nullptr && ends(*first_)) {
        drop_first(why, key);
    }
    paused_ = false;
}

void PlaybackQueue::pull(std::span<std::int16_t> out, std::uint32_t rate_hz) {
    if (rate_hz != rate_hz_) {
        rate_hz_ = rate_hz;
        fade_left_ = rise_left_ = 0;
    }
    std::size_t filled = play_fade(out);
    if (!paused_) filled += render(out.subspan(filled));
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(filled), out.end(), std::int16_t{0});
}

std::size_t PlaybackQueue::render(std::span<std::int16_t> out) {
    std::size_t filled = 0;
    while (filled < out.size() && first_ != nullptr) {
        const auto room = out.subspan(filled);
        const std::size_t count = first_->pull(room, rate_hz_, first_ != last_);
        rise(room.first(count));
        filled += count;
        if (first_->position_due()) listener_.playback_position(first_->id, first_->played_ms());
        if (first_->over()) drop_first(PlaybackEnd::ended, '\0');
    }
    return filled;
}

/// Keep the next 5 ms of what is heard, falling to nothing; the caller then cuts it off.
void PlaybackQueue::fade_out() {
    if (first_ == nullptr || paused_ || fade_left_ != 0 || first_->played_ms() == 0) return;
    const auto samples = std::span(fade_).first(fade_ms * rate_hz_ / 1000);
    const std::size_t count = first_->pull(samples, rate_hz_, false);
    rise(samples.first(count));
    for (std::size_t n = 0; n < count; ++n) {
        fade_[n] =
            static_cast<std::int16_t>(fade_[n] * static_cast<int>(count - n) / static_cast<int>(count + 1));
    }
    fade_left_ = static_cast<std::uint32_t>(count);
}

/// A fade is shorter than any frame, so it is played whole.
std::size_t PlaybackQueue::play_fade(std::span<std::int16_t> out) {
    const std::size_t count = std::min<std::size_t>(fade_left_, out.size());
    std::copy_n(fade_.begin(), count, out.begin());
    fade_left_ = 0;
    return count;
}

void PlaybackQueue::rise(std::span<std::int16_t> out) {
    const auto whole = static_cast<int>(fade_ms * rate_hz_ / 1000);
    for (std::int16_t& sample : out) {
        if (rise_left_ == 0) return;
        sample = static_cast<std::int16_t>(sample * (whole - static_cast<int>(rise_left_)) / whole);
        --rise_left_;
    }
}

void PlaybackQueue::drop_first(PlaybackEnd why, char key) {
    Playback* playback = first_;
    first_ = static_cast<Playback*>(playback->next_node);
    if (first_ == nullptr) last_ = nullptr;
    --count_;
    listener_.playback_finished(playback->id, why, key, playback->played_ms());
    listener_.spent(playback);
}

}  // namespace trunkline::graph
