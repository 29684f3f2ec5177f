// Recordings on virtual time: what passed when is found there in the file, on both sides.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <random>

#include "recorded.hpp"
#include "support.hpp"
#include "trunkline/engine/recorder.hpp"

using namespace trunkline;
using engine::RecordingOptions;
using tests::ms;
using tests::ScratchFile;

TEST_SUITE_BEGIN("recorder");

namespace {

using Samples = std::vector<std::int16_t>;

/// Audio with a click at the start of each second; `at_ms` counts on the clock of its source.
Samples clicks(double at_ms, std::uint32_t rate_hz, std::size_t samples) {
    Samples out(samples, 0);
    for (std::size_t n = 0; n < samples; ++n) {
        const double second_ms = std::fmod(at_ms + static_cast<double>(n) * 1000 / rate_hz, 1000);
        if (second_ms >= 0 && second_ms < 1) out[n] = 20'000;
    }
    return out;
}

/// Where clicks begin, in milliseconds; not the one at the very start, which lies before the first packet.
std::vector<double> found_clicks(const Samples& samples, std::uint32_t rate_hz) {
    std::vector<double> found;
    for (std::size_t n = 0; n < samples.size(); ++n) {
        // The file begins a frame before the recording.
        const double here_ms = static_cast<double>(n) * 1000 / rate_hz - 20;
        if (samples[n] > 8000 && here_ms > 300 && (found.empty() || here_ms - found.back() > 300))
            found.push_back(here_ms);
    }
    return found;
}

/// A recorder with its file, on a clock that tests move, a millisecond at a time.
class Bench {
  public:
    explicit Bench(const RecordingOptions& options = {}, const std::string& name = "recorder.wav")
        : scratch(name),
          recording(std::make_unique<engine::Recording>(7, io::create_file(scratch.path()), options)),
          recorder(std::make_unique<engine::Recorder>(recording.get())) {
        (void)recorder->tick(now_ns());
    }

    /// Go on for so long; `each_ms` is called with every millisecond since the start.
    void run(int for_ms, const std::function<void(int)>& each_ms = [](int) {}) {
        for (const int end_ms = at_ms + for_ms; at_ms < end_ms; ++at_ms) {
            each_ms(at_ms);
            if (at_ms % 20 == 3) alive = recorder->tick(now_ns()) && alive;
            if (at_ms % 100 == 0) (void)recording->write(now_ns(), event_queue);
        }
    }

    /// End it; the file as it plays.
    tests::Played finish() {
        recorder->finish(now_ns());
        while (!recording->write(now_ns(), event_queue)) {
        }
        for (engine::Event event; event_queue.events().pop(event);) {
            if (event.kind == engine::EventKind::recording_finished) finished = event;
        }
        return tests::play_wav(scratch.bytes());
    }

    std::int64_t now_ns() const { return 1'000'000'000'000 + at_ms * ms; }

    ScratchFile scratch;
    engine::Notifier notifier;
    engine::EventQueue event_queue{notifier};
    std::unique_ptr<engine::Recording> recording;
    std::unique_ptr<engine::Recorder> recorder;
    int at_ms = 0;
    bool alive = true;
    engine::Event finished;
};

/// A far end whose packets of 20 ms take 0 to `jitter_ms` longer than the fastest, in order.
class JitteryFarEnd {
  public:
    JitteryFarEnd(int phase_ms, int jitter_ms, double ppm)
        : phase_ms_(phase_ms), jitter_ms_(jitter_ms), ppm_(ppm) {}

    void step(int at_ms, Bench& bench, bool sends = true) {
        if ((at_ms - phase_ms_) % 20 == 0 && at_ms >= phase_ms_ && sends) {
            const int late_ms =
                jitter_ms_ == 0 ? 0 : static_cast<int>(random_() % static_cast<unsigned>(jitter_ms_));
            waiting_.push_back({std::max(at_ms + late_ms, last_ms_), at_ms});
            last_ms_ = waiting_.back().first;
        }
        while (!waiting_.empty() && waiting_.front().first <= at_ms) {
            const double start_ms = (waiting_.front().second - 20) * (1 + ppm_ * 1e-6);
            bench.recorder->put_received(clicks(start_ms, 8000, 160), bench.now_ns());
            waiting_.erase(waiting_.begin());
        }
    }

