#include "trunkline/engine/speaking.hpp"

#include <algorithm>

namespace trunkline::engine {

void FrameGatherer::append(std::span<const std::int16_t> samples) {
    const std::size_t count = std::min(samples.size(), samples_.size() - size_);
    std::copy_n(samples.begin(), count, samples_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += count;
}

bool FrameGatherer::take(std::span<std::int16_t> frame) {
    if (size_ < frame.size()) return false;
    std::copy_n(samples_.begin(), frame.size(), frame.begin());
    const auto from = samples_.begin() + static_cast<std::ptrdiff_t>(frame.size());
    std::copy(from, samples_.begin() + static_cast<std::ptrdiff_t>(size_), samples_.begin());
    size_ -= frame.size();
    return true;
}

Speaking::Speaking(const MediaSettings& settings)
    : gathered(settings.format.rate_hz()),
      options_(settings.encoder),
      encoder_(codec::make_encoder(settings.format, settings.encoder)) {}

}  // namespace trunkline::engine
