// Digits to far ends of every kind.

#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "far_end.hpp"
#include "support.hpp"
#include "trunkline/dsp/dtmf_generator.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;
using engine::EventKind;
using tests::Bench;
using tests::FarEnd;
using tests::Metronome;

namespace {

using namespace std::chrono_literals;

constexpr Format pcmu{Codec::pcmu, 8000};
constexpr Format l16{Codec::l16, 8000};
constexpr Format l16_wide{Codec::l16, 16000};

std::unique_ptr<engine::DtmfText> text(const std::string& digits, std::uint32_t duration_ms = 100) {
    auto made = std::make_unique<engine::DtmfText>();
    made->token = 5;
    made->digits = digits;
    made->duration_ms = duration_ms;
    made->gap_ms = 80;
    return made;
}

/// Milliseconds of the samples in which both tones of the key sound.
double key_ms(std::span<const std::int16_t> samples, double low_hz, double high_hz, std::uint32_t rate_hz) {
    const std::size_t window = rate_hz / 100;
    double ms = 0;
    for (std::size_t at = 0; at + window <= samples.size(); at += window / 2) {
        const auto part = samples.subspan(at, window);
        const bool both = tests::amplitude_at(part, low_hz, rate_hz) > 3000 &&
                          tests::amplitude_at(part, high_hz, rate_hz) > 3000;
        ms += both ? 5 : 0;
    }
    return ms;
}

/// How many times both tones of the key sound, each for 20 ms or more.
int times_sounded(std::span<const std::int16_t> samples, double low_hz, double high_hz) {
    int times = 0;
    for (std::size_t at = 0, run = 0; at + 80 <= samples.size(); at += 80) {
        const bool sounds = key_ms(samples.subspan(at, 80), low_hz, high_hz, 8000) > 0;
        run = sounds ? run + 1 : 0;
        times += run == 2 ? 1 : 0;
    }
    return times;
}

std::vector<std::uint8_t> event(std::uint8_t code, bool ended, std::uint16_t duration) {
    return {code, static_cast<std::uint8_t>(ended ? 0x8A : 0x0A), static_cast<std::uint8_t>(duration >> 8),
            static_cast<std::uint8_t>(duration)};
}

/// A far end that sends events, linked with one that takes tones.
struct EventsToTones {
    EventsToTones() {
        a->connect(left.settings());
        auto settings = right.settings();
        settings.dtmf_send_type.reset();
        b->connect(settings);
        a->link(*b);
    }

    void send(std::uint8_t code, std::uint32_t timestamp, std::uint16_t duration, bool ended = false) {
        const std::uint16_t number = sequence++;
        left.peer.send(a->udp_port(), {101, false, number, timestamp, 0xF00D}, event(code, ended, duration));
    }

    /// Let time pass in which the far end hears.
    void listen(int frames) {
        for (int n = 0; n < frames; ++n) {
            metronome.wait();
            right.listen();
        }
    }

    /// What the far end was sent, as its timestamps have it: with the pauses in which nothing was.
    std::vector<std::int16_t> timeline() const {
        std::vector<std::int16_t> samples;
        std::size_t from = 0;
        for (std::size_t n = 0; n < right.lengths.size(); ++n) {
            const std::size_t begin = right.headers[n].timestamp - right.headers[0].timestamp;
            if (begin > samples.size()) samples.resize(begin);
            const auto packet = std::span(right.heard).subspan(from, right.lengths[n]);
            samples.insert(samples.end(), packet.begin(), packet.end());
            from += packet.size();
        }
        return samples;
    }

    int times(double low_hz, double high_hz) const { return times_sounded(timeline(), low_hz, high_hz); }
    double length_ms(double low_hz, double high_hz) const {
        return key_ms(timeline(), low_hz, high_hz, 8000);
    }

    /// Wait until a key has sounded for so long in all.
    bool sounded(double ms, double low_hz, double high_hz) {
        return bench.until([&] {
            right.listen();
            return length_ms(low_hz, high_hz) >= ms;
        });
    }

    Bench bench;
    FarEnd left{pcmu};
    FarEnd right{l16};
    std::shared_ptr<engine::StreamHandle> a = bench.open();
    std::shared_ptr<engine::StreamHandle> b = bench.open(a.get());
    Metronome metronome{20};
    std::uint16_t sequence = 700;
};

}  // namespace

