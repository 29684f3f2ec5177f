// Streams that hear both directions of another one.

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

#include "far_end.hpp"
#include "support.hpp"
#include "trunkline/engine/monitor.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;
using tests::Bench;
using tests::FarEnd;
using tests::Metronome;

namespace {

constexpr Format pcmu{Codec::pcmu, 8000};
constexpr Format pcma{Codec::pcma, 8000};
constexpr Format l16_wide{Codec::l16, 16000};
constexpr double left_hz = 1000;
constexpr double right_hz = 600;

/// Two linked far ends that both speak, and a third that is sent what a monitor has.
struct Room {
    Room(Bench& bench, const Format& from, const Format& to, const Format& third)
        : left(from), right(to), hearing(third), a(bench.open()), b(bench.open(a.get())), c(bench.open()) {
        a->connect(left.settings());
        b->connect(right.settings());
        c->connect(hearing.settings());
        a->link(*b);
    }

    /// Both say so many packets of 20 ms.
    void speak(int packets) {
        const auto one = tests::tone(left_hz, rate_hz(left), left.frame_samples(), 8000);
        const auto other = tests::tone(right_hz, rate_hz(right), right.frame_samples(), 8000);
        Metronome metronome(20);
        for (int n = 0; n < packets; ++n) {
            left.speak(a->udp_port(), one);
            right.speak(b->udp_port(), other);
            metronome.wait();
            left.listen();
            right.listen();
            hearing.listen();
        }
    }

    /// Wait until each party has heard so many packets of the other.
    bool passed(Bench& bench, std::size_t packets) {
        return bench.until([&] {
            left.listen();
            right.listen();
            return left.headers.size() >= packets && right.headers.size() >= packets;
        });
    }

    /// Forget what has been heard.
    void begin() {
        for (FarEnd* far : {&left, &right, &hearing}) {
            far->heard.clear();
            far->headers.clear();
        }
    }

    static double rate_hz(const FarEnd& far) { return static_cast<double>(far.frame_samples()) * 50; }

    /// Loudness of a frequency in the last 400 ms that the third has heard.
    double hears(double freq_hz) const {
        const double hz = rate_hz(hearing);
        const auto samples = static_cast<std::size_t>(hz * 0.4);
        if (hearing.heard.size() < samples) return 0;
        return tests::amplitude_at(std::span(hearing.heard).last(samples), freq_hz, hz);
    }

    FarEnd left, right, hearing;
    std::shared_ptr<engine::StreamHandle> a, b, c;
};

}  // namespace

TEST_CASE("monitor: both parties are heard, however their audio passes and on whatever thread") {
    struct Case {
        Format from, to, third;
        std::size_t threads;
    };
    for (const Case& one : {Case{pcmu, pcmu, pcmu, 1}, Case{pcmu, pcmu, l16_wide, 2},
                            Case{l16_wide, pcma, pcmu, 1}, Case{pcmu, l16_wide, l16_wide, 1}}) {
        CAPTURE(static_cast<int>(one.from.codec));
        CAPTURE(static_cast<int>(one.to.codec));
        CAPTURE(static_cast<int>(one.third.codec));
        Bench bench(one.threads);
        Room room(bench, one.from, one.to, one.third);
        auto monitor = room.a->monitor(room.c);
        room.speak(40);
        CHECK(room.hears(left_hz) > 5000);
        CHECK(room.hears(right_hz) > 5000);
        CHECK(room.hears(1700) < 500);
    }
}

TEST_CASE("monitor: relayed packets stay as they are, and the third is not heard") {
    Bench bench;
    Room room(bench, pcmu, pcmu, pcmu);
    room.speak(10);
    REQUIRE(room.passed(bench, 10));
    room.begin();
    auto monitor = room.a->monitor(room.c);
    const auto sound = tests::tone(2500, 8000, 160, 8000);
    for (int n = 0; n < 25; ++n) {
        room.hearing.speak(room.c->udp_port(), sound);
        room.speak(1);
    }
    REQUIRE(room.passed(bench, 25));
    for (const FarEnd* far : {&room.left, &room.right}) {
        REQUIRE(far->headers.size() == 25);
        for (std::size_t n = 1; n < far->headers.size(); ++n) {
            CHECK(far->headers[n].sequence == static_cast<std::uint16_t>(far->headers[n - 1].sequence + 1));
            CHECK(far->headers[n].timestamp == far->headers[n - 1].timestamp + 160);
        }
        CHECK(tests::amplitude_at(far->heard, 2500, 8000) < 200);
    }
    monitor->close();
    monitor->close();
    room.speak(5);
    REQUIRE(room.passed(bench, 30));
    room.hearing.listen();
    room.begin();
    room.speak(10);
    CHECK(room.passed(bench, 10));
    CHECK(room.hearing.headers.empty());
}

