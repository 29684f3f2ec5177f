#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trunkline/dsp/frames.hpp"

namespace trunkline::dsp {

/// Thresholds and durations of voice.
struct VoiceSettings {
    float margin_db = 9;               ///< Above the noise.
    float min_level_db = -46;          ///< Below full scale; what is softer is never voice.
    std::uint32_t min_speech_ms = 60;  ///< Shorter sounds are no speech.
    std::uint32_t hangover_ms = 300;   ///< Pauses that do not end it.
};

/// Tells frames with a voice from those without.
///
/// A voice is louder than the noise, of which the least level of the last seconds is the measure, changes its
/// level from syllable to syllable, and is no sum of a few steady tones, as ringing, busy and hold tones are,
/// nor a key.
class VoiceActivity {
  public:
    explicit VoiceActivity(const VoiceSettings& settings) : settings_(settings) { blocks_.fill(quietest_db); }

    /// True if the frame holds voice.
    bool voice(DetectorFrame frame);

    /// Level of the last 20 ms and of the noise, in dB below full scale.
    float level() const { return level_db_; }
    float noise() const { return noise_db_; }

  private:
    static constexpr std::size_t window_samples = 2 * detector_frame_samples;
    static constexpr float quietest_db = -62;
    /// Levels of the last 400 ms; what stays within a few dB so long is no speech.
    static constexpr std::size_t steady_frames = 40;
    /// Blocks of 200 ms whose least levels are kept.
    static constexpr std::size_t block_frames = 20;
    static constexpr std::size_t block_count = 10;

    void take(DetectorFrame frame);
    void follow_noise();
    float predict() const;
    bool is_key() const;
    std::array<float, window_samples> through_window() const;

    VoiceSettings settings_;
    std::array<float, window_samples> window_{};
    float last_in_ = 0;
    float last_out_ = 0;
    float level_db_ = quietest_db;
    float noise_db_ = quietest_db;
    std::array<float, steady_frames> levels_{};
    std::array<float, block_count> blocks_{};  ///< Least levels, the oldest overwritten first.
    float block_least_db_ = 0;
    std::uint64_t frames_ = 0;
};

/// Speech that begins and ends.
class SpeechDetector {
  public:
    enum class Change : std::uint8_t { none, started, stopped };

    explicit SpeechDetector(const VoiceSettings& settings) : settings_(settings), activity_(settings) {}

    /// Process the next 10 ms; returns the change.
    Change frame(DetectorFrame frame);

    bool speaking() const { return speaking_; }

    /// After `stopped`: how long the speech was, without the pause that ended it.
    std::uint32_t duration_ms() const { return duration_ms_; }

  private:
    VoiceSettings settings_;
    VoiceActivity activity_;
    bool speaking_ = false;
    std::uint32_t voiced_ms_ = 0;  ///< Of the beginning; gaps count against it.
    std::uint32_t silent_ms_ = 0;  ///< Since the last voice.
    std::uint32_t duration_ms_ = 0;
};

}  // namespace trunkline::dsp
