#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "support.hpp"
#include "trunkline/graph/playback_queue.hpp"

using namespace trunkline;
using graph::PlaybackEnd;
using tests::level;
using tests::playback;
using tests::sound;

namespace {

/// What a queue told, one line each: who, why, how far.
struct Log final : graph::PlaybackListener {
    void playback_finished(std::uint64_t id, PlaybackEnd why, char key, std::uint64_t played_ms) override {
        static const std::vector<std::string> words{"ended", "stopped", "digit", "speech"};
        std::string line = std::to_string(id) + " " + words[static_cast<std::size_t>(why)];
        if (key != '\0') line += std::string(" ") + key;
        lines.push_back(line + " " + std::to_string(played_ms));
    }
    void playback_position(std::uint64_t id, std::uint64_t played_ms) override {
        positions.push_back(std::to_string(id) + " " + std::to_string(played_ms));
    }
    void spent(util::Node* node) override { delete node; }

    std::vector<std::string> lines;
    std::vector<std::string> positions;
};

/// Pulls frames of 20 ms, as a stream does.
struct Reader {
    explicit Reader(std::uint32_t rate = 8000) : rate_hz(rate) {}

    std::vector<std::int16_t> frame() {
        std::vector<std::int16_t> out(rate_hz / 50, 99);
        queue.pull(out, rate_hz);
        return out;
    }

    /// All that is heard until the queue is empty.
    std::vector<std::int16_t> rest() {
        std::vector<std::int16_t> heard;
        while (!queue.empty() && heard.size() < 1'000'000) {
            const auto out = frame();
            heard.insert(heard.end(), out.begin(), out.end());
        }
        return heard;
    }

    Log log;
    graph::PlaybackQueue queue{log};
    std::uint32_t rate_hz;
};

/// Largest step between neighbours: a click is a step that the sound itself does not have.
int largest_step(const std::vector<std::int16_t>& samples) {
    int largest = 0;
    for (std::size_t n = 1; n < samples.size(); ++n) {
        largest = std::max(largest, std::abs(samples[n] - samples[n - 1]));
    }
    return largest;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("playbacks are heard one after the other") {
    Reader reader;
    reader.queue.append(playback(1, level(1, 200)).release());
    reader.queue.append(playback(2, level(2, 100)).release());
    CHECK(reader.frame()[159] == 1);
    const auto out = reader.frame();
    CHECK(out[39] == 1);
    CHECK(out[40] == 2);
    CHECK(out[139] == 2);
    CHECK(out[140] == 0);
    CHECK(reader.queue.empty());
    CHECK(reader.log.lines == Lines{"1 ended 25", "2 ended 12"});
}

TEST_CASE("the clips of a playback follow one another with their pauses, as often as asked") {
    Reader reader;
    auto made = playback(7, level(5, 80), 2);
    made->clips.front().pause_ms = 5;
    made->clips.push_back(sound(level(6, 40)));
    reader.queue.append(made.release());
    const auto heard = reader.rest();
    REQUIRE(heard.size() == 320);
    for (const std::size_t round : {0U, 160U}) {
        CHECK(heard[round + 79] == 5);
        CHECK(heard[round + 80] == 0);
        CHECK(heard[round + 119] == 0);
        CHECK(heard[round + 120] == 6);
        CHECK(heard[round + 159] == 6);
    }
    CHECK(reader.log.lines == Lines{"7 ended 40"});
}

TEST_CASE("a playback without end goes on until another waits") {
    Reader reader;
    reader.queue.append(playback(1, level(1, 100), 0).release());
    for (int n = 0; n < 10; ++n) {
        const auto out = reader.frame();
        CHECK(out[0] == 1);
        CHECK(out[159] == 1);
    }
    reader.queue.append(playback(2, level(2, 1000)).release());
    reader.frame();
    CHECK(reader.frame()[159] == 2);
    CHECK(reader.log.lines == Lines{"1 ended 212"});
    reader.queue.stop();
    CHECK(reader.log.lines.back().starts_with("2 stopped"));
}

TEST_CASE("what has no samples is over at once, also without end") {
    Reader reader;
    reader.queue.append(playback(1, {}, 0).release());
    reader.queue.append(playback(2, {}).release());
    auto none = playback(3, {});
    none->clips.clear();
    reader.queue.append(none.release());
    CHECK(reader.frame()[0] == 0);
    CHECK(reader.queue.empty());
    CHECK(reader.log.lines == Lines{"1 ended 0", "2 ended 0", "3 ended 0"});
}

TEST_CASE("a loop of a whole number of periods has no seam, at the stream's rate or the other") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        Reader reader(rate_hz);
        // 400 Hz: a period is 20 samples at 8 kHz. A round of 100 samples never meets a frame's edge twice.
        reader.queue.append(playback(1, tests::tone(400, 8000, 100), 0).release());
        std::vector<std::int16_t> heard;
        for (int n = 0; n < 50; ++n) {
            const auto out = reader.frame();
            heard.insert(heard.end(), out.begin(), out.end());
        }
        const std::vector<std::int16_t> settled(heard.begin() + 200, heard.end());
        const double step = 12000 * 2 * std::numbers::pi * 400 / rate_hz;
        CHECK(largest_step(settled) <= step + 40);
        CHECK(tests::amplitude_at(settled, 400, rate_hz) == doctest::Approx(12000).epsilon(0.01));
    }
}

