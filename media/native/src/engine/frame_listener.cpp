#include "trunkline/engine/frame_listener.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::engine {

void FrameListener::put(const graph::AudioChunk& chunk, std::int64_t now_ns) {
    const std::size_t frame_samples = rate_hz() / 1000 * frame_ms;
    for (auto samples = chunk.samples; !samples.empty();) {
        const std::size_t count = std::min(samples.size(), frame_samples - filled_);
        std::copy_n(samples.begin(), count, frame_.begin() + static_cast<std::ptrdiff_t>(filled_));
        samples = samples.subspan(count);
        filled_ += count;
        if (filled_ < frame_samples) return;
        filled_ = 0;
        const std::size_t size_bytes = frame_samples * sizeof(std::int16_t);
        std::uint8_t* room = event_queue_.reserve_frame(size_bytes);
        if (room == nullptr) continue;
        std::memcpy(room, frame_.data(), size_bytes);
        event_queue_.commit_frame(id_, size_bytes, now_ns);
    }
}

void FrameListenerHandle::close() {
    if (Listener* listener = std::exchange(listener_, nullptr)) stream_->detach_listener(listener);
}

}  // namespace trunkline::engine
