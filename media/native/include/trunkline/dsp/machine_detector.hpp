#pragma once

#include <cstdint>
#include <optional>

#include "trunkline/dsp/frames.hpp"
#include "trunkline/dsp/tone_tracker.hpp"
#include "trunkline/dsp/voice_activity.hpp"

namespace trunkline::dsp {

/// Verdict: who answered.
enum class Answer : std::uint8_t { unknown = 0, human = 1, machine = 2 };

/// Evidence of the verdict.
enum class AnswerReason : std::uint8_t {
    initial_silence = 1,  ///< Nobody spoke.
    short_greeting = 2,   ///< A few words, then waiting for ours.
    long_greeting = 3,    ///< Speech that goes on.
    many_words = 4,
    beep = 5,
    fax = 6,
    announcement = 7,  ///< The network's tones before "the number you have dialled".
    timeout = 8,       ///< Nothing of these in the time there is.
};

/// End of a greeting.
enum class GreetingEnd : std::uint8_t { beep = 1, silence = 2, timeout = 3 };

/// Limits of the classification, all in milliseconds but for the words.
struct AnswerSettings {
    std::uint32_t initial_silence_ms = 3000;        ///< So long nobody speaks: unknown.
    std::uint32_t greeting_ms = 1800;               ///< Speech as long as this: machine.
    std::uint32_t after_greeting_silence_ms = 800;  ///< So long silent after less: human.
    std::uint32_t total_ms = 5000;                  ///< Unknown, if nothing was told by then.
    std::uint32_t min_word_ms = 100;                ///< Shorter sounds are no words.
    std::uint32_t between_words_ms = 60;            ///< What parts two words.
    std::uint32_t max_words = 6;                    ///< More of them: machine.
    std::uint32_t greeting_end_ms = 2500;        ///< A machine's greeting is over when it is silent so long.
    std::uint32_t greeting_timeout_ms = 60'000;  ///< Or when it has spoken so long.
    ToneNamer::Limits beep;
    VoiceSettings voice;
};

/// Tells a person from a machine by how the call is answered, and when the machine begins to listen.
class MachineDetector {
  public:
    struct Verdict {
        Answer answer{};
        AnswerReason reason{};
        std::uint32_t took_ms = 0;
    };

    /// Result of a frame.
    struct Outcome {
        std::optional<Verdict> verdict;
        std::optional<GreetingEnd> greeting_end;
    };

    explicit MachineDetector(const AnswerSettings& settings)
        : settings_(settings), activity_(settings.voice), tones_(settings.beep) {}

    /// Process the next 10 ms since the answer.
    Outcome frame(DetectorFrame frame);

    /// True if there is nothing left to find out.
    bool done() const { return done_; }

    /// Time since the answer.
    std::uint32_t elapsed_ms() const { return elapsed_ms_; }

  private:
    void follow_words(bool voice);
    std::optional<Verdict> judge(const std::optional<NamedTone>& tone) const;
    std::optional<Verdict> judge_cadence() const;
    std::optional<GreetingEnd> look_for_end(const std::optional<NamedTone>& tone);

    AnswerSettings settings_;
    VoiceActivity activity_;
    ToneNamer tones_;
    std::uint32_t elapsed_ms_ = 0;
    std::uint32_t word_ms_ = 0;   ///< Voice of the word that is being spoken.
    std::uint32_t pause_ms_ = 0;  ///< Since its last voice.
    std::uint32_t words_ = 0;
    std::uint32_t began_ms_ = 0;               ///< When the first word began.
    std::uint32_t silent_ms_ = 0;              ///< Since the last voice of a word, or tone.
    std::optional<std::uint32_t> machine_ms_;  ///< When a machine was recognised.
    bool done_ = false;
};

}  // namespace trunkline::dsp