  private:
    int phase_ms_;
    int jitter_ms_;
    double ppm_;
    int last_ms_ = 0;
    std::mt19937 random_{5};
    std::vector<std::pair<int, int>> waiting_;
};

}  // namespace

TEST_CASE("both sides are aligned, whatever the network does to one of them") {
    for (const int jitter_ms : {0, 15, 60, 120}) {
        CAPTURE(jitter_ms);
        Bench bench;
        JitteryFarEnd far_end(11, jitter_ms, 0);
        bench.run(30'000, [&](int at_ms) {
            far_end.step(at_ms, bench);
            if (at_ms % 20 == 2 && at_ms > 20) {
                bench.recorder->put_sent(clicks(at_ms - 20, 8000, 160), bench.now_ns());
            }
        });
        const tests::Played played = bench.finish();
        const auto received = found_clicks(played.channels.at(0), 8000);
        const auto sent = found_clicks(played.channels.at(1), 8000);
        REQUIRE(received.size() >= 28);
        REQUIRE(received.size() == sent.size());
        // At first nobody knows how late the first packet was; then 15 ms are left alone.
        for (std::size_t n = 4; n < sent.size(); ++n) {
            CHECK(std::abs(sent[n] - 1000.0 * static_cast<double>(n + 1)) <= 3);
            CHECK(std::abs(received[n] - sent[n]) <= (jitter_ms < 100 ? 18 : 35));
        }
    }
}

TEST_CASE("a side that is silent, starts late or pauses keeps its place") {
    Bench bench;
    JitteryFarEnd far_end(0, 0, 0);
    bench.run(20'000, [&](int at_ms) {
        far_end.step(at_ms, bench, at_ms < 6000 || at_ms > 9510);
        // From 3.3 s, and in chunks with pauses of all lengths between.
        const bool sends =
            at_ms > 3300 && (at_ms < 8120 || at_ms > 8180) && (at_ms < 12'000 || at_ms > 14'250);
        if (at_ms % 20 == 2 && sends) {
            bench.recorder->put_sent(clicks(at_ms - 20, 8000, 160), bench.now_ns());
        }
    });
    const tests::Played played = bench.finish();
    const auto received = found_clicks(played.channels.at(0), 8000);
    const auto sent = found_clicks(played.channels.at(1), 8000);
    CHECK(received.size() == 19 - 4);
    for (const double at_ms : received) {
        CHECK(std::abs(at_ms - std::round(at_ms / 1000) * 1000) <= 3);
    }
    CHECK(sent.size() == 19 - 3 - 3);
    for (const double at_ms : sent) {
        CHECK(std::abs(at_ms - std::round(at_ms / 1000) * 1000) <= 3);
    }
}

