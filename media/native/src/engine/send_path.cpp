#include "trunkline/engine/send_path.hpp"

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

SendPath::SendPath(const MediaSettings& settings)
    : gathered(settings.format.rate_hz()),
      options_(settings.encoder),
      encoder_(codec::make_encoder(settings.format, settings.encoder)),
      loss_pct_(settings.encoder.expected_loss_pct) {}

void SendPath::note_loss(std::uint8_t fraction) {
    const std::uint32_t reported_pct = (std::uint32_t{fraction} * 100 + 255) / 256;
    // Losses come in bursts: one good report in between does not mean that they are over.
    const std::uint32_t expected_pct = std::max(reported_pct, loss_pct_ * 3 / 4);
    if (expected_pct == loss_pct_) return;
    loss_pct_ = expected_pct;
    encoder_->expect_loss(expected_pct);
}

}  // namespace trunkline::engine
