#include "trunkline/dsp/concealer.hpp"

#include <algorithm>
#include <cmath>

namespace trunkline::dsp {

namespace {

// In samples of 8 kHz: pitches of 66 to 200 Hz, compared over 20 ms (G.711 Appendix I, I.2).
constexpr std::size_t min_pitch = 40;
constexpr std::size_t max_pitch = 120;
constexpr std::size_t window = 160;
/// The repetition fades from its beginning and is silent after 50 ms: what it repeats is seldom said for
/// longer.
constexpr std::size_t silent_after = 400;

std::int16_t to_sample(float value) {
    return static_cast<std::int16_t>(std::lrintf(std::clamp(value, -32768.0F, 32767.0F)));
}

}  // namespace

Concealer::Concealer(std::uint32_t rate_hz)
    : scale_(rate_hz > 8000 ? 2 : 1), history_samples_((window + max_pitch) * scale_) {}

void Concealer::reset() {
    history_.fill(0);
    lost_ = 0;
}

void Concealer::received(std::span<std::int16_t> samples) {
    if (lost_ > 0) {
        // Short, for what is real is better than what was guessed.
        const std::size_t blend = std::min(pitch_ / 4, samples.size());
        for (std::size_t n = 0; n < blend; ++n) {
            const float weight = (static_cast<float>(n) + 0.5F) / static_cast<float>(blend);
            samples[n] = to_sample(weight * samples[n] + (1 - weight) * next_synthetic());
        }
        lost_ = 0;
    }
    remember(samples);
}

void Concealer::conceal(std::span<std::int16_t> out) {
    if (lost_ == 0) begin();
    for (std::int16_t& sample : out) {
        sample = to_sample(next_synthetic());
    }
    remember(out);
}

void Concealer::begin() {
    pitch_ = find_pitch();
    at_ = 0;
    const std::int16_t* const end = history_.data() + history_samples_;
    std::copy(end - pitch_, end, cycle_.begin());
    const std::size_t overlap = pitch_ / 4;
    std::reverse_copy(end - overlap, end, mirror_.begin());
    // The end of the cycle is made to flow into its beginning.
    for (std::size_t n = 0; n < overlap; ++n) {
        const float weight = (static_cast<float>(n) + 0.5F) / static_cast<float>(overlap);
        const float before = *(end - pitch_ - overlap + n);
        float& value = cycle_[pitch_ - overlap + n];
        value = (1 - weight) * value + weight * before;
    }
}

/// The next sample of the repetition, faded as the length of the loss asks for.
float Concealer::next_synthetic() {
    const std::size_t lost = lost_++;
    float value = cycle_[at_];
    at_ = at_ + 1 < pitch_ ? at_ + 1 : 0;
    const std::size_t overlap = pitch_ / 4;
    if (lost < overlap) {
        // The speech before the loss is out already; its mirror image leads from it into the repetition.
        const float weight = (static_cast<float>(lost) + 0.5F) / static_cast<float>(overlap);
        value = weight * value + (1 - weight) * mirror_[lost];
    }
    const std::size_t end = silent_after * scale_;
    return lost < end ? value * static_cast<float>(end - lost) / static_cast<float>(end) : 0;
}

/// The lag at which the newest 20 ms resemble most what came before them.
std::size_t Concealer::find_pitch() const {
    std::size_t best = min_pitch * scale_;
    double most = -1;
    for (std::size_t lag = min_pitch * scale_; lag <= max_pitch * scale_; lag += scale_) {
        const double found = likeness(lag, scale_);
        if (found > most) {
            most = found;
            best = lag;
        }
    }
    if (scale_ == 1) return best;
    for (const std::size_t lag : {best - 1, best + 1}) {
        const bool within = lag >= min_pitch * scale_ && lag <= max_pitch * scale_;
        const double found = within ? likeness(lag, scale_) : -1;
        if (found > most) {
            most = found;
            best = lag;
        }
    }
    return best;
}

/// Normalised correlation of the newest 20 ms with those `lag` samples before, every `step`th sample.
double Concealer::likeness(std::size_t lag, std::size_t step) const {
    const std::int16_t* const newest = history_.data() + history_samples_ - window * scale_;
    const std::int16_t* const before = newest - lag;
    float sum = 0;
    float energy = 1;
    for (std::size_t n = 0; n < window * scale_; n += step) {
        sum += static_cast<float>(newest[n]) * before[n];
        energy += static_cast<float>(before[n]) * before[n];
    }
    return sum / std::sqrt(energy);
}

void Concealer::remember(std::span<const std::int16_t> samples) {
    if (samples.size() >= history_samples_) {
        samples = samples.last(history_samples_);
    } else {
        std::copy(history_.begin() + static_cast<std::ptrdiff_t>(samples.size()),
                  history_.begin() + static_cast<std::ptrdiff_t>(history_samples_), history_.begin());
    }
    std::copy(samples.begin(), samples.end(),
              history_.begin() + static_cast<std::ptrdiff_t>(history_samples_ - samples.size()));
}

}  // namespace trunkline::dsp
