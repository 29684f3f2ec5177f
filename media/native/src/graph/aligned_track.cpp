#include "trunkline/graph/aligned_track.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace trunkline::graph {

namespace {

/// Most that audio may lie ahead of time: a burst after a stall of the network.
constexpr std::int64_t max_ahead_ms = 300;
/// A window of this length, and longer the more delays vary, has a packet with next to no delay.
constexpr std::int64_t window_ms = 1000;
constexpr std::int64_t window_spreads = 20;
/// A smaller error of place is left alone: nobody hears it, and each correction is a cut.
constexpr std::int64_t slack_ms = 15;
/// Sound after so much quiet may be moved as a whole, as the first sound may; pauses between words are
/// shorter.
constexpr std::int64_t quiet_ms = 400;
/// It settles in its place for so long, in steps no smaller than this.
constexpr std::int64_t settle_ms = 250;
constexpr std::int64_t settle_slack_ms = 1;
/// An error this large is corrected without waiting for a pause. Smaller ones are less than a cut in a word.
constexpr std::int64_t urgent_ms = 40;
/// Shortest gap that is distinguished from jitter.
constexpr std::int64_t gap_ms = 20;
/// Edges of cuts are softened for so long.
constexpr std::int64_t fade_ms = 3;
/// Mean level below which a cut is not heard.
constexpr std::int64_t quiet_level = 160;

}  // namespace

AlignedTrack::AlignedTrack(std::uint32_t rate_hz, Run run)
    : rate_hz_(rate_hz),
      run_(run),
      capacity_(std::bit_ceil(static_cast<std::size_t>(
          of_ms(lag_ms + max_ahead_ms + static_cast<std::int64_t>(max_piece_ms) + 100)))),
      ring_(std::make_unique<std::int16_t[]>(capacity_)) {}

void AlignedTrack::put(std::span<const std::int16_t> samples, std::int64_t at) {
    const auto size = static_cast<std::int64_t>(samples.size());
    if (size == 0 || size > of_ms(max_piece_ms)) return;
    const std::int64_t lateness = at - (write_ + size);
    if (lateness < -of_ms(max_ahead_ms)) {
        dropped_samples_ += samples.size();
        return;
    }
    if (!started_ || lateness > tolerance()) {
        if (started_) open_gap(lateness);
        write_ = std::max({write_, read_, at - size});
        // What passed before the beginning.
        samples = samples.last(static_cast<std::size_t>(std::clamp<std::int64_t>(at - write_, 0, size)));
        started_ = true;
        begin_stretch(write_ - read_);
        off_ = 0;
        begin_window();
    } else {
        settle(lateness);
        note(at - (write_ + size), samples.size());
        samples = correct(samples);
    }
    append(samples);
}

void AlignedTrack::pull(std::span<std::int16_t> out) {
    for (std::int16_t& sample : out) {
        sample = std::exchange(at(read_++), std::int16_t{0});
    }
}

void AlignedTrack::skip(std::int64_t samples) {
    const std::int64_t held = std::min(samples, static_cast<std::int64_t>(capacity_));
    for (std::int64_t n = 0; n < held; ++n) {
        at(read_ + n) = 0;
    }
    read_ += samples;
}

/// How much later than its place a chunk may come and still belong right behind the one before.
std::int64_t AlignedTrack::tolerance() const {
    if (run_ == Run::unbroken) return of_ms(lag_ms);
    return std::min(of_ms(gap_ms) + 2 * spread_, of_ms(lag_ms));
}

/// What is heard next stands behind so much quiet, in which it may be moved.
void AlignedTrack::begin_stretch(std::int64_t room) {
    stretch_begin_ = write_;
    stretch_room_ = room;
}