TEST_CASE("who speaks without a pause is not cut where his beginning was late, nor often for his clock") {
    // Packets of a busy machine's first second are late by 25 ms; no two samples in a row are alike.
    for (const double ppm : {0.0, 200.0}) {
        CAPTURE(ppm);
        Bench bench;
        double due_ms = 0;
        std::int16_t next = 1000;
        bench.run(20'000, [&](int at_ms) {
            for (; due_ms + (at_ms < 1000 ? 25 : 0) <= at_ms; due_ms += 20 * (1 - ppm * 1e-6)) {
                Samples samples(160);
                for (std::int16_t& sample : samples) {
                    sample = next = static_cast<std::int16_t>(next == 31'000 ? 1000 : next + 1);
                }
                bench.recorder->put_received(samples, bench.now_ns());
            }
        });
        const Samples heard = bench.finish().channels.at(0);
        const auto first = std::find_if(heard.begin(), heard.end(), [](std::int16_t s) { return s != 0; });
        const auto last = std::find(first, heard.end(), 0);
        int breaks = 0;
        for (auto here = first + 1; here < last; ++here) {
            breaks += *here != (*(here - 1) == 31'000 ? 1000 : *(here - 1) + 1) ? 1 : 0;
        }
        CHECK(breaks == 0);
        CHECK(last - first >= 19'900 * 8);
    }
}

TEST_CASE("a clock that differs is followed") {
    for (const double ppm : {-200.0, 200.0}) {
        CAPTURE(ppm);
        Bench bench;
        // As the far end counts, its packets hold 20 ms; as we count, a little more or less.
        double due_ms = 0;
        std::int64_t sent_packets = 0;
        int clicks_heard = 0;
        bench.run(600'000, [&](int at_ms) {
            for (; due_ms <= at_ms; due_ms += 20 * (1 + ppm * 1e-6)) {
                // A click as we count.
                Samples samples(160, 0);
                for (std::size_t n = 0; n < 160; ++n) {
                    const double here_ms = due_ms - 20 + static_cast<double>(n) / 8;
                    if (here_ms > 0 && std::fmod(here_ms, 1000) < 1) samples[n] = 20'000;
                }
                bench.recorder->put_received(samples, bench.now_ns());
                ++sent_packets;
            }
        });
        const auto found = found_clicks(bench.finish().channels.at(0), 8000);
        for (const double at_ms : found) {
            clicks_heard += std::abs(at_ms - std::round(at_ms / 1000) * 1000) <= 18 ? 1 : 0;
        }
        CHECK(clicks_heard >= 590);
        CHECK(found.size() <= 600);
    }
}

TEST_CASE("paused time is left out, or is silence") {
    for (const bool as_silence : {false, true}) {
        RecordingOptions options;
        options.layout = {io::Encoding::wav, 1, 8000};
        options.pause_as_silence = as_silence;
        Bench bench(options);
        const auto talk = [&](int at_ms) {
            if (at_ms % 20 == 0) bench.recorder->put_sent(tests::level(500, 160), bench.now_ns());
        };
        bench.run(2000, talk);
        bench.recorder->pause(true, bench.now_ns());
        bench.run(3000, talk);
        bench.recorder->pause(false, bench.now_ns());
        bench.run(1000, talk);
        const Samples heard = bench.finish().channels.at(0);
        CHECK(bench.finished.b == (as_silence ? 6020 : 3020));
        CHECK(static_cast<double>(heard.size()) ==
              doctest::Approx(as_silence ? 48'160 : 24'160).epsilon(0.01));
        const auto loud = std::count(heard.begin(), heard.end(), 500);
        CHECK(static_cast<double>(loud) == doctest::Approx(24'000).epsilon(0.02));
        if (as_silence) CHECK(tests::rms(std::span(heard).subspan(17'000, 22'000)) < 1);
    }
}

TEST_CASE("a recording of 16 kHz holds what 8 kHz cannot") {
    RecordingOptions options;
    options.layout.rate_hz = 16000;
    Bench bench(options);
    CHECK(bench.recorder->rate_hz() == 16000);
    const Samples high = tests::tone(6000, 16000, 32'000);
    bench.run(2000, [&](int at_ms) {
        if (at_ms % 20 != 0) return;
        bench.recorder->put_sent(std::span(high).subspan(static_cast<std::size_t>(at_ms) * 16, 320),
                                 bench.now_ns());
    });
    const tests::Played played = bench.finish();
    CHECK(played.rate_hz == 16000);
    const auto part = std::span(played.channels.at(1)).subspan(8000, 16'000);
    CHECK(tests::amplitude_at(part, 6000, 16000) == doctest::Approx(12000).epsilon(0.01));
}

TEST_CASE("limits end a recording and are told") {
    RecordingOptions options;
    SUBCASE("of time") {
        options.max_duration_ms = 1500;
        Bench bench(options);
        bench.run(4000);
        CHECK_FALSE(bench.alive);
        bench.finish();
        CHECK(bench.finished.a == engine::recording_hit_duration);
        CHECK(bench.finished.b == 1500);
    }
    SUBCASE("of size") {
        options.max_bytes = 50'000;
        for (const io::Encoding encoding :
             {io::Encoding::wav, io::Encoding::wav_mulaw, io::Encoding::ogg_opus}) {
            if (!io::supported(encoding)) continue;
            options.layout.encoding = encoding;
            Bench bench(options);
            bench.run(60'000, [&](int at_ms) {
                if (at_ms % 20 != 0) return;
                bench.recorder->put_sent(tests::tone(300, 8000, 160), bench.now_ns());
            });
            CHECK_FALSE(bench.alive);
            bench.recorder->finish(bench.now_ns());
            while (!bench.recording->write(bench.now_ns(), bench.event_queue)) {
            }
            engine::Event event;
            REQUIRE(bench.event_queue.events().pop(event));
            CHECK(event.a == engine::recording_hit_size);
            CHECK(event.c == bench.scratch.bytes().size());
            CHECK(event.c <= 50'000);
            CHECK(event.c > 40'000);
        }
    }
}

TEST_CASE("a disk that stalls leaves silence of the same length, and is told") {
    Bench bench;
    const auto talk = [&](int at_ms) {
        if (at_ms % 20 == 0) bench.recorder->put_sent(clicks(at_ms - 20, 8000, 160), bench.now_ns());
    };
    bench.run(2000, talk);
    for (const int end_ms = bench.at_ms + 10'000; bench.at_ms < end_ms; ++bench.at_ms) {
        talk(bench.at_ms);
        if (bench.at_ms % 20 == 0) CHECK(bench.recorder->tick(bench.now_ns()));
    }
    bench.run(3000, talk);
    std::uint64_t gap_ms = 0;
    for (engine::Event event; bench.event_queue.events().pop(event);) {
        if (event.kind == engine::EventKind::recording_gap) gap_ms = event.b;
    }
    CHECK(gap_ms > 4000);
    CHECK(gap_ms < 8000);
    const auto found = found_clicks(bench.finish().channels.at(1), 8000);
    CHECK(bench.finished.b == doctest::Approx(15'000).epsilon(0.01));
    CHECK(std::abs(found.back() - 14'000) <= 3);
}

TEST_CASE("a stall of the thread keeps the time") {
    Bench bench;
    bench.run(1000);
    bench.at_ms += 30'000;
    bench.run(2000, [&](int at_ms) {
        if (at_ms % 20 == 0) bench.recorder->put_sent(clicks(at_ms - 20, 8000, 160), bench.now_ns());
    });
    const auto found = found_clicks(bench.finish().channels.at(1), 8000);
    CHECK(bench.finished.b == doctest::Approx(33'000).epsilon(0.002));
    REQUIRE(!found.empty());
    CHECK(std::abs(found.back() - 32'000) <= 3);
}

TEST_CASE("no order of chunks does harm, and memory stays bounded") {
    std::mt19937 random(3);
    for (int round = 0; round < 20; ++round) {
        RecordingOptions options;
        options.layout = {io::Encoding::wav, static_cast<std::uint16_t>(1 + random() % 2),
                          random() % 2 == 0 ? 8000U : 16000U};
        Bench bench(options);
        for (int n = 0; n < 500; ++n) {
            bench.at_ms += static_cast<int>(random() % 8 == 0 ? random() % 3000 : random() % 25);
            Samples samples(random() % 1200);
            for (std::int16_t& sample : samples)
                sample = static_cast<std::int16_t>(random());
            if (random() % 2 == 0) bench.recorder->put_received(samples, bench.now_ns());
            if (random() % 2 == 0) bench.recorder->put_sent(samples, bench.now_ns());
            if (random() % 3 == 0) (void)bench.recorder->tick(bench.now_ns());
            if (random() % 20 == 0) bench.recorder->pause(random() % 2 == 0, bench.now_ns());
            if (random() % 5 == 0) (void)bench.recording->write(bench.now_ns(), bench.event_queue);
        }
        const tests::Played played = bench.finish();
        CHECK(played.data.size() / played.unit_bytes * 1000 / played.rate_hz <=
              static_cast<std::size_t>(bench.at_ms) + 20);
    }
}

TEST_SUITE_END();
