#include "trunkline/codec/comfort_noise.hpp"

#include <algorithm>
#include <cmath>

namespace trunkline::codec {

namespace {

constexpr double overload = 32767;
constexpr std::uint8_t quietest_dbov = 127;
constexpr std::uint8_t reserved = 255;
/// Weight of a new frame of silence.
constexpr double smoothing = 0.2;
/// Share of the way to a new level that each sample goes: most of it in 10 ms at 8 kHz.
constexpr float glide = 0.02F;

/// RFC 3389 3.2. The sign is that of the step-up recursion, a(m) = k(m): negative for noise of low pitch.
constexpr double coefficient(std::uint8_t index) {
    return 258.0 * (index - 127) / 32768;
}

std::uint8_t index_of(double value) {
    return static_cast<std::uint8_t>(std::clamp(std::lround(value * 32768 / 258) + 127, 0L, 254L));
}

std::uint8_t level_of(double power) {
    if (power <= 0) return quietest_dbov;
    const long level_dbov = std::lround(20 * std::log10(overload / std::sqrt(power)));
    return static_cast<std::uint8_t>(std::clamp(level_dbov, 0L, long{quietest_dbov}));
}

}  // namespace

std::optional<NoiseParameters> parse_noise(std::span<const std::uint8_t> payload) {
    if (payload.empty()) return std::nullopt;
    NoiseParameters parameters;
    parameters.level_dbov = payload[0] & 0x7F;
    for (const std::uint8_t index : payload.subspan(1)) {
        if (index == reserved || parameters.order == NoiseParameters::max_order) break;
        parameters.reflection[parameters.order++] = index;
    }
    return parameters;
}

std::size_t write_noise(const NoiseParameters& parameters, std::span<std::uint8_t> out) {
    const std::size_t order = std::min<std::size_t>(parameters.order, NoiseParameters::max_order);
    if (out.size() < 1 + order) return 0;
    out[0] = parameters.level_dbov & 0x7F;
    std::copy_n(parameters.reflection.begin(), order, out.begin() + 1);
    return 1 + order;
}

void NoiseMeter::observe(std::span<const std::int16_t> silence) {
    if (silence.empty()) return;
    const double weight = begun_ ? smoothing : 1;
    begun_ = true;
    for (std::size_t lag = 0; lag < correlation_.size(); ++lag) {
        double sum = 0;
        for (std::size_t n = lag; n < silence.size(); ++n) {
            sum += static_cast<double>(silence[n]) * silence[n - lag];
        }
        correlation_[lag] += weight * (sum / static_cast<double>(silence.size()) - correlation_[lag]);
    }
}

NoiseParameters NoiseMeter::parameters(std::size_t order) const {
    NoiseParameters found;
    found.level_dbov = level_of(correlation_[0]);
    found.order = static_cast<std::uint8_t>(std::min(order, NoiseParameters::max_order));
    // Levinson and Durbin; a floor of noise keeps the coefficients within what 8 bits can say.
    std::array<double, NoiseParameters::max_order + 1> a{1};
    double error = correlation_[0] * 1.0001 + 1e-9;
    for (std::size_t m = 1; m <= found.order; ++m) {
        double sum = correlation_[m];
        for (std::size_t n = 1; n < m; ++n) {
            sum += a[n] * correlation_[m - n];
        }
        const double k = std::clamp(-sum / error, -0.99, 0.99);
        found.reflection[m - 1] = index_of(k);
        const auto before = a;
        for (std::size_t n = 1; n < m; ++n) {
            a[n] = before[n] + k * before[m - n];
        }
        a[m] = k;
        error *= 1 - k * k;
    }
    return found;
}

void NoiseMeter::reset() {
    correlation_.fill(0);
    begun_ = false;
}

void NoiseGenerator::set(const NoiseParameters& parameters) {
    const std::size_t order = std::min<std::size_t>(parameters.order, NoiseParameters::max_order);
    double power = 1;
    for (std::size_t n = 0; n < order; ++n) {
        const double k = std::clamp(coefficient(parameters.reflection[n]), -0.99, 0.99);
        reflection_[n] = static_cast<float>(k);
        power *= 1 - k * k;
    }
    // What the filter adds to the power is taken from what drives it.
    const bool silent = parameters.level_dbov >= quietest_dbov;
    target_ =
        silent
            ? 0
            : static_cast<float>(overload * std::pow(10, parameters.level_dbov / -20.0) * std::sqrt(power));
    if (order != order_) {
        order_ = order;
        delayed_.fill(0);
    }
}

void NoiseGenerator::generate(std::span<std::int16_t> out) {
    for (std::int16_t& sample : out) {
        gain_ += glide * (target_ - gain_);
        float forward = gain_ * white();
        for (std::size_t m = order_; m-- > 0;) {
            forward -= reflection_[m] * delayed_[m];
            const float backward = delayed_[m] + reflection_[m] * forward;
            if (m + 1 < order_) delayed_[m + 1] = backward;
        }
        if (order_ > 0) delayed_[0] = forward;
        sample = static_cast<std::int16_t>(std::lrintf(std::clamp(forward, -32768.0F, 32767.0F)));
    }
}

void NoiseGenerator::reset() {
    *this = NoiseGenerator{};
}

/// White noise of power 1, nearly Gaussian.
float NoiseGenerator::white() {
    float sum = 0;
    for (int n = 0; n < 3; ++n) {
        seed_ = seed_ * 1664525 + 1013904223;
        sum += static_cast<float>(static_cast<std::int32_t>(seed_)) / 2147483648.0F;
    }
    // Three uniform values of variance 1/3 each.
    return sum;
}

}  // namespace trunkline::codec