TEST_CASE("monitor: what is sent to a stream alone is heard, and a muted far end is not") {
    Bench bench;
    Room room(bench, pcmu, pcmu, pcmu);
    room.a->unlink();
    room.a->mute(true, false);
    auto playback = std::make_unique<graph::Playback>();
    playback->clips.push_back(tests::sound(tests::tone(1700, 8000, 16000)));
    playback->plays = 1;
    auto monitor = room.a->monitor(room.c);
    room.a->play(std::move(playback));
    room.speak(40);
    CHECK(room.hears(1700) > 8000);
    CHECK(room.hears(left_hz) < 200);
}

TEST_CASE(
    "monitor: the linked party is not heard while it is muted, nor while the first one must not hear it") {
    for (const Format& to : {pcmu, l16_wide}) {
        CAPTURE(static_cast<int>(to.codec));
        Bench bench;
        Room room(bench, pcmu, to, pcmu);
        auto monitor = room.a->monitor(room.c);
        room.b->mute(true, false);
        room.speak(35);
        CHECK(room.hears(left_hz) > 5000);
        CHECK(room.hears(right_hz) < 200);
        room.b->mute(false, false);
        room.speak(35);
        CHECK(room.hears(right_hz) > 5000);
        room.a->mute(false, true);
        room.speak(35);
        CHECK(room.hears(left_hz) > 5000);
        CHECK(room.hears(right_hz) < 200);
    }
}

TEST_CASE("monitor: three hear a stream, and its end leaves them in silence") {
    Bench bench(2);
    Room room(bench, pcmu, pcmu, pcmu);
    FarEnd others[2] = {FarEnd(pcmu), FarEnd(pcmu)};
    std::vector<std::shared_ptr<engine::StreamHandle>> streams;
    std::vector<std::shared_ptr<engine::MonitorHandle>> monitors{room.a->monitor(room.c)};
    for (FarEnd& other : others) {
        streams.push_back(bench.open());
        streams.back()->connect(other.settings());
        monitors.push_back(room.a->monitor(streams.back()));
    }
    room.speak(30);
    for (FarEnd& other : others) {
        other.listen();
        CHECK(tests::amplitude_at(std::span(other.heard).last(2400), right_hz, 8000) > 5000);
    }
    room.a->close();
    room.speak(10);
    room.begin();
    room.speak(25);
    CHECK(room.hearing.headers.size() > 15);
    CHECK(tests::rms(room.hearing.heard) < 50);
    CHECK(room.a->monitor(room.c) == nullptr);
    CHECK_THROWS_AS((void)room.b->monitor(room.b), std::invalid_argument);
}

TEST_CASE("monitor: streams and monitors end in any order") {
    std::mt19937 random(7);
    Bench bench(2, 400);
    for (int round = 0; round < 60; ++round) {
        Room room(bench, pcmu, pcma, pcmu);
        auto monitor = room.a->monitor(room.c);
        const auto sound = tests::tone(left_hz, 8000, 160);
        room.left.speak(room.a->udp_port(), sound);
        room.right.speak(room.b->udp_port(), sound);
        std::vector<int> order{0, 1, 2, 3};
        std::shuffle(order.begin(), order.end(), random);
        for (const int what : order) {
            if (what == 0) room.a->close();
            if (what == 1) room.b->close();
            if (what == 2) room.c->close();
            if (what == 3) monitor.reset();
        }
    }
    CHECK(bench.until([&] { return bench.media->figures().streams == 0; }));
}
