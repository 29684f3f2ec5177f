// Keys in audio: Q.23 and Q.24 as a receiver must meet them, and speech that is none.

#include <doctest/doctest.h>

#include <random>

#include "sounds.hpp"
#include "trunkline/dsp/dtmf_detector.hpp"

using namespace trunkline;
using tests::Sounds;

TEST_SUITE_BEGIN("keys in audio");

#if TRUNKLINE_HAVE_SPANDSP

namespace {

const std::string keys = "123A456B789C*0#D";
constexpr double rows_hz[] = {697, 770, 852, 941};
constexpr double columns_hz[] = {1209, 1336, 1477, 1633};

std::vector<double> pair_of(char key, double off = 1) {
    const std::size_t at = keys.find(key);
    return {rows_hz[at / 4] * off, columns_hz[at % 4] * off};
}

struct Found {
    std::string keys;
    std::vector<std::uint32_t> durations_ms;
    std::vector<int> downs_ms;
};

Found find(const Sounds& heard) {
    dsp::DtmfDetector detector;
    Found found;
    heard.each_frame([&](dsp::DetectorFrame frame, int at_ms) {
        for (const auto& change : detector.frame(frame)) {
            if (change.down) {
                found.downs_ms.push_back(at_ms);
            } else {
                found.keys += change.key;
                found.durations_ms.push_back(change.duration_ms);
            }
        }
    });
    return found;
}

/// All keys, one after the other.
Sounds dialled(double low_dbm0, double high_dbm0, int tone_ms, int pause_ms, double off = 1) {
    Sounds heard;
    heard.silence(100);
    for (const char key : keys) {
        heard.tones_at(pair_of(key, off), {low_dbm0, high_dbm0}, tone_ms).silence(pause_ms);
    }
    heard.silence(100);
    return heard;
}

}  // namespace

TEST_CASE("all keys are found at all levels, twists, lengths and frequencies they may have") {
    for (const double level_dbm0 : {-3.0, -10.0, -20.0, -28.0}) {
        for (const double twist_db : {-3.0, 0.0, 3.0, 5.0}) {
            for (const int tone_ms : {50, 70, 200}) {
                for (const double off : {0.99, 1.0, 1.01}) {
                    CAPTURE(level_dbm0);
                    CAPTURE(twist_db);
                    CAPTURE(tone_ms);
                    CAPTURE(off);
                    auto heard = dialled(level_dbm0, level_dbm0 - twist_db, tone_ms, 50, off).coded();
                    CHECK(find(heard).keys == keys);
                }
            }
        }
    }
}

TEST_CASE("keys are found in noise, and told with their length soon after they went down") {
    auto heard = dialled(-12, -12, 100, 100);
    heard.noise(-30).coded(dsp::Law::a);
    const Found found = find(heard);
    REQUIRE(found.keys == keys);
    for (std::size_t n = 0; n < keys.size(); ++n) {
        CHECK(found.downs_ms[n] <= 100 + static_cast<int>(n) * 200 + 50);
        CHECK(found.durations_ms[n] >= 70);
        CHECK(found.durations_ms[n] <= 120);
    }
}

TEST_CASE("a short interruption does not make two keys of one") {
    Sounds heard;
    heard.silence(50).tones(pair_of('5'), 60).silence(8).tones(pair_of('5'), 60).silence(100);
    CHECK(find(heard).keys == "5");
}

TEST_CASE("what is no key is not taken for one") {
    CHECK(find(dialled(-10, -10, 18, 60)).keys.empty());
    CHECK(find(dialled(-10, -10, 80, 60, 1.04)).keys.empty());
    CHECK(find(dialled(-10, -26, 80, 60)).keys.empty());
    CHECK(find(dialled(-26, -10, 80, 60)).keys.empty());
    CHECK(find(dialled(-50, -50, 80, 60)).keys.empty());
    Sounds tones;
    for (const double freq_hz : {400.0, 697.0, 941.0, 1336.0, 1633.0, 2100.0}) {
        tones.tones({freq_hz}, 500).silence(200);
    }
    tones.tones({440, 480}, 1000).silence(200).tones({350, 440}, 1000).silence(200).tones({400, 450}, 1000);
    CHECK(find(tones).keys.empty());
}

TEST_CASE("speech is not taken for keys") {
    for (const double gain_db : {-12.0, 0.0, 6.0}) {
        Sounds heard;
        for (const char* name :
             {"talk_en", "talk_ta", "voicemail_en", "voicemail_hi", "name_en", "hello_hi"}) {
            heard.speech(name, gain_db).silence(200);
        }
        CHECK(find(heard).keys.empty());
    }
}

TEST_CASE("noise that is shaped like speech is not taken for keys") {
    // Two bands of noise where the keys' rows and columns lie, switched at the pace of syllables.
    std::mt19937 random(11);
    std::normal_distribution<double> normal(0, 1);
    Sounds heard;
    heard.silence(120'000);
    double states[4][2] = {};
    for (std::size_t n = 0; n < heard.samples.size(); ++n) {
        double sum = 0;
        for (int band = 0; band < 4; ++band) {
            const double freq_hz =
                (band < 2 ? 650.0 : 1150.0) + 250.0 * ((n / 1600 + static_cast<std::size_t>(band)) % 3);
            const double radius = 0.985;
            double* state = states[band];
            const double out = normal(random) +
                               2 * radius * std::cos(2 * std::numbers::pi * freq_hz / 8000) * state[0] -
                               radius * radius * state[1];
            state[1] = state[0];
            state[0] = out;
            sum += out;
        }
        const bool syllable = n / 800 % 3 != 0;
        heard.samples[n] =
            static_cast<std::int16_t>(std::clamp(syllable ? 150 * sum : 0.0, -32768.0, 32767.0));
    }
    REQUIRE(tests::rms(heard.samples) > 1000);
    CHECK(find(heard).keys.size() <= 1);
}

TEST_CASE("no audio does harm") {
    std::mt19937 random(4);
    dsp::DtmfDetector detector;
    for (int n = 0; n < 20'000; ++n) {
        std::array<std::int16_t, dsp::detector_frame_samples> frame{};
        for (std::int16_t& sample : frame) {
            const auto value = static_cast<std::int16_t>(random());
            sample = n % 3 == 0   ? value
                     : n % 3 == 1 ? static_cast<std::int16_t>(value < 0 ? -32768 : 32767)
                                  : 0;
        }
        CHECK(detector.frame(frame).size() <= 8);
    }
}

#else

TEST_CASE("without the library nothing is found") {
    CHECK_FALSE(dsp::DtmfDetector::available());
}

#endif

TEST_SUITE_END();
