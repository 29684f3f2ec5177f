#include "trunkline/graph/audio_converter.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::graph {

namespace {

/// Upper bound of the audio before and after a sample that the filter needs.
constexpr std::size_t context_ms = 10;
/// Least audio converted at a time: an agent that sends single samples would keep us busy.
constexpr std::size_t least_ms = 5;

dsp::Law law_of(Encoding encoding) {
    return encoding == Encoding::mulaw ? dsp::Law::mu : dsp::Law::a;
}

/// The rates of two formats in their smallest terms.
std::pair<std::size_t, std::size_t> steps_of(const AudioFormat& from, const AudioFormat& to) {
    if (!dsp::can_resample(from.rate_hz, to.rate_hz))
        throw std::invalid_argument("these rates cannot be converted");
    const std::uint32_t common = std::gcd(from.rate_hz, to.rate_hz);
    return {from.rate_hz / common, to.rate_hz / common};
}

}  // namespace

AudioConverter::AudioConverter(AudioFormat from, AudioFormat to)
    : from_(from),
      to_(to),
      step_in_(steps_of(from, to).first),
      step_out_(steps_of(from, to).second),
      context_((from.rate_hz * context_ms / 1000 + step_in_ - 1) / step_in_ * step_in_),
      least_(from.rate_hz * least_ms / 1000) {
    if (from.rate_hz != to.rate_hz) resampler_.emplace(from.rate_hz, to.rate_hz);
}

std::vector<std::uint8_t> AudioConverter::convert(std::span<const std::uint8_t> audio) {
    if (unchanged()) return {audio.begin(), audio.end()};
    const Samples samples = decoded(audio);
    return encoded(resampler_ ? feed(samples) : samples);
}

std::vector<std::uint8_t> AudioConverter::flush() {
    if (!resampler_ || waiting_.empty()) return {};
    // Pad to a whole number of steps, so that the next sample coincides with one of the other rate.
    const std::int16_t last = waiting_.back();
    waiting_.resize((waiting_.size() + step_in_ - 1) / step_in_ * step_in_, last);
    return encoded(cut(waiting_.size(), Samples(context_, last)));
}

std::vector<std::uint8_t> AudioConverter::whole(std::span<const std::uint8_t> audio) {
    auto all = convert(audio);
    const auto rest = flush();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

void AudioConverter::reset() {
    before_.clear();
    waiting_.clear();
}

AudioConverter::Samples AudioConverter::decoded(std::span<const std::uint8_t> audio) const {
    Samples samples(audio.size() / from_.sample_bytes());
    if (from_.encoding != Encoding::l16) {
        dsp::decode(law_of(from_.encoding), audio, samples.data());
    } else if (!samples.empty()) {
        std::memcpy(samples.data(), audio.data(), 2 * samples.size());
    }
    return samples;
}

std::vector<std::uint8_t> AudioConverter::encoded(std::span<const std::int16_t> samples) const {
    std::vector<std::uint8_t> audio(samples.size() * to_.sample_bytes());
    if (to_.encoding != Encoding::l16) {
        dsp::encode(law_of(to_.encoding), samples, audio.data());
    } else if (!audio.empty()) {
        std::memcpy(audio.data(), samples.data(), audio.size());
    }
    return audio;
}

AudioConverter::Samples AudioConverter::feed(std::span<const std::int16_t> samples) {
    waiting_.insert(waiting_.end(), samples.begin(), samples.end());
    if (waiting_.size() < context_) return {};
    const std::size_t size = (waiting_.size() - context_) / step_in_ * step_in_;
    if (size == 0 || size < least_) return {};
    const Samples after(waiting_.begin() + static_cast<std::ptrdiff_t>(size),
                        waiting_.begin() + static_cast<std::ptrdiff_t>(size + context_));
    return cut(size, after);
}

/// Convert the first `size` samples that wait, with the audio before them and `after` around them.
AudioConverter::Samples AudioConverter::cut(std::size_t size, std::span<const std::int16_t> after) {
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(size);
    const std::size_t begin = before_.size() / step_in_ * step_out_;
    before_.insert(before_.end(), waiting_.begin(), end);
    Samples all = before_;
    all.insert(all.end(), after.begin(), after.end());
    const Samples out = resampler_->convert(all);
    if (before_.size() > context_)
        before_.erase(before_.begin(), before_.end() - static_cast<std::ptrdiff_t>(context_));
    waiting_.erase(waiting_.begin(), end);
    const std::size_t made = std::min(size / step_in_ * step_out_, out.size() - std::min(begin, out.size()));
    const auto from = out.begin() + static_cast<std::ptrdiff_t>(std::min(begin, out.size()));
    return {from, from + static_cast<std::ptrdiff_t>(made)};
}

}  // namespace trunkline::graph
