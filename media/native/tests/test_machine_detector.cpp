// Speech, tones of machines, and who answered, on speech made for it.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "sounds.hpp"
#include "trunkline/dsp/machine_detector.hpp"

using namespace trunkline;
using dsp::Answer;
using dsp::AnswerReason;
using dsp::GreetingEnd;
using dsp::ToneKind;
using tests::Sounds;

TEST_SUITE_BEGIN("answers");

namespace {

struct Spoken {
    int started_ms = 0;
    int stopped_ms = -1;  ///< When it was told.
    std::uint32_t duration_ms = 0;
};

std::vector<Spoken> speech_in(const Sounds& heard, const dsp::VoiceSettings& settings = {}) {
    dsp::SpeechDetector detector(settings);
    std::vector<Spoken> spoken;
    heard.each_frame([&](dsp::DetectorFrame frame, int at_ms) {
        switch (detector.frame(frame)) {
            case dsp::SpeechDetector::Change::none:
                return;
            case dsp::SpeechDetector::Change::started:
                spoken.push_back({at_ms});
                return;
            case dsp::SpeechDetector::Change::stopped:
                spoken.back().stopped_ms = at_ms;
                spoken.back().duration_ms = detector.duration_ms();
                return;
        }
    });
    return spoken;
}

std::vector<dsp::NamedTone> tones_in(const Sounds& heard) {
    dsp::ToneNamer namer({});
    std::vector<dsp::NamedTone> found;
    heard.each_frame([&](dsp::DetectorFrame frame, int) {
        if (const auto tone = namer.frame(frame)) found.push_back(*tone);
    });
    return found;
}

struct Classified {
    dsp::MachineDetector::Verdict verdict;
    bool told = false;
    std::optional<GreetingEnd> end;
    int end_ms = 0;
};

Classified classify(const Sounds& heard, const dsp::AnswerSettings& settings = {}) {
    dsp::MachineDetector classifier(settings);
    Classified result;
    heard.each_frame([&](dsp::DetectorFrame frame, int at_ms) {
        const auto outcome = classifier.frame(frame);
        if (outcome.verdict) {
            CHECK_FALSE(result.told);
            result.verdict = *outcome.verdict;
            result.told = true;
            CHECK(outcome.verdict->took_ms == static_cast<std::uint32_t>(at_ms));
        }
        if (outcome.greeting_end) {
            CHECK_FALSE(result.end);
            result.end = outcome.greeting_end;
            result.end_ms = at_ms;
        }
    });
    return result;
}

}  // namespace

TEST_CASE("speech begins and ends where it does, down to a poor line") {
    for (const double snr_db : {60.0, 30.0, 20.0, 14.0}) {
        for (const double gain_db : {0.0, -14.0}) {
            CAPTURE(snr_db);
            CAPTURE(gain_db);
            Sounds speech;
            speech.speech("name_en", gain_db);
            const double level_db = 20 * std::log10(tests::rms(speech.samples) / 32768);
            Sounds heard;
            heard.silence(1500).speech("name_en", gain_db).silence(2000);
            heard.noise(level_db - snr_db).coded();
            const auto spoken = speech_in(heard);
            REQUIRE(!spoken.empty());
            CHECK(spoken.size() <= (snr_db >= 20 ? 1 : 2));
            CHECK(spoken.front().started_ms >= 1500);
            CHECK(spoken.front().started_ms <= 1750);
            CHECK(spoken.back().stopped_ms >= 1500 + 1100);
            CHECK(spoken.back().stopped_ms <= 1500 + 1570 + 400);
        }
    }
}

TEST_CASE("a voice is heard within 120 ms") {
    Sounds heard;
    heard.silence(400).speech("hello_en").silence(600).coded();
    const auto spoken = speech_in(heard);
    REQUIRE(spoken.size() == 1);
    CHECK(spoken[0].started_ms >= 400 + 60);
    CHECK(spoken[0].started_ms <= 400 + 120);
    CHECK(spoken[0].duration_ms >= 300);
    CHECK(spoken[0].duration_ms <= 800);
}

TEST_CASE("noise, hum and tones are not speech") {
    for (const double level_db : {-60.0, -45.0, -35.0, -25.0}) {
        CAPTURE(level_db);
        Sounds heard;
        heard.silence(6000).noise(level_db).coded();
        const auto spoken = speech_in(heard);
        // Loud noise may be taken for a voice until it has lasted.
        CHECK(spoken.size() <= (level_db > -44 ? 1 : 0));
        if (!spoken.empty()) CHECK(spoken[0].duration_ms <= 600);
    }
    // Ringing, busy, dialling, a chord that holds, mains hum.
    const std::vector<std::vector<double>> tones{{400, 450}, {440, 480},           {400},     {425},
                                                 {350, 440}, {262, 330, 392, 523}, {50, 150}, {1000}};
    for (const auto& freqs_hz : tones) {
        Sounds heard;
        for (int n = 0; n < 5; ++n) {
            heard.tones(freqs_hz, 700, -15).silence(500);
        }
        CHECK(speech_in(heard.coded()).empty());
    }
    Sounds clicks;
    for (int n = 0; n < 20; ++n) {
        clicks.tones({900}, 20).silence(300);
    }
    CHECK(speech_in(clicks).empty());
}

