#include "trunkline/dsp/machine_detector.hpp"

namespace trunkline::dsp {

MachineDetector::Outcome MachineDetector::frame(DetectorFrame frame) {
    Outcome outcome;
    if (done_) return outcome;
    elapsed_ms_ += detector_frame_ms;
    const auto tone = tones_.frame(frame);
    follow_words(activity_.voice(frame));
    if (!machine_ms_) {
        outcome.verdict = judge(tone);
        if (!outcome.verdict) return outcome;
        const bool records = outcome.verdict->answer == Answer::machine &&
                             outcome.verdict->reason != AnswerReason::fax &&
                             outcome.verdict->reason != AnswerReason::announcement;
        if (records) {
            machine_ms_ = elapsed_ms_;
        } else {
            done_ = true;
            return outcome;
        }
    }
    outcome.greeting_end = look_for_end(tone);
    done_ = outcome.greeting_end.has_value();
    return outcome;
}

void MachineDetector::follow_words(bool voice) {
    silent_ms_ = tones_.hears_tone() ? 0 : silent_ms_ + detector_frame_ms;
    if (!voice) {
        pause_ms_ += detector_frame_ms;
        if (pause_ms_ >= settings_.between_words_ms) word_ms_ = 0;
        return;
    }
    pause_ms_ = 0;
    const bool was_word = word_ms_ >= settings_.min_word_ms;
    word_ms_ += detector_frame_ms;
    if (word_ms_ < settings_.min_word_ms) return;
    silent_ms_ = 0;
    if (was_word) return;
    if (words_++ == 0) began_ms_ = elapsed_ms_ - word_ms_;
}

std::optional<MachineDetector::Verdict> MachineDetector::judge(const std::optional<NamedTone>& tone) const {
    if (!tone) return judge_cadence();
    switch (tone->kind) {
        case ToneKind::beep:
            return Verdict{Answer::machine, AnswerReason::beep, elapsed_ms_};
        case ToneKind::fax_call:
        case ToneKind::fax_answer:
            return Verdict{Answer::machine, AnswerReason::fax, elapsed_ms_};
        case ToneKind::information:
            return Verdict{Answer::machine, AnswerReason::announcement, elapsed_ms_};
    }
    return std::nullopt;
}

std::optional<MachineDetector::Verdict> MachineDetector::judge_cadence() const {
    const auto is = [this](Answer answer, AnswerReason reason) {
        return Verdict{answer, reason, elapsed_ms_};
    };
    if (words_ != 0) {
        const std::uint32_t greeting_ms = elapsed_ms_ - began_ms_ - silent_ms_;
        if (greeting_ms >= settings_.greeting_ms) return is(Answer::machine, AnswerReason::long_greeting);
        if (words_ > settings_.max_words) return is(Answer::machine, AnswerReason::many_words);
        if (silent_ms_ >= settings_.after_greeting_silence_ms) {
            return is(Answer::human, AnswerReason::short_greeting);
        }
    } else if (elapsed_ms_ >= settings_.initial_silence_ms) {
        return is(Answer::unknown, AnswerReason::initial_silence);
    }
    if (elapsed_ms_ >= settings_.total_ms) return is(Answer::unknown, AnswerReason::timeout);
    return std::nullopt;
}

std::optional<GreetingEnd> MachineDetector::look_for_end(const std::optional<NamedTone>& tone) {
    if (tone && tone->kind == ToneKind::beep) return GreetingEnd::beep;
    if (silent_ms_ >= settings_.greeting_end_ms) return GreetingEnd::silence;
    if (elapsed_ms_ - *machine_ms_ >= settings_.greeting_timeout_ms) return GreetingEnd::timeout;
    return std::nullopt;
}

}  // namespace trunkline::dsp
