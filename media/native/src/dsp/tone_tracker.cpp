#include "trunkline/dsp/tone_tracker.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace trunkline::dsp {

namespace {

/// Least level of a tone.
constexpr float min_level_db = -40;
/// What foretelling may leave of a tone's power: noise 18 dB below it, more than G.711 and a bad line add.
constexpr float max_residue = 0.016F;
/// Tolerance between frames of one tone.
constexpr float max_freq_step_hz = 15;
constexpr float max_level_step_db = 3;
/// Tolerance of a tone's power within a frame, noise and its edges included.
constexpr double max_swell = 3;
/// Of a tone's frames, so many may be gaps: two tones that beat look like one most of the time.
constexpr std::uint32_t max_gap_share_pct = 12;
/// A tone lives through a gap this long: a lost or a noisy frame.
constexpr std::uint32_t max_missing_ms = 20;

/// True if the amplitude is constant. Of a sine, x[n]^2 - x[n-1] x[n+1] is the same everywhere (Teager);
/// of two tones that beat, as ringing tones do, it goes down to nothing again and again.
bool steady(DetectorFrame frame) {
    constexpr std::size_t parts = 4;
    constexpr std::size_t part = detector_frame_samples / parts;
    std::array<double, parts> energy{};
    for (std::size_t n = 1; n + 1 < frame.size(); ++n) {
        energy[n / part] +=
            static_cast<double>(frame[n]) * frame[n] - static_cast<double>(frame[n - 1]) * frame[n + 1];
    }
    const auto [least, most] = std::minmax_element(energy.begin(), energy.end());
    return *most < max_swell * *least;
}

/// A tone of the special information tone: about 950, 1400 and 1800 Hz, in the American variant 5 % off.
bool near_triple(std::uint32_t place, float freq_hz) {
    constexpr std::array<float, 3> expected{960, 1400, 1790};
    return std::fabs(freq_hz - expected[place]) < 70;
}

}  // namespace

ToneTracker::Look ToneTracker::look(DetectorFrame frame) {
    // With x[n] + x[n-2] = c x[n-1] for a sine, c = 2 cos(w): the c that fits best, and what it leaves.
    double power = 0;
    double cross = 0;
    double sums = 0;
    double total = 0;
    std::int32_t older = before_[0];
    std::int32_t old = before_[1];
    for (const std::int16_t sample : frame) {
        const double sum = sample + older;
        power += static_cast<double>(old) * old;
        cross += sum * old;
        sums += sum * sum;
        total += static_cast<double>(sample) * sample;
        older = std::exchange(old, sample);
    }
    before_ = {static_cast<std::int16_t>(older), static_cast<std::int16_t>(old)};
    Look seen;
    seen.level_db = level_db(static_cast<float>(total / detector_frame_samples));
    if (seen.level_db < min_level_db || power <= 0) return seen;
    const double fit = cross / power;
    // Noise is left once by the sample, once by the one before the last, and by the middle one as it is
    // weighed.
    const double residue = (sums - fit * cross) / (2 + fit * fit);
    if (std::fabs(fit) >= 2 || residue > max_residue * power || !steady(frame)) return seen;
    const auto freq_hz = static_cast<float>(std::acos(fit / 2) * detector_rate_hz / (2 * std::numbers::pi));
    if (freq_hz >= min_freq_hz && freq_hz <= max_freq_hz) seen.freq_hz = freq_hz;
    return seen;
}

std::optional<Tone> ToneTracker::frame(DetectorFrame frame) {
    const Look seen = look(frame);
    const bool fits = seen.freq_hz != 0 && lasting_ms_ != 0 &&
                      std::fabs(seen.freq_hz - freq_hz_) <= max_freq_step_hz &&
                      std::fabs(seen.level_db - level_db_) <= max_level_step_db;
    if (fits) {
        gaps_ms_ += missing_ms_;
        lasting_ms_ += std::exchange(missing_ms_, 0) + detector_frame_ms;
        freq_hz_ += (seen.freq_hz - freq_hz_) / 8;
        level_db_ += (seen.level_db - level_db_) / 4;
        return std::nullopt;
    }
    if (lasting_ms_ != 0 && missing_ms_ < max_missing_ms) {
        missing_ms_ += detector_frame_ms;
        return std::nullopt;
    }
    std::optional<Tone> ended;
    if (lasting_ms_ >= min_duration_ms && pure())
        ended = Tone{freq_hz_, lasting_ms_, missing_ms_ + detector_frame_ms};
    lasting_ms_ = seen.freq_hz != 0 ? detector_frame_ms : 0;
    missing_ms_ = gaps_ms_ = 0;
    freq_hz_ = seen.freq_hz;
    level_db_ = seen.level_db;
    return ended;
}

bool ToneTracker::pure() const {
    return gaps_ms_ * 100 <= lasting_ms_ * max_gap_share_pct;
}

std::optional<NamedTone> ToneNamer::frame(DetectorFrame frame) {
    since_last_ms_ += detector_frame_ms;
    const auto ended = tracker_.frame(frame);
    if (ended) {
        const bool told = std::exchange(named_, false);
        if (!told) return name(*ended);
    }
    // Answering tones last seconds; a fax need not be waited for.
    if (!named_ && tracker_.lasting_ms() >= 600 && std::fabs(tracker_.freq_hz() - 2100) < 30) {
        named_ = true;
        return NamedTone{ToneKind::fax_answer, tracker_.freq_hz(), tracker_.lasting_ms()};
    }
    return std::nullopt;
}

std::optional<NamedTone> ToneNamer::name(const Tone& tone) {
    const std::uint32_t gap_ms =
        since_last_ms_ - std::min(since_last_ms_, tone.duration_ms + tone.ended_ago_ms);
    if (triple_ != 0 && gap_ms > 150) triple_ = 0;
    if (!near_triple(triple_, tone.freq_hz)) triple_ = 0;
    const bool of_triple =
        near_triple(triple_, tone.freq_hz) && tone.duration_ms >= 200 && tone.duration_ms <= 500;
    triple_ = of_triple ? triple_ + 1 : 0;
    since_last_ms_ = tone.ended_ago_ms;
    if (triple_ == 3) {
        triple_ = 0;
        return NamedTone{ToneKind::information, tone.freq_hz, tone.duration_ms};
    }
    // The second of three is not told: a beep that follows a beep of that pitch is none.
    if (triple_ == 2) return std::nullopt;
    if (std::fabs(tone.freq_hz - 1100) < 40 && tone.duration_ms >= 400 && tone.duration_ms <= 600) {
        return NamedTone{ToneKind::fax_call, tone.freq_hz, tone.duration_ms};
    }
    const bool beep = tone.freq_hz >= limits_.min_freq_hz - 5 && tone.freq_hz <= limits_.max_freq_hz + 5 &&
                      tone.duration_ms >= limits_.min_duration_ms &&
                      tone.duration_ms <= limits_.max_duration_ms;
    if (!beep) return std::nullopt;
    return NamedTone{ToneKind::beep, tone.freq_hz, tone.duration_ms};
}

}  // namespace trunkline::dsp