TEST_CASE("keys are not speech, and a voice over a key is") {
    for (const double low_hz : {697.0, 770.0, 852.0, 941.0}) {
        for (const double high_hz : {1209.0, 1336.0, 1477.0, 1633.0}) {
            for (const int for_ms : {70, 160}) {
                CAPTURE(low_hz);
                CAPTURE(high_hz);
                CAPTURE(for_ms);
                Sounds heard;
                heard.silence(600);
                for (int n = 0; n < 6; ++n) {
                    heard.tones_at({low_hz, high_hz}, {-10, -8}, for_ms).silence(80);
                }
                CHECK(speech_in(heard.coded()).empty());
            }
        }
    }
    Sounds both;
    both.silence(600).speech("hello_en").silence(800);
    const Sounds key = Sounds().silence(600).tones_at({697, 1209}, {-24, -22}, 300);
    for (std::size_t n = 0; n < key.samples.size(); ++n) {
        both.samples[n] = static_cast<std::int16_t>(both.samples[n] + key.samples[n]);
    }
    CHECK(speech_in(both.coded()).size() == 1);
}

TEST_CASE("times are as asked for") {
    Sounds heard;
    heard.silence(300).speech("hello_en").silence(500).speech("hello_hi").silence(1500);
    CHECK(speech_in(heard).size() == 2);
    dsp::VoiceSettings patient;
    patient.hangover_ms = 1200;
    CHECK(speech_in(heard, patient).size() == 1);
    patient.min_speech_ms = 4000;
    CHECK(speech_in(heard, patient).empty());
}

TEST_CASE("beeps are found at any pitch, level and length, and told from fax and failure tones") {
    for (const double freq_hz : {400.0, 650.0, 1000.0, 1400.0, 2000.0}) {
        for (const int tone_ms : {90, 300, 1000}) {
            for (const double level_dbm0 : {-4.0, -18.0, -30.0}) {
                CAPTURE(freq_hz);
                CAPTURE(tone_ms);
                CAPTURE(level_dbm0);
                Sounds heard;
                heard.silence(200).tones({freq_hz}, tone_ms, level_dbm0).silence(200);
                const auto found = tones_in(heard.noise(level_dbm0 - 32).coded(dsp::Law::a));
                REQUIRE(found.size() == 1);
                CHECK(found[0].kind == ToneKind::beep);
                CHECK(std::abs(found[0].freq_hz - freq_hz) < 12);
                CHECK(std::abs(static_cast<int>(found[0].duration_ms) - tone_ms) <= 20);
            }
        }
    }
    Sounds call;
    call.silence(100).tones({1100}, 500).silence(3000).tones({1100}, 500).silence(100);
    REQUIRE(tones_in(call).size() == 2);
    CHECK(tones_in(call)[0].kind == ToneKind::fax_call);
    Sounds answer;
    answer.silence(100).tones({2100}, 3000).silence(100);
    REQUIRE(tones_in(answer).size() == 1);
    CHECK(tones_in(answer)[0].kind == ToneKind::fax_answer);
    Sounds failure;
    failure.silence(100).tones({950}, 330).tones({1400}, 330).tones({1800}, 330).silence(100);
    CHECK(tones_in(failure).back().kind == ToneKind::information);
    Sounds others;
    others.tones({440, 480}, 1000).silence(100).tones({697, 1209}, 300).silence(100).tones({400, 450}, 1000);
    others.tones({1000}, 40).silence(100).tones({1000}, 100, -45).silence(100);
    CHECK(tones_in(others).empty());
}

TEST_CASE("speech has no beeps") {
    for (const char* name : {"talk_en", "talk_ta", "voicemail_en", "voicemail_hi", "name_en", "hello_hi"}) {
        Sounds heard;
        CHECK(tones_in(heard.speech(name).coded()).empty());
    }
}

TEST_CASE("who says a word and waits is a person") {
    for (const char* name : {"hello_en", "hello_hi", "name_en"}) {
        for (const int pause_ms : {100, 1500}) {
            for (const double noise_db : {-70.0, -50.0}) {
                CAPTURE(name);
                CAPTURE(pause_ms);
                Sounds heard;
                heard.silence(pause_ms).speech(name, -3).silence(3000).noise(noise_db).coded();
                const auto result = classify(heard);
                REQUIRE(result.told);
                CHECK(result.verdict.answer == Answer::human);
                CHECK(result.verdict.reason == AnswerReason::short_greeting);
                CHECK(result.verdict.took_ms <= static_cast<std::uint32_t>(pause_ms) + 1570 + 900);
                CHECK_FALSE(result.end);
            }
        }
    }
}

