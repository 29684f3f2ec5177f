#include "trunkline/dsp/comfort_noise.hpp"

#include <algorithm>
#include <cmath>

namespace trunkline::dsp {

namespace {

/// What the level is counted from: 0 dBov is the root mean square of a full square wave (RFC 3389 3.1).
constexpr float overload = 32768.0F;
constexpr float sqrt_3 = 1.7320508F;
constexpr float glide = 1.0F / 256;
constexpr std::uint8_t level_bits = 0x7F;

/// RFC 3389 3.2; 255 is reserved.
float reflection_of(std::uint8_t quantized) {
    return 258.0F * (static_cast<float>(std::min<std::uint8_t>(quantized, 254)) - 127.0F) / 32768.0F;
}

}  // namespace

void ComfortNoise::update(std::span<const std::uint8_t> payload) {
    if (payload.empty()) return;
    order_ = std::min(payload.size() - 1, max_order);
    float gain = overload * std::pow(10.0F, -static_cast<float>(payload[0] & level_bits) / 20.0F) * sqrt_3;
    for (std::size_t n = 0; n < order_; ++n) {
        reflection_[n] = reflection_of(payload[n + 1]);
        // What the filter amplifies is taken off before it, so that the level is the one described.
        gain *= std::sqrt(1.0F - reflection_[n] * reflection_[n]);
    }
    if (gain_ == 0) gain_ = gain;
    target_gain_ = gain;
    backward_.fill(0);
}

void ComfortNoise::generate(std::span<std::int16_t> out) {
    for (std::int16_t& sample : out) {
        gain_ += (target_gain_ - gain_) * glide;
        float forward = gain_ * excitation();
        for (std::size_t n = order_; n > 0; --n) {
            forward -= reflection_[n - 1] * backward_[n - 1];
            backward_[n] = backward_[n - 1] + reflection_[n - 1] * forward;
        }
        backward_[0] = forward;
        sample = static_cast<std::int16_t>(std::clamp(forward, -32767.0F, 32767.0F));
    }
}

/// White noise between -1 and 1.
float ComfortNoise::excitation() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return static_cast<float>(static_cast<std::int32_t>(random_)) / 2147483648.0F;
}

}  // namespace trunkline::dsp