TEST_CASE("key tones: levels, lengths and gaps are as asked for") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        dsp::DtmfGenerator tones;
        tones.start("1x#w", 100, 50, rate_hz);
        std::vector<std::int16_t> samples(rate_hz);
        CHECK(tones.pull(samples));
        CHECK_FALSE(tones.busy());
        const std::size_t ms = rate_hz / 1000;
        const auto at = [&](std::size_t from_ms, std::size_t size_ms) {
            return std::span<const std::int16_t>(samples).subspan(from_ms * ms, size_ms * ms);
        };
        CHECK(tests::amplitude_at(at(0, 100), 697, rate_hz) == doctest::Approx(7200).epsilon(0.05));
        CHECK(tests::amplitude_at(at(0, 100), 1209, rate_hz) == doctest::Approx(9070).epsilon(0.05));
        CHECK(tests::rms(at(100, 50)) == 0);
        CHECK(tests::amplitude_at(at(150, 100), 941, rate_hz) == doctest::Approx(7200).epsilon(0.05));
        CHECK(tests::amplitude_at(at(150, 100), 1477, rate_hz) == doctest::Approx(9070).epsilon(0.05));
        CHECK(tests::rms(at(250, 750)) == 0);
    }
}

TEST_CASE("key tones: a held key sounds until it is known how long it was") {
    dsp::DtmfGenerator tones;
    tones.hold('5', 8000);
    std::vector<std::int16_t> frame(160);
    for (int n = 0; n < 10; ++n) {
        CHECK(tones.pull(frame));
    }
    tones.release_after(300);
    int frames = 0;
    while (tones.pull(frame)) {
        ++frames;
    }
    CHECK(frames == 5);
    tones.hold('5', 8000);
    CHECK(tones.pull(frame));
    // Shorter than what has sounded: it ends at once, but without a click.
    tones.release_after(10);
    CHECK(tones.pull(frame));
    CHECK(std::abs(frame[15]) < 1500);
    CHECK_FALSE(tones.pull(frame));
}

TEST_CASE("key tones: a key that broke off is not heard twice, nor never") {
    for (const bool held : {true, false}) {
        CAPTURE(held);
        for (const int frames : {1, 2, 4}) {
            CAPTURE(frames);
            dsp::DtmfGenerator tones;
            if (held) {
                tones.hold('5', 8000);
                tones.release_after(160);
            } else {
                tones.start("5", 160, 40, 8000);
            }
            std::vector<std::int16_t> frame(160);
            for (int n = 0; n < frames; ++n) {
                CHECK(tones.pull(frame));
            }
            tones.resume();
            int rest = 0;
            while (tones.pull(frame)) {
                ++rest;
            }
            CHECK(rest == (frames == 1 ? 8 : 0));
        }
    }
    dsp::DtmfGenerator idle;
    idle.resume();
    CHECK_FALSE(idle.busy());
}

TEST_CASE("key tones: another key that is held keeps its distance") {
    dsp::DtmfGenerator tones;
    std::vector<std::int16_t> frame(160);
    tones.hold('5', 8000);
    CHECK(tones.pull(frame));
    tones.release_after(20);
    CHECK(tones.pull(frame));
    CHECK_FALSE(tones.sounding());
    CHECK(tones.busy());
    CHECK_FALSE(tones.pull(frame));
    CHECK(tones.busy());
    CHECK_FALSE(tones.pull(frame));
    CHECK_FALSE(tones.pull(frame));
    CHECK_FALSE(tones.busy());
}

TEST_CASE("digits: they are tones for a far end that takes no events, or wants tones") {
    for (const bool takes_events : {false, true}) {
        CAPTURE(takes_events);
        Bench bench;
        FarEnd far(l16_wide);
        auto stream = bench.open();
        auto settings = far.settings();
        if (takes_events) {
            settings.dtmf_tones = true;
        } else {
            settings.dtmf_send_type.reset();
        }
        stream->connect(settings);
        stream->send_dtmf(text("7"));
        CHECK(bench.expect(EventKind::dtmf_sent));
        far.listen();
        CHECK(far.others.empty());
        CHECK(key_ms(far.heard, 852, 1209, 16000) == doctest::Approx(100).epsilon(0.15));
    }
}

TEST_CASE("digits: events count in the clock of the audio") {
    Bench bench;
    FarEnd far(l16_wide);
    auto stream = bench.open();
    stream->connect(far.settings());
    stream->send_dtmf(text("3"));
    CHECK(bench.expect(EventKind::dtmf_sent));
    far.listen();
    REQUIRE(far.others.size() == 7);
    const auto& last = far.others.back().payload;
    CHECK(last[0] == 3);
    CHECK((last[2] << 8 | last[3]) == 1600);
    CHECK(far.others.front().header.marker);
    CHECK(far.others.front().header.timestamp == far.others.back().header.timestamp);
}