TEST_CASE("who goes on speaking is a machine, which listens after its beep") {
    for (const char* name : {"voicemail_en", "voicemail_hi"}) {
        CAPTURE(name);
        Sounds heard;
        heard.silence(600).speech(name);
        const int spoken_ms = static_cast<int>(heard.samples.size() / 8);
        heard.silence(900).tones({1000}, 400).silence(3000).noise(-60).coded();
        const auto result = classify(heard);
        CHECK(result.verdict.answer == Answer::machine);
        CHECK(result.verdict.reason == AnswerReason::long_greeting);
        CHECK(result.verdict.took_ms <= 3000);
        REQUIRE(result.end);
        CHECK(*result.end == GreetingEnd::beep);
        CHECK(std::abs(result.end_ms - (spoken_ms + 900 + 400)) <= 60);
    }
}

TEST_CASE("a machine without a beep listens when it is silent") {
    Sounds heard;
    heard.silence(300).speech("voicemail_en");
    const int spoken_ms = static_cast<int>(heard.samples.size() / 8);
    heard.silence(4000).coded();
    const auto result = classify(heard);
    REQUIRE(result.end);
    CHECK(*result.end == GreetingEnd::silence);
    CHECK(std::abs(result.end_ms - spoken_ms - 2500) <= 400);
}

TEST_CASE("nobody, a fax, a failed call and a beep alone are told apart") {
    Sounds nobody;
    nobody.silence(6000).noise(-60);
    CHECK(classify(nobody).verdict.answer == Answer::unknown);
    CHECK(classify(nobody).verdict.reason == AnswerReason::initial_silence);
    CHECK(classify(nobody).verdict.took_ms == 3000);
    Sounds fax;
    fax.silence(300).tones({2100}, 3000).silence(1000);
    CHECK(classify(fax).verdict.reason == AnswerReason::fax);
    CHECK_FALSE(classify(fax).end);
    Sounds beep;
    beep.silence(500).tones({1400}, 500).silence(3000);
    CHECK(classify(beep).verdict.answer == Answer::machine);
    CHECK(classify(beep).verdict.reason == AnswerReason::beep);
    CHECK(classify(beep).end == GreetingEnd::beep);
    Sounds ringing;
    for (int n = 0; n < 4; ++n) {
        ringing.tones({400, 450}, 400, -15).silence(200).tones({400, 450}, 400, -15).silence(2000);
    }
    CHECK(classify(ringing.coded()).verdict.answer == Answer::unknown);
}

TEST_CASE("limits decide") {
    Sounds heard;
    heard.silence(300).speech("voicemail_en").silence(3000);
    dsp::AnswerSettings settings;
    settings.greeting_ms = 60'000;
    settings.max_words = 1;
    CHECK(classify(heard, settings).verdict.reason == AnswerReason::many_words);
    settings.max_words = 1000;
    settings.after_greeting_silence_ms = 5000;
    CHECK(classify(heard, settings).verdict.reason == AnswerReason::timeout);
    CHECK(classify(heard, settings).verdict.took_ms == 5000);
    settings = {};
    settings.greeting_end_ms = 60'000;
    settings.greeting_timeout_ms = 4000;
    CHECK(classify(heard, settings).end == GreetingEnd::timeout);
}

TEST_CASE("no audio does harm to detectors") {
    std::mt19937 random(9);
    for (int round = 0; round < 20; ++round) {
        dsp::MachineDetector classifier({});
        dsp::SpeechDetector speech({});
        dsp::ToneNamer tones({});
        dsp::FrameCutter cutter;
        int verdicts = 0;
        for (int n = 0; n < 1500; ++n) {
            std::vector<std::int16_t> samples(random() % 481);
            const auto shape = random() % 4;
            for (std::int16_t& sample : samples) {
                const auto value = static_cast<std::int16_t>(random());
                sample = shape == 0   ? value
                         : shape == 1 ? static_cast<std::int16_t>(value < 0 ? -32768 : 32767)
                         : shape == 2 ? std::int16_t{0}
                                      : std::int16_t{-32768};
            }
            cutter.put(samples, [&](dsp::DetectorFrame frame) {
                verdicts += classifier.frame(frame).verdict ? 1 : 0;
                (void)speech.frame(frame);
                if (const auto tone = tones.frame(frame)) CHECK(tone->duration_ms < 1'000'000);
            });
        }
        CHECK(verdicts == 1);
    }
}

TEST_SUITE_END();