TEST_CASE("clips are brought to the stream's rate, and nothing of them is lost") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        Reader reader(rate_hz);
        auto made = playback(1, tests::tone(1000, 8000, 4000), 1, 8000);
        made->clips.push_back(sound(tests::tone(1000, 16000, 8000), 16000));
        reader.queue.append(made.release());
        const auto heard = reader.rest();
        const std::size_t half_a_second = rate_hz / 2;
        REQUIRE(heard.size() >= 2 * half_a_second);
        for (const std::size_t start : {std::size_t{0}, half_a_second}) {
            const auto part = std::span(heard).subspan(start + rate_hz / 20, half_a_second - rate_hz / 10);
            CHECK(tests::amplitude_at(part, 1000, rate_hz) == doctest::Approx(12000).epsilon(0.01));
        }
        // What the converter delays is heard too: one second of tone and no less.
        const auto last = std::find_if(heard.rbegin(), heard.rend(), [](auto sample) { return sample != 0; });
        CHECK(heard.rend() - last >= static_cast<std::ptrdiff_t>(2 * half_a_second));
        CHECK(reader.log.lines == Lines{"1 ended 1000"});
    }
}

TEST_CASE("a change of the stream's rate in the middle goes on where it was") {
    Reader reader;
    reader.queue.append(playback(1, tests::tone(1000, 8000, 8000)).release());
    for (int n = 0; n < 25; ++n) {
        reader.frame();
    }
    reader.rate_hz = 16000;
    const auto heard = reader.rest();
    CHECK(heard.size() == doctest::Approx(8000).epsilon(0.05));
    CHECK(tests::amplitude_at(std::span(heard).subspan(800, 6400), 1000, 16000) ==
          doctest::Approx(12000).epsilon(0.01));
    CHECK(reader.log.lines == Lines{"1 ended 1000"});
}

TEST_CASE("samples of odd number and frames of every length come out whole") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        for (std::size_t size = 1; size < 60; size += 7) {
            Log log;
            graph::PlaybackQueue queue(log);
            auto made = playback(1, level(9, size), 3, 16000);
            made->clips.push_back(sound(level(8, size), 8000));
            queue.append(made.release());
            for (int n = 0; n < 400 && !queue.empty(); ++n) {
                std::vector<std::int16_t> out(rate_hz / 1000 * (10 + 5 * (static_cast<std::size_t>(n) % 11)));
                queue.pull(out, rate_hz);
            }
            CHECK(log.lines.size() == 1);
        }
    }
}

TEST_CASE("stopping fades within 5 ms, and tells how far each had come") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        Reader reader(rate_hz);
        reader.queue.append(playback(1, level(10000, rate_hz), 1, rate_hz).release());
        reader.queue.append(playback(2, level(3, rate_hz), 1, rate_hz).release());
        CHECK(reader.frame().back() == 10000);
        reader.queue.stop();
        CHECK(reader.log.lines == Lines{"1 stopped 25", "2 stopped 0"});
        CHECK(reader.queue.playing());
        const auto out = reader.frame();
        const std::size_t fade = rate_hz / 200;
        CHECK(out[0] > 9700);
        for (std::size_t n = 1; n < fade; ++n) {
            CHECK(out[n] < out[n - 1]);
        }
        CHECK(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(fade), out.end(),
                          [](auto sample) { return sample == 0; }));
        CHECK(reader.queue.empty());
        CHECK(!reader.queue.playing());
    }
}

TEST_CASE("what follows a stop at once begins behind the fade") {
    Reader reader;
    reader.queue.append(playback(1, level(10000, 8000)).release());
    reader.frame();
    reader.queue.stop();
    reader.queue.append(playback(2, level(7, 8000)).release());
    const auto out = reader.frame();
    CHECK(out[39] < 300);
    CHECK(out[40] == 7);
    CHECK(out[159] == 7);
}

TEST_CASE("stopping what was not heard yet is silent") {
    Reader reader;
    reader.queue.append(playback(1, level(10000, 8000)).release());
    reader.queue.stop();
    CHECK(reader.queue.empty());
    CHECK(reader.log.lines == Lines{"1 stopped 0"});
}

