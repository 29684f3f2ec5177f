#include "trunkline/dsp/voice_activity.hpp"

#include <numbers>
#include <utility>

namespace trunkline::dsp {

namespace {

/// Prediction from so many samples leaves nothing of up to half as many tones.
constexpr std::size_t prediction_order = 10;
/// What prediction must leave of a frame's power for it to be a voice. Vowels leave a hundredth and more,
/// tones behind G.711 a thousandth.
constexpr float tonal_residue = 0.0022F;
/// Until the noise is known, what prediction leaves more of may be noise.
constexpr float voiced_residue = 0.2F;
/// The share of a frame's power in one low and one high tone of a key from which it is one. Keys behind G.711
/// have 0.99, vowels at most two thirds.
constexpr float key_share = 0.9F;
constexpr std::array<double, 4> low_tones_hz{697, 770, 852, 941};
constexpr std::array<double, 4> high_tones_hz{1209, 1336, 1477, 1633};
/// A level that stays within so many dB is noise, or a tone.
constexpr float steady_range_db = 5;
/// Of the high-pass, about 60 Hz: hum and offsets are not to be heard.
constexpr float high_pass = 0.953F;
/// The mean of noise lies above its least level.
constexpr float noise_bias_db = 2;

std::array<float, 2 * detector_frame_samples> make_window() {
    std::array<float, 2 * detector_frame_samples> window{};
    for (std::size_t n = 0; n < window.size(); ++n) {
        const double phase =
            2 * std::numbers::pi * (static_cast<double>(n) + 0.5) / static_cast<double>(window.size());
        window[n] = static_cast<float>(0.5 - 0.5 * std::cos(phase));
    }
    return window;
}

const std::array<float, 2 * detector_frame_samples> hann = make_window();

/// A tone as it looks through the window, once squared: what comes in is windowed already.
class Probe {
  public:
    explicit Probe(double freq_hz) {
        for (std::size_t n = 0; n < cosine_.size(); ++n) {
            const double phase = 2 * std::numbers::pi * freq_hz * static_cast<double>(n) / detector_rate_hz;
            cosine_[n] = hann[n] * static_cast<float>(std::cos(phase));
            sine_[n] = hann[n] * static_cast<float>(std::sin(phase));
            weight_ += hann[n] * hann[n];
        }
    }

    /// Power of the tone, on the scale of the sum of the squared samples.
    float power(const std::array<float, 2 * detector_frame_samples>& windowed) const {
        float real = 0;
        float imaginary = 0;
        for (std::size_t n = 0; n < windowed.size(); ++n) {
            real += windowed[n] * cosine_[n];
            imaginary += windowed[n] * sine_[n];
        }
        return 2 * (real * real + imaginary * imaginary) / weight_;
    }

