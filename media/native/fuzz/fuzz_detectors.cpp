// Detectors: audio of any kind, loud, broken or silent, gives results that make sense.

#include <algorithm>
#include <array>
#include <cstring>

#include "input.hpp"
#include "trunkline/dsp/dtmf_detector.hpp"
#include "trunkline/dsp/machine_detector.hpp"
#include "trunkline/dsp/tone_tracker.hpp"
#include "trunkline/dsp/voice_activity.hpp"

using namespace trunkline;

namespace {

constexpr std::size_t frame_samples = dsp::detector_frame_samples;
/// Four seconds: enough for whatever there is to be found.
constexpr int max_frames = 400;

/// What hears one stream.
class Ears {
  public:
    void hear(dsp::DetectorFrame frame) {
        heard_ms_ += dsp::detector_frame_ms;
        hear_keys(frame);
        hear_speech(frame);
        if (const auto tone = tones_.frame(frame)) {
            fuzz::require(tone->freq_hz > 0 && tone->freq_hz < 4000 && tone->duration_ms <= heard_ms_);
        }
        const auto outcome = answer_.frame(frame);
        // Who answered is told once.
        fuzz::require(!(outcome.verdict && verdict_));
        if (!outcome.verdict) return;
        verdict_ = true;
        fuzz::require(outcome.verdict->took_ms <= heard_ms_);
    }

  private:
    void hear_keys(dsp::DetectorFrame frame) {
        for (const auto& change : keys_.frame(frame)) {
            // One key at a time, which goes up before the next goes down.
            fuzz::require(std::strchr("0123456789*#ABCD", change.key) != nullptr && change.key != '\0');
            fuzz::require(change.down ? key_ == '\0' : key_ == change.key);
            fuzz::require(change.duration_ms <= heard_ms_);
            key_ = change.down ? change.key : '\0';
        }
    }

    void hear_speech(dsp::DetectorFrame frame) {
        const auto change = speech_.frame(frame);
        if (change == dsp::SpeechDetector::Change::none) return;
        const bool began = change == dsp::SpeechDetector::Change::started;
        fuzz::require(began != speaking_ && began == speech_.speaking());
        fuzz::require(began || speech_.duration_ms() <= heard_ms_);
        speaking_ = began;
    }

    dsp::DtmfDetector keys_;
    dsp::SpeechDetector speech_{dsp::VoiceSettings{}};
    dsp::ToneNamer tones_{dsp::ToneNamer::Limits{}};
    dsp::MachineDetector answer_{dsp::AnswerSettings{}};
    std::uint32_t heard_ms_ = 0;
    char key_ = '\0';
    bool speaking_ = false;
    bool verdict_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Ears ears;
    int left = max_frames;
    while (!input.empty() && left > 0) {
        // A pattern over and over: a tone, a click, a constant, or noise when it is long.
        const int frames = 1 + input.byte() % 32;
        left -= frames;
        const auto pattern = input.take(2 + 2 * (input.byte() % 40));
        if (pattern.size() < 2) return 0;
        std::size_t at = 0;
        for (int n = 0; n < frames; ++n) {
            std::array<std::int16_t, frame_samples> frame;
            for (std::int16_t& sample : frame) {
                const unsigned value = unsigned{pattern[at]} << 8 | pattern[at + 1];
                sample = static_cast<std::int16_t>(static_cast<std::uint16_t>(value));
                at = at + 3 < pattern.size() ? at + 2 : 0;
            }
            ears.hear(frame);
        }
    }
    return 0;
}
