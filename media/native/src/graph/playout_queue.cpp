#include "trunkline/graph/playout_queue.hpp"

#include <algorithm>
#include <cstring>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::graph {

namespace {

constexpr std::int64_t ms_ns = 1'000'000;

}  // namespace

void PlayoutQueue::append(PlayoutItem* item, std::int64_t now_ns) {
    item->next_node = nullptr;
    if (item->is_mark && first_ == nullptr) {
        listener_.mark_reached(item->mark, false);
        listener_.spent(item);
        return;
    }
    if (first_ == nullptr) {
        first_ = item;
    } else {
        last_->next_node = item;
    }
    last_ = item;
    queued_bytes_ += item->size_bytes;
    if (state_ == State::idle && !item->is_mark) {
        const bool underrun = has_played_ && now_ns - dry_ns_ < underrun_ns;
        if (underrun) listener_.playout_underrun();
        wanted_ms_ = underrun ? grown_prebuffer_ms : prebuffer_ms;
        state_ = State::filling;
        filling_since_ns_ = now_ns;
    }
    check_level();
}

void PlayoutQueue::watch_level(std::uint32_t full_ms, std::uint32_t low_ms) {
    full_bytes_ = std::uint64_t{full_ms} * format_.bytes_per_ms();
    low_bytes_ = std::uint64_t{low_ms} * format_.bytes_per_ms();
    full_ = full_ && full_bytes_ != 0;
    check_level();
}

void PlayoutQueue::clear() {
    if (first_ == nullptr) return;
    if (state_ == State::playing) {
        fade_left_ =
            static_cast<std::uint32_t>(take(std::span(fade_).first(fade_ms * format_.rate_hz / 1000)));
        for (std::uint32_t n = 0; n < fade_left_; ++n) {
            fade_[n] = static_cast<std::int16_t>(fade_[n] * static_cast<int>(fade_left_ - n) /
                                                 static_cast<int>(fade_left_ + 1));
        }
    }
    consume(queued_bytes_);
    while (first_ != nullptr) {
        if (first_->is_mark) listener_.mark_reached(first_->mark, true);
        pop_first();
    }
    state_ = State::idle;
    has_played_ = false;
    listener_.playout_drained();
}

bool PlayoutQueue::pull(std::span<std::int16_t> out, std::int64_t now_ns) {
    if (state_ == State::filling && ready(now_ns)) state_ = State::playing;
    if (!playing()) return false;
    std::size_t filled = play_fade(out);
    if (state_ == State::playing) {
        filled += take(out.subspan(filled));
        drop_spent();
        if (first_ == nullptr) run_dry(now_ns);
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(filled), out.end(), std::int16_t{0});
    return true;
}

bool PlayoutQueue::ready(std::int64_t now_ns) const {
    return queued_bytes_ >= std::uint64_t{wanted_ms_} * format_.bytes_per_ms() ||
           now_ns - filling_since_ns_ >= wanted_ms_ * ms_ns;
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

std::size_t PlayoutQueue::play_fade(std::span<std::int16_t> out) {
    const std::size_t count = std::min<std::size_t>(fade_left_, out.size());
    std::copy_n(fade_.begin(), count, out.begin());
    fade_left_ = 0;
    return count;
}

}  // namespace trunkline::graph
