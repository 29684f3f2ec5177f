#include "trunkline/graph/playback_queue.hpp"

#include <algorithm>
#include <cstring>

namespace trunkline::graph {

void PlaybackQueue::append(Clip* clip) {
    clip->next_node = nullptr;
    if (first_ == nullptr) {
        first_ = clip;
        position_samples_ = 0;
    } else {
        last_->next_node = clip;
    }
    last_ = clip;
}

void PlaybackQueue::stop() {
    while (first_ != nullptr) {
        drop_first(true);
    }
}

void PlaybackQueue::pull(std::span<std::int16_t> out) {
    while (!out.empty() && first_ != nullptr) {
        const std::size_t left = first_->size_samples() - position_samples_;
        const std::size_t count = std::min(left, out.size());
        if (count != 0) std::memcpy(out.data(), first_->bytes.data() + 2 * position_samples_, 2 * count);
        out = out.subspan(count);
        position_samples_ += count;
        if (position_samples_ < first_->size_samples()) continue;
        position_samples_ = 0;
        // An empty clip that loops would never let go.
        if (!first_->loop || first_ != last_ || first_->bytes.size() < 2) drop_first(false);
    }
    std::fill(out.begin(), out.end(), std::int16_t{0});
}

void PlaybackQueue::drop_first(bool interrupted) {
    Clip* clip = first_;
    first_ = static_cast<Clip*>(clip->next_node);
    if (first_ == nullptr) last_ = nullptr;
    position_samples_ = 0;
    listener_.playback_finished(clip->id, interrupted);
    listener_.spent(clip);
}

}  // namespace trunkline::graph
