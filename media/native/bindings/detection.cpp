// Detectors: their settings, checked as they are handed over, and the orders that attach them.

#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "bindings.hpp"
#include "trunkline/engine/detectors.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

using dsp::AnswerSettings;
using dsp::VoiceSettings;
using engine::DetectorSlots;
using engine::StreamHandle;

constexpr std::uint32_t max_ms = 600'000;

DetectorSlots::Kind kind_of(const std::string& name) {
    if (name == "dtmf") return DetectorSlots::Kind::keys;
    if (name == "speech") return DetectorSlots::Kind::speech;
    if (name == "machine") return DetectorSlots::Kind::answer;
    if (name == "tones") return DetectorSlots::Kind::tones;
    if (name == "level") return DetectorSlots::Kind::level;
    throw std::invalid_argument("unknown detector: " + name);
}

std::uint32_t checked_ms(const char* name, std::uint32_t value_ms) {
    if (value_ms > max_ms) throw std::invalid_argument(std::string(name) + " must be at most 600000");
    return value_ms;
}

VoiceSettings make_voice(std::uint32_t min_speech_ms, std::uint32_t hangover_ms, float margin_db,
                         float min_level_db) {
    if (!(margin_db >= 3 && margin_db <= 40)) throw std::invalid_argument("margin_db must be 3 to 40");
    if (!(min_level_db >= -60 && min_level_db <= -10)) {
        throw std::invalid_argument("min_level_db must be -60 to -10");
    }
    VoiceSettings voice;
    voice.min_speech_ms = checked_ms("min_speech_ms", min_speech_ms);
    voice.hangover_ms = checked_ms("hangover_ms", hangover_ms);
    voice.margin_db = margin_db;
    voice.min_level_db = min_level_db;
    return voice;
}

AnswerSettings make_answer(const VoiceSettings& voice, const nb::dict& limits) {
    AnswerSettings answer;
    answer.voice = voice;
    const std::unordered_map<std::string, std::uint32_t*> fields{
        {"initial_silence_ms", &answer.initial_silence_ms},
        {"greeting_ms", &answer.greeting_ms},
        {"after_greeting_silence_ms", &answer.after_greeting_silence_ms},
        {"total_ms", &answer.total_ms},
        {"min_word_ms", &answer.min_word_ms},
        {"between_words_ms", &answer.between_words_ms},
        {"max_words", &answer.max_words},
        {"greeting_end_ms", &answer.greeting_end_ms},
        {"greeting_timeout_ms", &answer.greeting_timeout_ms},
        {"min_beep_ms", &answer.beep.min_duration_ms},
    };
    for (const auto& [key, value] : limits) {
        const auto name = nb::cast<std::string>(key);
        const auto field = fields.find(name);
        if (field == fields.end()) throw std::invalid_argument("unknown limit: " + name);
        *field->second = checked_ms(name.c_str(), nb::cast<std::uint32_t>(value));
    }
    return answer;
}

void detect_dtmf(StreamHandle& stream) {
    if (!dsp::DtmfDetector::available()) {
        throw std::invalid_argument("the engine was built without libspandsp, which finds digits in audio");
    }
    stream.detectors().start(stream, DetectorSlots::Kind::keys, std::make_unique<engine::KeyDetector>());
}

}  // namespace

void bind_detection(nb::module_& module, nb::class_<StreamHandle>& stream) {
    nb::class_<VoiceSettings>(module, "VoiceSettings").def(nb::new_(&make_voice));
    nb::class_<AnswerSettings>(module, "AnswerSettings").def(nb::new_(&make_answer));
    stream.def("detect_dtmf", &detect_dtmf)
        .def("detect_speech",
             [](StreamHandle& handle, const VoiceSettings& voice) {
                 handle.detectors().start(handle, DetectorSlots::Kind::speech,
                                          std::make_unique<engine::SpeechListener>(voice, true));
             })
        .def("detect_machine",
             [](StreamHandle& handle, const AnswerSettings& answer) {
                 handle.detectors().start(handle, DetectorSlots::Kind::answer,
                                          std::make_unique<engine::AnswerListener>(answer));
             })
        .def("detect_tones",
             [](StreamHandle& handle) {
                 handle.detectors().start(handle, DetectorSlots::Kind::tones,
                                          std::make_unique<engine::ToneListener>(dsp::ToneNamer::Limits{}));
             })
        .def("detect_level",
             [](StreamHandle& handle) {
                 handle.detectors().start(handle, DetectorSlots::Kind::level,
                                          std::make_unique<engine::LevelMeter>());
             })
        .def("stop_detecting", [](StreamHandle& handle, const std::string& kind) {
            handle.detectors().stop(handle, kind_of(kind));
        });
}

}  // namespace trunkline::bindings
