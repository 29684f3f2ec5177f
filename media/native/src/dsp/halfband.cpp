#include "trunkline/dsp/halfband.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trunkline::dsp {

namespace {

/// Kaiser's shape parameter for a stop band 70 dB down.
constexpr double beta = 6.76;

double bessel_i0(double x) {
    double sum = 1;
    double term = 1;
    for (int k = 1; k < 32; ++k) {
        term *= x / (2 * k) * x / (2 * k);
        sum += term;
    }
    return sum;
}

/// The branch of the polyphase filter that is not a mere delay: 2 * half_taps symmetric taps with sum 1.
std::array<float, 2 * half_taps> make_branch() {
    std::array<double, 2 * half_taps> taps{};
    double sum = 0;
    for (std::size_t k = 0; k < taps.size(); ++k) {
        const double at = static_cast<double>(k) - (static_cast<double>(taps.size()) - 1) / 2;
        const double position = 2 * at / static_cast<double>(taps.size());
        const double window = bessel_i0(beta * std::sqrt(1 - position * position)) / bessel_i0(beta);
        taps[k] = std::sin(std::numbers::pi * at) / (std::numbers::pi * at) * window;
        sum += taps[k];
    }
    std::array<float, 2 * half_taps> branch{};
    for (std::size_t k = 0; k < taps.size(); ++k) {
        branch[k] = static_cast<float>(taps[k] / sum);
    }
    return branch;
}

const std::array<float, 2 * half_taps> branch = make_branch();

float filter(const float* newest_last) {
    float sum = 0;
    for (std::size_t k = 0; k < branch.size(); ++k) {
        sum += branch[k] * newest_last[k];
    }
    return sum;
}

std::int16_t to_sample(float value) {
    return static_cast<std::int16_t>(std::lrintf(std::clamp(value, -32768.0F, 32767.0F)));
}

}  // namespace

void Upsampler::process(std::span<const std::int16_t> in, std::int16_t* out) {
    std::copy(in.begin(), in.end(), history_.begin() + history_samples);
    for (std::size_t n = 0; n < in.size(); ++n) {
        // The centre of the filter: half_taps samples back, and the value half-way to the next.
        *out++ = to_sample(history_[n + half_taps - 1]);
        *out++ = to_sample(filter(history_.data() + n));
    }
    std::copy_n(history_.begin() + static_cast<std::ptrdiff_t>(in.size()), history_samples, history_.begin());
}

void Downsampler::process(std::span<const std::int16_t> in, std::int16_t* out) {
    const std::size_t pairs = in.size() / 2;
    for (std::size_t n = 0; n < pairs; ++n) {
        even_[history_samples + n] = in[2 * n];
        odd_[history_samples + n] = in[2 * n + 1];
    }
    for (std::size_t n = 0; n < pairs; ++n) {
        *out++ = to_sample(0.5F * (even_[n + half_taps] + filter(odd_.data() + n)));
    }
    std::copy_n(even_.begin() + static_cast<std::ptrdiff_t>(pairs), history_samples, even_.begin());
    std::copy_n(odd_.begin() + static_cast<std::ptrdiff_t>(pairs), history_samples, odd_.begin());
}

void Downsampler::reset() {
    even_.fill(0);
    odd_.fill(0);
}

}  // namespace trunkline::dsp
