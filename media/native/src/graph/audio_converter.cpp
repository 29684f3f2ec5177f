#include "trunkline/graph/audio_converter.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::graph {

namespace {

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
      context_(0),
      least_(from.rate_hz * least_ms / 1000) {
    if (from.rate_hz == to.rate_hz) return;
    resampler_.emplace(from.rate_hz, to.rate_hz);
    context_ = (resampler_->reach() + step_in_ - 1) / step_in_ * step_in_;
}

std::vector<std::uint8_t> AudioConverter::convert(std::span<const std::uint8_t> audio) {
    if (unchanged()) return {audio.begin(), audio.end()};
    const Samples samples = decoded(audio);
    if (!resampler_) return encoded(samples);
    waiting_.insert(waiting_.end(), samples.begin(), samples.end());
    if (waiting_.size() < least_) return {};
    Samples out;
    feed(std::exchange(waiting_, {}), out);
    return encoded(out);
}

std::vector<std::uint8_t> AudioConverter::flush() {
    return continues_ || !waiting_.empty() ? encoded(rest()) : std::vector<std::uint8_t>{};
}

std::vector<std::uint8_t> AudioConverter::whole(std::span<const std::uint8_t> audio) {
    auto all = convert(audio);
    const auto rest = flush();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

void AudioConverter::reset() {
    waiting_.clear();
    before_.clear();
    continues_ = false;
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

/// Convert the next samples of the audio.
void AudioConverter::feed(std::span<const std::int16_t> samples, Samples& out) {
    if (samples.empty()) return;
    if (!continues_) {
        continues_ = true;
        taken_ = made_ = 0;
        skipped_ = before_.size() / step_in_ * step_out_;
        resampler_->begin();
        filter(before_, out);
    }
    filter(samples, out);
    taken_ += samples.size();
    before_.insert(before_.end(), samples.begin(), samples.end());
    if (before_.size() > context_)
        before_.erase(before_.begin(), before_.end() - static_cast<std::ptrdiff_t>(context_));
}

void AudioConverter::filter(std::span<const std::int16_t> samples, Samples& out) {
    const std::size_t begin = out.size();
    resampler_->feed(samples, out);
    const std::size_t old = std::min(skipped_, out.size() - begin);
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(begin);
    out.erase(first, first + static_cast<std::ptrdiff_t>(old));
    skipped_ -= old;
    made_ += out.size() - begin;
}

/// Convert what waits as if the last sample went on, and end there.
AudioConverter::Samples AudioConverter::rest() {
    Samples out;
    feed(std::exchange(waiting_, {}), out);
    const std::int16_t last = before_.back();
    const std::size_t made = made_ - out.size();
    // To a whole number of steps, so that the next sample coincides with one of the other rate.
    feed(Samples((step_in_ - taken_ % step_in_) % step_in_, last), out);
    filter(Samples(resampler_->reach(), last), out);
    out.resize(taken_ / step_in_ * step_out_ - made);
    continues_ = false;
    return out;
}

}  // namespace trunkline::graph