  private:
    std::array<float, 2 * detector_frame_samples> cosine_{};
    std::array<float, 2 * detector_frame_samples> sine_{};
    float weight_ = 0;
};

using Probes = std::array<Probe, 4>;

Probes make_probes(const std::array<double, 4>& freqs_hz) {
    return {Probe(freqs_hz[0]), Probe(freqs_hz[1]), Probe(freqs_hz[2]), Probe(freqs_hz[3])};
}

const Probes low_tones = make_probes(low_tones_hz);
const Probes high_tones = make_probes(high_tones_hz);

float strongest(const Probes& probes, const std::array<float, 2 * detector_frame_samples>& windowed) {
    float most = 0;
    for (const Probe& probe : probes) {
        most = std::max(most, probe.power(windowed));
    }
    return most;
}

}  // namespace

bool VoiceActivity::voice(DetectorFrame frame) {
    take(frame);
    follow_noise();
    if (level_db_ <= std::max(noise_db_ + settings_.margin_db, settings_.min_level_db)) return false;
    const float residue = predict();
    const bool voiced = residue > tonal_residue && (frames_ > steady_frames || residue < voiced_residue);
    return voiced && !is_key();
}

/// True if the window holds the two tones of a key and little else. Two tones that begin and end leave more
/// to prediction than steady ones.
bool VoiceActivity::is_key() const {
    const auto windowed = through_window();
    float power = 0;
    for (const float sample : windowed) {
        power += sample * sample;
    }
    return strongest(low_tones, windowed) + strongest(high_tones, windowed) > key_share * power;
}

std::array<float, VoiceActivity::window_samples> VoiceActivity::through_window() const {
    std::array<float, window_samples> windowed;
    for (std::size_t n = 0; n < window_samples; ++n) {
        windowed[n] = window_[n] * hann[n];
    }
    return windowed;
}

void VoiceActivity::take(DetectorFrame frame) {
    std::copy(window_.begin() + detector_frame_samples, window_.end(), window_.begin());
    float* out = window_.data() + detector_frame_samples;
    for (const std::int16_t sample : frame) {
        const float in = sample;
        last_out_ = in - last_in_ + high_pass * last_out_;
        last_in_ = in;
        *out++ = last_out_;
    }
    float sum = 0;
    for (const float sample : window_) {
        sum += sample * sample;
    }
    level_db_ = level_db(sum / static_cast<float>(window_samples));
}

void VoiceActivity::follow_noise() {
    levels_[frames_ % steady_frames] = level_db_;
    const std::size_t in_block = frames_ % block_frames;
    block_least_db_ = in_block == 0 ? level_db_ : std::min(block_least_db_, level_db_);
    const std::size_t block = frames_ / block_frames % block_count;
    ++frames_;
    // At first nothing is known, and a callee may speak at once.
    if (in_block + 1 == block_frames) blocks_[block] = block_least_db_;
    const float least_db = std::min(*std::min_element(blocks_.begin(), blocks_.end()), block_least_db_);
    noise_db_ = std::max(least_db + noise_bias_db, quietest_db);
    if (frames_ < steady_frames) return;
    const auto [low, high] = std::minmax_element(levels_.begin(), levels_.end());
    if (*high - *low > steady_range_db) return;
    noise_db_ = std::max(noise_db_, *high);
    // It was noise all the while, whatever was thought.
    blocks_.fill(std::max(*low, quietest_db));
}

/// The share of the window's power that prediction leaves (Levinson and Durbin).
float VoiceActivity::predict() const {
    const auto windowed = through_window();
    std::array<double, prediction_order + 1> correlation{};
    for (std::size_t lag = 0; lag <= prediction_order; ++lag) {
        float sum = 0;
        for (std::size_t n = lag; n < window_samples; ++n) {
            sum += windowed[n] * windowed[n - lag];
        }
        correlation[lag] = sum;
    }
    std::array<double, prediction_order + 1> taps{};
    double error = correlation[0] * (1 + 1e-7);
    for (std::size_t order = 1; order <= prediction_order && error > 0; ++order) {
        double reflection = correlation[order];
        for (std::size_t n = 1; n < order; ++n) {
            reflection -= taps[n] * correlation[order - n];
        }
        reflection /= error;
        auto updated = taps;
        updated[order] = reflection;
        for (std::size_t n = 1; n < order; ++n) {
            updated[n] = taps[n] - reflection * taps[order - n];
        }
        taps = updated;
        error *= 1 - reflection * reflection;
    }
    return correlation[0] > 0 ? static_cast<float>(error / correlation[0]) : 1;
}

SpeechDetector::Change SpeechDetector::frame(DetectorFrame frame) {
    const bool voice = activity_.voice(frame);
    if (!speaking_) {
        if (voice) {
            voiced_ms_ += detector_frame_ms;
        } else {
            voiced_ms_ -= std::min(voiced_ms_, detector_frame_ms);
        }
        if (voiced_ms_ < std::max(settings_.min_speech_ms, detector_frame_ms)) return Change::none;
        speaking_ = true;
        silent_ms_ = 0;
        duration_ms_ = std::exchange(voiced_ms_, 0);
        return Change::started;
    }
    duration_ms_ += detector_frame_ms;
    silent_ms_ = voice ? 0 : silent_ms_ + detector_frame_ms;
    if (silent_ms_ == 0 || silent_ms_ < settings_.hangover_ms) return Change::none;
    speaking_ = false;
    duration_ms_ -= silent_ms_;
    return Change::stopped;
}

}  // namespace trunkline::dsp
