#include "trunkline/graph/playout_buffer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trunkline/dsp/period.hpp"

namespace trunkline::graph {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t longest_chunk = 960;
/// Kept of what was handed out, to find the period of the sound in.
constexpr std::size_t history_samples = 640;
/// Buffered audio beyond the need of the jitter.
constexpr std::size_t reserve_ms = 5;
/// Least that is gathered before the first sound is handed out.
constexpr std::size_t first_depth_ms = 40;
/// So far above and below its target the delay may be without anything being done, and from there on haste
/// is right. Too little is heard when the next packet lags, too much hardly ever.
constexpr std::size_t slack_above_ms = 10;
constexpr std::size_t slack_below_ms = 4;
constexpr std::size_t urgent_ms = 60;
constexpr std::size_t change_interval_ms = 200;
constexpr std::size_t urgent_interval_ms = 40;
constexpr std::size_t quiet_step_ms = 10;
constexpr std::size_t overlap_ms = 5;
constexpr std::size_t compared_ms = 8;
constexpr std::size_t shortest_period_us = 2500;
constexpr std::size_t longest_period_ms = 15;
constexpr float good_likeness = 0.7F;
/// Concealment goes on so long before it fades, and has faded by then.
constexpr std::size_t conceal_full_ms = 10;
constexpr std::size_t conceal_max_ms = 60;
constexpr double smoothing = 1.0 / 32;
/// Mean size of samples below which nothing is to be heard, and how far below the voice a pause is.
constexpr float quiet_size = 20;
constexpr float pause_ratio = 1.0F / 16;
constexpr float level_fall = 0.999F;

float mean_size(std::span<const std::int16_t> samples) {
    std::int64_t sum = 0;
    for (const std::int16_t sample : samples) {
        sum += std::abs(std::int32_t{sample});
    }
    return samples.empty() ? 0 : static_cast<float>(sum) / static_cast<float>(samples.size());
}

}  // namespace

PlayoutBuffer::PlayoutBuffer(std::uint32_t rate_hz)
    : rate_hz_(rate_hz), sample_ns_(second_ns / rate_hz), frame_samples_(rate_hz / 50) {}

void PlayoutBuffer::put(std::span<const std::int16_t> samples, Origin origin, std::int64_t now_ns) {
    for (; !samples.empty(); samples = samples.subspan(std::min(samples.size(), longest_chunk))) {
        put_some(samples.first(std::min(samples.size(), longest_chunk)));
    }
    const bool begins = !started_ || spread_.lag_ns(media_ns_, now_ns) > JitterEstimator::max_lag_ns;
    started_ = true;
    // Pauses are filled late, and may be: only what is heard says how much must wait.
    if (begins || is_heard(origin)) measure(begins, now_ns);
}

void PlayoutBuffer::put_some(std::span<const std::int16_t> samples) {
    make_room(samples.size());
    std::int16_t* to = samples_.data() + tail_;
    std::copy(samples.begin(), samples.end(), to);
    if (concealed_run_ != 0) {
        std::array<std::int16_t, longest_chunk> going_on;
        const std::size_t overlap = std::min(samples_in_ms(overlap_ms), samples.size());
        for (std::size_t n = 0; n < overlap; ++n) {
            going_on[n] = next_concealed();
        }
        dsp::cross_fade(std::span(going_on).first(overlap), {to, overlap}, {to, overlap});
        concealed_run_ = 0;
    }
    tail_ += samples.size();
    media_ns_ += static_cast<std::int64_t>(samples.size()) * sample_ns_;
    drop_overflow();
}

/// So much that it cannot be caught up with by and by: cut it short.
void PlayoutBuffer::drop_overflow() {
    const std::size_t most = samples_in_ms(max_depth_ms);
    if (depth_samples() <= most) return;
    const auto target = static_cast<std::size_t>(std::min(target_samples(), static_cast<double>(most / 2)));
    const std::size_t excess = depth_samples() - target;
    figures_.overflowed_samples += excess;
    shorten(excess, std::min(samples_in_ms(overlap_ms), target));
}