TEST_CASE("digits: a relayed event becomes a tone as long as the press") {
    Bench bench;
    FarEnd left(pcmu);
    FarEnd right(l16);
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(left.settings());
    auto settings = right.settings();
    settings.dtmf_send_type.reset();
    b->connect(settings);
    a->link(*b);
    Metronome metronome(20);
    const auto sound = tests::tone(300, 8000, 160, 8000);
    for (int n = 0; n < 5; ++n) {
        left.speak(a->udp_port(), sound);
        metronome.wait();
    }
    std::uint16_t sequence = 705;
    for (int n = 0; n < 6; ++n) {
        left.peer.send(a->udp_port(), {101, n == 0, sequence++, 9000, 0xF00D},
                       event(9, n == 5, static_cast<std::uint16_t>((n + 1) * 160)));
        metronome.wait();
    }
    for (int n = 0; n < 10; ++n) {
        metronome.wait();
    }
    const auto told = bench.expect(EventKind::dtmf_received);
    REQUIRE(told);
    CHECK(told->a == '9');
    for (int n = 0; n < 30 && key_ms(right.heard, 852, 1477, 8000) < 100; ++n) {
        metronome.wait();
        right.listen();
    }
    CHECK(right.others.empty());
    // As long as the press, or until the machine had time for the packet that ends it.
    const double sounded_ms = key_ms(right.heard, 852, 1477, 8000);
    // At least the shortest tone that counts as a digit (ITU-T Q.24): a machine that stands still loses some.
    CHECK(sounded_ms >= 40);
    CHECK(sounded_ms <= 400);
}

TEST_CASE("digits: an event crosses to another clock") {
    Bench bench;
    FarEnd left(pcmu);
    FarEnd right(l16_wide);
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(left.settings());
    b->connect(right.settings());
    a->link(*b);
    Metronome metronome(20);
    const auto sound = tests::tone(300, 8000, 160, 8000);
    for (int n = 0; n < 5; ++n) {
        left.speak(a->udp_port(), sound);
        metronome.wait();
    }
    for (std::uint16_t n = 0; n < 4; ++n) {
        left.peer.send(a->udp_port(), {101, n == 0, static_cast<std::uint16_t>(705 + n), 9000, 0xF00D},
                       event(1, n >= 2, static_cast<std::uint16_t>(std::min(n + 1, 3) * 160)));
        metronome.wait();
    }
    REQUIRE(bench.until([&] {
        right.listen();
        return right.others.size() == 4;
    }));
    const rtp::Header first = right.others.front().header;
    CHECK(first.marker);
    CHECK(first.payload_type == 101);
    for (const tests::Heard& packet : right.others) {
        CHECK(packet.header.timestamp == first.timestamp);
        CHECK(packet.header.ssrc == first.ssrc);
    }
    const auto& last = right.others.back().payload;
    CHECK((last[2] << 8 | last[3]) == 960);
    CHECK((last[1] & 0x80) != 0);
}

TEST_CASE("digits: a key found in the audio is told once and sent on as an event") {
    Bench bench;
    FarEnd left(pcmu);
    FarEnd right(pcmu);
    auto a = bench.open();
    auto b = bench.open(a.get());
    engine::MediaSettings tones = left.settings();
    tones.dtmf_tones = true;
    a->connect(tones);
    b->connect(right.settings());
    a->link(*b);
    a->order([](engine::Stream& stream, std::int64_t now_ns) { stream.digit_detected({'4', 90}, now_ns); });
    REQUIRE(bench.expect(EventKind::dtmf_received));
    CHECK(bench.until([&] {
        right.listen();
        return right.others.size() == 7;
    }));
    CHECK(right.others.front().payload[0] == 4);
    // The same press as an event, from a far end that sends both.
    left.peer.send(a->udp_port(), {101, true, 1, 9000, 0xF00D}, event(4, true, 800));
    CHECK(bench.until([&] { return a->snapshot().packets_in == 1; }));
    bench.fetch(20);
    CHECK_FALSE(bench.heard_of(EventKind::dtmf_received));
}

