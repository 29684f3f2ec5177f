// Digits to far ends of every kind.

#include <doctest/doctest.h>

#include <cmath>

#include "far_end.hpp"
#include "support.hpp"
#include "trunkline/dsp/key_tones.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;
using engine::EventKind;
using tests::Bench;
using tests::FarEnd;
using tests::Metronome;

namespace {

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

std::vector<std::uint8_t> event(std::uint8_t code, bool ended, std::uint16_t duration) {
    return {code, static_cast<std::uint8_t>(ended ? 0x8A : 0x0A), static_cast<std::uint8_t>(duration >> 8),
            static_cast<std::uint8_t>(duration)};
}

}  // namespace

TEST_CASE("key tones: levels, lengths and gaps are as asked for") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        dsp::KeyTones tones;
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
    dsp::KeyTones tones;
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
    CHECK(sounded_ms >= 100);
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
