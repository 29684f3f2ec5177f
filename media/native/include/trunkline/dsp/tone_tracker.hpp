#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "trunkline/dsp/frames.hpp"

namespace trunkline::dsp {

/// A single tone that was heard from its beginning to its end.
struct Tone {
    float freq_hz = 0;
    std::uint32_t duration_ms = 0;
    std::uint32_t ended_ago_ms = 0;  ///< How long before it was told.
};

/// Finds tones of one frequency, whichever it is: a sine is what two samples foretell the next of.
class ToneTracker {
  public:
    static constexpr float min_freq_hz = 300;
    static constexpr float max_freq_hz = 2300;
    static constexpr std::uint32_t min_duration_ms = 60;

    /// Process the next 10 ms; returns a tone that has just ended.
    std::optional<Tone> frame(DetectorFrame frame);

    /// Duration of the present tone; 0 without one.
    std::uint32_t lasting_ms() const { return lasting_ms_ >= min_duration_ms && pure() ? lasting_ms_ : 0; }

    /// Frequency of the tone that lasts.
    float freq_hz() const { return freq_hz_; }

  private:
    struct Look {
        float freq_hz = 0;  ///< 0 when the frame is no tone.
        float level_db = 0;
    };

    Look look(DetectorFrame frame);
    bool pure() const;

    std::array<std::int16_t, 2> before_{};  ///< The last samples of the frame before.
    float freq_hz_ = 0;
    float level_db_ = 0;
    std::uint32_t lasting_ms_ = 0;
    std::uint32_t missing_ms_ = 0;
    std::uint32_t gaps_ms_ = 0;
};

/// Tones that machines make.
enum class ToneKind : std::uint8_t {
    beep = 1,        ///< Of a voice mail: speak now.
    fax_call = 2,    ///< CNG: a fax is calling (T.30 4.3.3.3).
    fax_answer = 3,  ///< CED or ANS: a fax or modem answers (T.30 4.3.3.2, V.25).
    information =
        4,  ///< The three tones before an announcement that the call failed (E.180 special information tone).
};

/// Kind of a tone.
struct NamedTone {
    ToneKind kind{};
    float freq_hz = 0;
    std::uint32_t duration_ms = 0;
};

/// Names the tones of a tracker.
class ToneNamer {
  public:
    /// Limits of what is a beep.
    struct Limits {
        float min_freq_hz = 400;
        float max_freq_hz = 2000;
        std::uint32_t min_duration_ms = 80;
        std::uint32_t max_duration_ms = 3000;
    };

    explicit ToneNamer(const Limits& limits) : limits_(limits) {}

    /// Process the next 10 ms; returns a tone that ended, or has lasted long enough to be named.
    std::optional<NamedTone> frame(DetectorFrame frame);

    /// True if a tone is heard that may become a beep.
    bool hears_tone() const { return tracker_.lasting_ms() != 0; }

  private:
    std::optional<NamedTone> name(const Tone& tone);

    Limits limits_;
    ToneTracker tracker_;
    bool named_ = false;               ///< The tone that lasts was told.
    std::uint32_t triple_ = 0;         ///< Tones of the special information tone so far.
    std::uint32_t since_last_ms_ = 0;  ///< Since the last of them ended.
};

}  // namespace trunkline::dsp
