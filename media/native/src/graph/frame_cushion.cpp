#include "trunkline/graph/frame_cushion.hpp"

#include <algorithm>

namespace trunkline::graph {

void FrameCushion::put(std::span<const std::int16_t> piece) {
    const std::size_t capacity = std::size_t{max_ms} * rate_hz_ / 1000;
    piece = piece.last(std::min(piece.size(), capacity));
    if (size_ + piece.size() > capacity) drop(size_ + piece.size() - capacity);
    std::copy(piece.begin(), piece.end(), samples_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += piece.size();
    piece_ = piece.size();
}

void FrameCushion::take(std::span<std::int16_t> frame) {
    if (!flowing_) flowing_ = size_ != 0 && size_ >= frame.size() + piece_;
    const std::size_t count = flowing_ ? std::min(size_, frame.size()) : 0;
    std::copy_n(samples_.begin(), count, frame.begin());
    std::fill(frame.begin() + static_cast<std::ptrdiff_t>(count), frame.end(), std::int16_t{0});
    drop(count);
    if (count < frame.size()) flowing_ = false;
}

void FrameCushion::drop(std::size_t samples) {
    std::copy(samples_.begin() + static_cast<std::ptrdiff_t>(samples),
              samples_.begin() + static_cast<std::ptrdiff_t>(size_), samples_.begin());
    size_ -= samples;
}

}  // namespace trunkline::graph