TEST_CASE("digits: a press that the machine held up is one tone") {
    EventsToTones ends;
    ends.send(0, 9000, 160);
    REQUIRE(ends.sounded(60, 941, 1336));
    ends.b->order([](engine::Stream&, std::int64_t) { std::this_thread::sleep_for(160ms); });
    for (std::uint16_t n = 2; n < 12; ++n) {
        ends.send(0, 9000, static_cast<std::uint16_t>(n * 160), n == 11);
        ends.listen(1);
    }
    // A key that comes after it proves that nothing more of the first is on its way.
    ends.send(5, 12'000, 800, true);
    REQUIRE(ends.sounded(60, 770, 1336));
    CHECK(ends.times(941, 1336) == 1);
    // Not as long as the machine stood still; on a busy one a frame more than usual.
    CHECK(ends.length_ms(941, 1336) < 160);
}

TEST_CASE("digits: presses whose packets come together are tones one after the other") {
    EventsToTones ends;
    // The same key twice: only the pause tells them apart.
    const std::uint8_t codes[] = {1, 1, 5, 9};
    std::uint32_t timestamp = 9000;
    for (const std::uint8_t code : codes) {
        for (const std::uint16_t duration : {160, 320, 480, 800}) {
            ends.send(code, timestamp, duration, duration == 800);
        }
        ends.send(code, timestamp, 800, true);
        timestamp += 1440;
    }
    REQUIRE(ends.sounded(60, 852, 1477));
    CHECK(ends.times(697, 1209) == 2);
    CHECK(ends.times(770, 1336) == 1);
    CHECK(ends.times(852, 1477) == 1);
    for (const char key : {'1', '1', '5', '9'}) {
        const auto told = ends.bench.expect(EventKind::dtmf_received);
        REQUIRE(told);
        CHECK(told->a == static_cast<std::uint32_t>(key));
    }
}

TEST_CASE("digits: a late packet of the press before has neither key sound again") {
    EventsToTones ends;
    ends.send(1, 9000, 800, true);
    REQUIRE(ends.sounded(60, 697, 1209));
    ends.listen(8);
    for (std::uint16_t n = 1; n <= 5; ++n) {
        ends.send(5, 11'000, static_cast<std::uint16_t>(n * 160), n == 5);
        if (n == 3) ends.send(1, 9000, 800, true);
        ends.listen(1);
    }
    ends.listen(8);
    ends.send(9, 13'000, 800, true);
    REQUIRE(ends.sounded(60, 852, 1477));
    CHECK(ends.times(697, 1209) == 1);
    CHECK(ends.times(770, 1336) == 1);
}

TEST_CASE("digits: a press in segments is one tone") {
    EventsToTones ends;
    for (int n = 1; n <= 4; ++n) {
        ends.send(5, 9000, static_cast<std::uint16_t>(n == 4 ? 0xFFFF : 0xFF00 + n));
        ends.listen(1);
    }
    for (std::uint16_t n = 1; n <= 4; ++n) {
        ends.send(5, 9000 + 0xFFFF, static_cast<std::uint16_t>(n * 160));
        ends.listen(1);
    }
    CHECK(ends.times(770, 1336) == 1);
}

TEST_CASE("digits: presses that come together cross to another clock as presses of their own") {
    Bench bench;
    FarEnd left(l16_wide);
    FarEnd right(pcmu);
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(left.settings());
    b->connect(right.settings());
    a->link(*b);
    auto send = [&, number = std::uint16_t{700}](std::uint32_t timestamp, std::uint16_t duration,
                                                 bool ended) mutable {
        left.peer.send(a->udp_port(), {101, false, number++, timestamp, 0xF00D}, event(1, ended, duration));
    };
    // The first goes on in a second segment; a packet of it comes after the second press began.
    send(9000, 0xFFFF, false);
    send(9000 + 0xFFFF, 3200, true);
    send(9000 + 0xFFFF + 6400, 1600, false);
    send(9000 + 0xFFFF, 3200, true);
    send(9000 + 0xFFFF + 6400, 3200, true);
    REQUIRE(bench.until([&] {
        right.listen();
        return right.others.size() == 4;
    }));
    const std::uint32_t first = right.others[0].header.timestamp;
    const std::uint32_t second = right.others[2].header.timestamp;
    CHECK(right.others[1].header.timestamp == first);
    CHECK(right.others[3].header.timestamp == second);
    CHECK(second - first == (0xFFFF + 6400) / 2);
    const auto duration = [&](std::size_t n) {
        return right.others[n].payload[2] << 8 | right.others[n].payload[3];
    };
    CHECK(duration(0) == 0xFFFF / 2);
    CHECK(duration(1) == (0xFFFF + 3200) / 2);
    CHECK(duration(3) == 1600);
}