/// A stretch of sound is placed by its first chunk, which may be one that was delayed. While nothing of it
/// was taken out, a chunk with less delay moves all of it into the quiet before, and no cut is needed later.
void AlignedTrack::settle(std::int64_t lateness) {
    const std::int64_t earlier = std::min({-lateness, stretch_room_, stretch_begin_ - read_});
    if (earlier <= of_ms(settle_slack_ms) || write_ - stretch_begin_ > of_ms(settle_ms)) return;
    for (std::int64_t n = stretch_begin_; n < write_; ++n) {
        at(n - earlier) = std::exchange(at(n), std::int16_t{0});
    }
    stretch_begin_ -= earlier;
    stretch_room_ -= earlier;
    write_ -= earlier;
    off_ = 0;
    begin_window();
}

void AlignedTrack::note(std::int64_t lateness, std::size_t samples) {
    least_late_ = std::min(least_late_, lateness);
    most_late_ = std::max(most_late_, lateness);
    noted_samples_ += static_cast<std::int64_t>(samples);
    if (noted_samples_ < of_ms(window_ms) + window_spreads * spread_) return;
    spread_ = std::max(most_late_ - least_late_, spread_ * 3 / 4);
    off_ = std::abs(least_late_) > of_ms(slack_ms) ? least_late_ : 0;
    begin_window();
}

/// Move the run to where it belongs, if that is known and the moment is right; returns what is left to
/// append.
std::span<const std::int16_t> AlignedTrack::correct(std::span<const std::int16_t> samples) {
    if (off_ == 0) return samples;
    if (std::abs(off_) < of_ms(urgent_ms) && !quiet(samples)) return samples;
    if (off_ > 0) {
        open_gap(off_);
        write_ += std::exchange(off_, 0);
    } else {
        const auto dropped = std::min(static_cast<std::size_t>(-off_), samples.size());
        off_ += static_cast<std::int64_t>(dropped);
        samples = close_gap(samples, dropped);
    }
    begin_window();
    return samples;
}

bool AlignedTrack::quiet(std::span<const std::int16_t> samples) const {
    std::int64_t sum = 0;
    for (const std::int16_t sample : samples) {
        sum += std::abs(sample);
    }
    return sum <= quiet_level * static_cast<std::int64_t>(samples.size());
}

/// Silence follows: let what was written last fade out.
void AlignedTrack::open_gap(std::int64_t samples) {
    if (samples <= 0) return;
    const std::int64_t faded = std::min(of_ms(fade_ms), write_ - read_);
    for (std::int64_t n = 1; n <= faded; ++n) {
        std::int16_t& sample = at(write_ - n);
        sample = static_cast<std::int16_t>(sample * (n - 1) / faded);
    }
}

/// Leave out the first samples, blending what comes before the rest into what was written last.
std::span<const std::int16_t> AlignedTrack::close_gap(std::span<const std::int16_t> samples,
                                                      std::size_t dropped) {
    dropped_samples_ += dropped;
    const std::int64_t blended =
        std::min({of_ms(fade_ms), write_ - read_, static_cast<std::int64_t>(dropped)});
    for (std::int64_t n = 1; n <= blended; ++n) {
        std::int16_t& sample = at(write_ - n);
        const std::int16_t coming = samples[dropped - static_cast<std::size_t>(n)];
        sample = static_cast<std::int16_t>((sample * n + coming * (blended - n)) / blended);
    }
    return samples.subspan(dropped);
}

void AlignedTrack::append(std::span<const std::int16_t> samples) {
    // What was taken out as silence meanwhile is past.
    write_ = std::max(write_, read_);
    if (write_ + static_cast<std::int64_t>(samples.size()) - read_ > static_cast<std::int64_t>(capacity_)) {
        dropped_samples_ += samples.size();
        return;
    }
    if (quiet(samples)) {
        quiet_samples_ += static_cast<std::int64_t>(samples.size());
    } else {
        if (!heard_ || quiet_samples_ >= of_ms(quiet_ms)) begin_stretch(quiet_samples_);
        heard_ = true;
        quiet_samples_ = 0;
    }
    for (const std::int16_t sample : samples) {
        at(write_++) = sample;
    }
}

void AlignedTrack::begin_window() {
    least_late_ = std::numeric_limits<std::int64_t>::max();
    most_late_ = std::numeric_limits<std::int64_t>::min();
    noted_samples_ = 0;
}

}  // namespace trunkline::graph