/// Move what is needed to the front when the end is reached.
void PlayoutBuffer::make_room(std::size_t samples) {
    if (tail_ + samples <= capacity_samples) return;
    const std::size_t from = head_ - std::min(head_, history_samples);
    std::memmove(samples_.data(), samples_.data() + from, (tail_ - from) * sizeof(std::int16_t));
    head_ -= from;
    tail_ -= from;
}

void PlayoutBuffer::measure(bool begins, std::int64_t now_ns) {
    if (begins) {
        spread_.begin(media_ns_, now_ns);
    } else {
        spread_.note(media_ns_, now_ns);
    }
    const auto lag_samples =
        static_cast<double>(spread_.lag_ns(media_ns_, now_ns)) / static_cast<double>(sample_ns_);
    const double delay = depth_samples() + lag_samples;
    delay_samples_ += begins ? delay - delay_samples_ : (delay - delay_samples_) * smoothing;
}

double PlayoutBuffer::target_samples() const {
    const auto spread = static_cast<double>(spread_.spread_ns() / sample_ns_);
    return spread + static_cast<double>(frame_samples_ + samples_in_ms(reserve_ms));
}

std::uint32_t PlayoutBuffer::pull(std::span<std::int16_t> out) {
    frame_samples_ = out.size();
    const std::size_t enough = std::max(frame_samples_, samples_in_ms(first_depth_ms));
    if (gathering_) gathering_ = depth_samples() < enough;
    if (gathering_) {
        std::fill(out.begin(), out.end(), std::int16_t{0});
        return 0;
    }
    since_change_ += out.size();
    correct();
    const std::size_t there = std::min<std::size_t>(depth_samples(), out.size());
    if (there < out.size()) conceal(out.size() - there);
    std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(head_), out.size(), out.begin());
    head_ += out.size();
    note_level(out);
    return static_cast<std::uint32_t>(there);
}

/// Bring the depth nearer to what it should be, by a little.
void PlayoutBuffer::correct() {
    const double excess = delay_samples_ - target_samples();
    const double size = std::abs(excess);
    const std::size_t slack = samples_in_ms(excess > 0 ? slack_above_ms : slack_below_ms);
    if (size < static_cast<double>(slack) || concealed_run_ != 0) return;
    const std::size_t step = std::min(static_cast<std::size_t>(size), samples_in_ms(quiet_step_ms));
    const std::size_t overlap = samples_in_ms(overlap_ms);
    if (depth_samples() >= frame_samples_ + step + overlap && is_quiet(step + overlap)) {
        excess > 0 ? shorten(step, overlap) : stretch(step, overlap);
        (excess > 0 ? figures_.removed_samples : figures_.inserted_samples) += step;
        return;
    }
    const bool urgent = size > static_cast<double>(samples_in_ms(urgent_ms));
    if (since_change_ < samples_in_ms(urgent ? urgent_interval_ms : change_interval_ms)) return;
    since_change_ = 0;
    correct_by_period(excess, urgent);
}

/// Leave out or repeat one period of the sound, or some of them.
void PlayoutBuffer::correct_by_period(double excess, bool urgent) {
    const std::size_t compared = samples_in_ms(compared_ms);
    const std::size_t shortest = shortest_period_us * rate_hz_ / 1'000'000;
    const std::size_t spare =
        depth_samples() - std::min<std::size_t>(depth_samples(), excess > 0 ? frame_samples_ : compared);
    const std::size_t longest = std::min(samples_in_ms(longest_period_ms), spare);
    const std::span<const std::int16_t> sound{samples_.data() + head_, depth_samples()};
    if (longest < shortest || sound.size() < compared + longest) return;
    const dsp::Period period = dsp::find_period(sound, compared, shortest, longest);
    if (period.samples == 0 || (period.likeness < good_likeness && !urgent)) return;
    const std::size_t overlap = std::min(samples_in_ms(overlap_ms), period.samples);
    if (excess > 0) {
        shorten(period.samples, overlap);
        figures_.removed_samples += period.samples;
    } else {
        stretch(period.samples, overlap);
        figures_.inserted_samples += period.samples;
    }
}

/// True if the next samples are a pause.
bool PlayoutBuffer::is_quiet(std::size_t samples) const {
    const float size = mean_size({samples_.data() + head_, samples});
    return size < quiet_size || size < level_ * pause_ratio;
}

