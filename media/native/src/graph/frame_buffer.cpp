#include "trunkline/graph/frame_buffer.hpp"

#include <algorithm>

namespace trunkline::graph {

void FrameBuffer::put(std::span<const std::int16_t> chunk) {
    const std::size_t capacity = std::size_t{max_ms} * rate_hz_ / 1000;
    chunk = chunk.last(std::min(chunk.size(), capacity));
    if (size_ + chunk.size() > capacity) drop(size_ + chunk.size() - capacity);
    std::copy(chunk.begin(), chunk.end(), samples_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += chunk.size();
    chunk_ = chunk.size();
}

void FrameBuffer::take(std::span<std::int16_t> frame) {
    if (!flowing_) flowing_ = size_ != 0 && size_ >= frame.size() + chunk_;
    const std::size_t count = flowing_ ? std::min(size_, frame.size()) : 0;
    std::copy_n(samples_.begin(), count, frame.begin());
    std::fill(frame.begin() + static_cast<std::ptrdiff_t>(count), frame.end(), std::int16_t{0});
    drop(count);
    if (count < frame.size()) flowing_ = false;
}

void FrameBuffer::drop(std::size_t samples) {
    std::copy(samples_.begin() + static_cast<std::ptrdiff_t>(samples),
              samples_.begin() + static_cast<std::ptrdiff_t>(size_), samples_.begin());
    size_ -= samples;
}

}  // namespace trunkline::graph
