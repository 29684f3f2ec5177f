#include "trunkline/graph/playback.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace trunkline::graph {

namespace {

/// Delay of the converters, in samples at 8 kHz.
constexpr std::uint32_t converter_delay_samples = dsp::half_taps;
constexpr std::size_t max_block_samples = 2 * dsp::Downsampler::max_block_samples;
constexpr std::uint32_t tick_hz = 16'000;

}  // namespace

std::size_t Playback::pull(std::span<std::int16_t> out, std::uint32_t rate_hz, bool let_go) {
    if (rate_hz != rate_hz_) {
        rate_hz_ = rate_hz;
        flush_left_ = 0;
        upsampler_.reset();
        downsampler_.reset();
    }
    std::size_t filled = 0;
    while (filled < out.size()) {
        const auto room = out.subspan(filled);
        if (flush_left_ != 0) {
            filled += flush(room, rate_hz);
        } else if (find_clip(let_go)) {
            filled += take(room, rate_hz);
        } else if (flush_left_ == 0) {
            break;
        }
    }
    // The end is noticed with the last sample, not with the next pull.
    if (!over_ && flush_left_ == 0) find_clip(let_go);
    amplify(out.first(filled));
    return filled;
}

bool Playback::position_due() {
    if (position_every_ms == 0) return false;
    if (next_position_ms_ == 0) next_position_ms_ = position_every_ms;
    if (played_ms() < next_position_ms_) return false;
    next_position_ms_ = (played_ms() / position_every_ms + 1) * position_every_ms;
    return true;
}

/// Go on to the clip that has the next sample; false at the end, and before a change of rate.
bool Playback::find_clip(bool let_go) {
    while (!over_ && flush_left_ == 0) {
        if (clips.empty()) {
            over_ = true;
        } else if (offset_samples_ < clips[clip_].size_samples()) {
            return true;
        } else {
            next_clip(let_go);
        }
    }
    return false;
}

void Playback::next_clip(bool let_go) {
    const std::uint32_t rate_hz = clips[clip_].rate_hz;
    offset_samples_ = 0;
    if (++clip_ == clips.size()) {
        clip_ = 0;
        ++rounds_;
        // An endless round of nothing would never let go.
        over_ = !round_had_samples_ || (plays == 0 ? let_go : rounds_ >= plays);
        round_had_samples_ = false;
    }
    if (rate_hz != rate_hz_ && played_ticks_ != 0 && (over_ || clips[clip_].rate_hz != rate_hz)) {
        flush_left_ = converter_delay_samples;
        flush_rate_hz_ = rate_hz;
    }
}

/// Some samples of the present clip, as many as can be had in one go.
std::size_t Playback::take(std::span<std::int16_t> out, std::uint32_t rate_hz) {
    const Clip& clip = clips[clip_];
    const std::size_t left = clip.size_samples() - offset_samples_;
    round_had_samples_ = true;
    if (clip.rate_hz == rate_hz) {
        const auto part = out.first(std::min(left, out.size()));
        read(part);
        return part.size();
    }
    std::array<std::int16_t, max_block_samples> block;
    const bool up = clip.rate_hz < rate_hz;
    // Of a frame of odd length at 16 kHz, which nobody asks for, the last sample stays empty.
    if (up && out.size() < 2) {
        out[0] = 0;
        return 1;
    }
    const std::size_t wanted = up ? std::min(out.size() / 2, dsp::Upsampler::max_block_samples)
                                  : std::min(2 * out.size(), max_block_samples);
    const auto part = std::span(block).first(std::min(left, wanted));
    read(part);
    return convert(part, out);
}

/// Hand out what the converter holds back, before something else follows.
std::size_t Playback::flush(std::span<std::int16_t> out, std::uint32_t rate_hz) {
    const std::array<std::int16_t, 2 * converter_delay_samples> nothing{};
    const bool up = flush_rate_hz_ < rate_hz;
    const std::size_t in_8k = std::min<std::size_t>(flush_left_, up ? out.size() / 2 : out.size());
    if (in_8k == 0) {
        out[0] = 0;
        return 1;
    }
    flush_left_ -= static_cast<std::uint32_t>(in_8k);
    const std::size_t filled = up ? 2 * in_8k : in_8k;
    if (up) {
        upsampler_.process(std::span(nothing).first(in_8k), out.data());
    } else {
        downsampler_.process(std::span(nothing).first(2 * in_8k), out.data());
    }
    return filled;
}

/// Read from the present clip, of which enough is left.
void Playback::read(std::span<std::int16_t> out) {
    const Clip& clip = clips[clip_];
    const std::size_t sound = clip.sound_samples();
    const std::size_t count = offset_samples_ < sound ? std::min(sound - offset_samples_, out.size()) : 0;
    if (count != 0) std::memcpy(out.data(), clip.bytes.data() + 2 * offset_samples_, 2 * count);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), std::int16_t{0});
    offset_samples_ += out.size();
    played_ticks_ += out.size() * (tick_hz / clip.rate_hz);
}

std::size_t Playback::convert(std::span<const std::int16_t> in, std::span<std::int16_t> out) {
    if (clips[clip_].rate_hz < rate_hz_) {
        upsampler_.process(in, out.data());
        return 2 * in.size();
    }
    downsampler_.process(in, out.data());
    return in.size() / 2;
}

void Playback::amplify(std::span<std::int16_t> samples) const {
    if (gain == unity_gain) return;
    for (std::int16_t& sample : samples) {
        const std::int64_t scaled = std::int64_t{sample} * gain / unity_gain;
        sample = static_cast<std::int16_t>(std::clamp<std::int64_t>(scaled, -32768, 32767));
    }
}

}  // namespace trunkline::graph