TEST_CASE("a pause halts without a click and goes on where it was") {
    Reader reader;
    reader.queue.append(playback(1, tests::tone(400, 8000, 4000)).release());
    std::vector<std::int16_t> heard;
    const auto hear = [&](int frames) {
        for (int n = 0; n < frames; ++n) {
            const auto out = reader.frame();
            heard.insert(heard.end(), out.begin(), out.end());
        }
    };
    hear(3);
    reader.queue.pause();
    reader.queue.pause();
    hear(1);
    CHECK(!reader.queue.playing());
    CHECK(!reader.queue.empty());
    hear(10);
    const auto quiet = std::span(heard).subspan(4 * std::size_t{160});
    CHECK(tests::rms(quiet) == 0);
    reader.queue.resume();
    reader.queue.resume();
    hear(30);
    CHECK(reader.log.lines == Lines{"1 ended 500"});
    CHECK(largest_step(heard) <= 12000 * 2 * std::numbers::pi * 400 / 8000 + 400);
}

TEST_CASE("a pause at once undone, and a stop during a pause, leave nothing behind") {
    Reader reader;
    reader.queue.append(playback(1, level(1000, 1600)).release());
    reader.frame();
    reader.queue.pause();
    reader.queue.resume();
    const auto out = reader.frame();
    CHECK(out[0] > 900);
    CHECK(out[39] < 50);
    CHECK(out[159] == 1000);
    reader.queue.pause();
    reader.frame();
    reader.queue.append(playback(2, level(5, 160)).release());
    CHECK(reader.frame()[0] == 0);
    reader.queue.stop();
    CHECK(reader.queue.empty());
    // A stop ends the pause as well: what is played next is heard.
    reader.queue.append(playback(3, level(5, 160)).release());
    CHECK(reader.frame()[0] == 5);
}

TEST_CASE("a digit ends what asked for it and what follows of the same kind") {
    Reader reader;
    for (std::uint64_t id = 1; id <= 4; ++id) {
        auto made = playback(id, level(static_cast<std::int16_t>(1000 * id), 1600));
        made->ends_by_digit = id != 3;
        made->ends_by_speech = id == 1;
        reader.queue.append(made.release());
    }
    reader.frame();
    CHECK(reader.queue.wants_speech());
    reader.queue.barge_in(PlaybackEnd::digit, '5');
    CHECK(reader.log.lines == Lines{"1 digit 5 25", "2 digit 5 0"});
    const auto out = reader.frame();
    CHECK(out[39] < 50);
    CHECK(out[40] == 3000);
    CHECK(!reader.queue.wants_speech());
    reader.queue.barge_in(PlaybackEnd::digit, '6');
    reader.queue.barge_in(PlaybackEnd::speech);
    CHECK(reader.log.lines.size() == 2);
    reader.rest();
    CHECK(reader.log.lines.back() == "4 ended 200");
}

TEST_CASE("speech ends what asked for it, a digit does not") {
    Reader reader;
    auto made = playback(1, level(1000, 1600));
    made->ends_by_speech = true;
    reader.queue.append(made.release());
    reader.frame();
    reader.queue.barge_in(PlaybackEnd::digit, '1');
    CHECK(reader.log.lines.empty());
    reader.queue.barge_in(PlaybackEnd::speech);
    CHECK(reader.log.lines == Lines{"1 speech 25"});
    reader.queue.barge_in(PlaybackEnd::speech);
    CHECK(reader.log.lines.size() == 1);
}

TEST_CASE("the position is told as often as asked") {
    Reader reader;
    auto made = playback(4, level(1, 4000));
    made->position_every_ms = 100;
    reader.queue.append(made.release());
    reader.rest();
    CHECK(reader.log.positions == Lines{"4 100", "4 200", "4 300", "4 400", "4 500"});
    CHECK(reader.log.lines == Lines{"4 ended 500"});
}

TEST_CASE("gain is applied and does not wrap") {
    Reader reader;
    auto made = playback(1, level(1000, 160));
    made->gain = graph::Playback::unity_gain / 2;
    reader.queue.append(made.release());
    made = playback(2, level(-30000, 160));
    made->gain = 8 * graph::Playback::unity_gain;
    reader.queue.append(made.release());
    CHECK(reader.frame()[80] == 500);
    CHECK(reader.frame()[80] == -32768);
}

TEST_CASE("the queue is bounded, and says what it had no room for") {
    Reader reader;
    for (std::uint64_t id = 0; id < graph::PlaybackQueue::max_playbacks + 2; ++id) {
        reader.queue.append(playback(id, level(1, 80)).release());
    }
    CHECK(reader.log.lines == Lines{"256 stopped 0", "257 stopped 0"});
    reader.rest();
    CHECK(reader.log.lines.size() == graph::PlaybackQueue::max_playbacks + 2);
}