void PlayoutBuffer::note_level(std::span<const std::int16_t> frame) {
    level_ = std::max(mean_size(frame), level_ * level_fall);
}

/// Leave out the next samples; what they begin with fades into what comes after them.
void PlayoutBuffer::shorten(std::size_t by, std::size_t overlap) {
    std::int16_t* at = samples_.data() + head_;
    dsp::cross_fade({at, overlap}, {at + by, overlap}, {at, overlap});
    const std::size_t left = depth_samples() - by - overlap;
    std::memmove(at + overlap, at + by + overlap, left * sizeof(std::int16_t));
    tail_ -= by;
    delay_samples_ -= static_cast<double>(by);
}

/// Repeat the next samples once; what follows them fades into their beginning.
void PlayoutBuffer::stretch(std::size_t by, std::size_t overlap) {
    make_room(by);
    std::int16_t* at = samples_.data() + head_;
    std::memmove(at + by, at, depth_samples() * sizeof(std::int16_t));
    tail_ += by;
    std::int16_t* second = at + by;
    dsp::cross_fade({second + by, overlap}, {second, overlap}, {second, overlap});
    delay_samples_ += static_cast<double>(by);
}

/// Find out what to repeat: the last period of what was heard.
void PlayoutBuffer::begin_concealment() {
    const std::size_t compared = samples_in_ms(compared_ms);
    const std::size_t longest = std::min(samples_in_ms(longest_period_ms), period_.size());
    period_samples_ = phase_ = 0;
    step_ = 0;
    if (tail_ < compared + longest) return;
    // Compared from its end backwards: the sound that is repeated must fit where it is continued.
    std::array<std::int16_t, longest_chunk> backwards;
    const std::span<std::int16_t> sound = std::span(backwards).first(compared + longest);
    std::reverse_copy(samples_.begin() + static_cast<std::ptrdiff_t>(tail_ - sound.size()),
                      samples_.begin() + static_cast<std::ptrdiff_t>(tail_), sound.begin());
    period_samples_ =
        dsp::find_period(sound, compared, shortest_period_us * rate_hz_ / 1'000'000, longest).samples;
    if (period_samples_ == 0) return;
    const std::int16_t* last = samples_.data() + tail_ - period_samples_;
    std::copy_n(last, period_samples_, period_.begin());
    // The end of the period leads over to its beginning, and so does the end of what was heard.
    const std::size_t overlap = std::min(samples_in_ms(overlap_ms), period_samples_ / 2);
    const std::span<std::int16_t> end = std::span(period_).subspan(period_samples_ - overlap, overlap);
    step_ = samples_[tail_ - 1] - last[-1];
    dsp::cross_fade(end, {last - overlap, overlap}, end);
}

std::int16_t PlayoutBuffer::next_concealed() {
    const auto full = static_cast<std::int64_t>(samples_in_ms(conceal_full_ms));
    const auto most = static_cast<std::int64_t>(samples_in_ms(conceal_max_ms));
    const auto age = static_cast<std::int64_t>(concealed_run_++);
    if (period_samples_ == 0 || age >= most) return 0;
    const std::int64_t gain = age < full ? most - full : most - age;
    const auto smoothed = static_cast<std::int64_t>(samples_in_ms(overlap_ms));
    const std::int64_t step = age < smoothed ? step_ * (smoothed - age) / smoothed : 0;
    const std::int64_t sample = std::clamp<std::int64_t>(period_[phase_] + step, -32768, 32767);
    phase_ = phase_ + 1 < period_samples_ ? phase_ + 1 : 0;
    return static_cast<std::int16_t>(sample * gain / (most - full));
}

/// The buffer is dry: the last sound goes on and fades away.
void PlayoutBuffer::conceal(std::size_t samples) {
    make_room(samples);
    if (concealed_run_ == 0) begin_concealment();
    for (std::size_t n = 0; n < samples; ++n) {
        samples_[tail_++] = next_concealed();
    }
    figures_.concealed_samples += samples;
    delay_samples_ += static_cast<double>(samples);
}

ClockedFigures PlayoutBuffer::figures() const {
    ClockedFigures figures = figures_;
    figures.depth_ms = static_cast<std::uint32_t>(depth_samples() * 1000 / rate_hz_);
    return figures;
}

}  // namespace trunkline::graph
