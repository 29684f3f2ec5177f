// Sound through two linked streams: transcoded, repacketised, muted, and with codecs that change.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "far_end.hpp"
#include "support.hpp"

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
constexpr double amplitude = 8000;

/// Two far ends and the streams between them.
struct Bridge {
    Bridge(Bench& bench, const Format& from, const Format& to, std::uint32_t from_ms = 20,
           std::uint32_t to_ms = 20)
        : left(from, from_ms), right(to, to_ms), a(bench.open()), b(bench.open(a.get())) {
        a->connect(left.settings());
        b->connect(right.settings());
        a->link(*b);
        const auto rate_hz = static_cast<double>(from.rate_hz());
        sound = tests::tone(1000, rate_hz, from.rate_hz() * 2, amplitude);
    }

    /// The left far end says its next packet.
    void speak(bool send = true) {
        const std::size_t size = left.frame_samples();
        left.speak(a->udp_port(), std::span<const std::int16_t>(sound).subspan(said, size), send);
        said += size;
    }

    FarEnd left, right;
    std::shared_ptr<engine::StreamHandle> a, b;
    std::vector<std::int16_t> sound;
    std::size_t said = 0;
};

/// Median of the levels of all 50 ms against the level that was sent. A machine that stalls loses packets:
/// they leave holes, and ADPCM and Opus are too loud or too quiet after them.
double level_db(std::span<const std::int16_t> heard, const Format& format) {
    const std::size_t window = format.rate_hz() / 20;
    std::vector<double> amplitudes;
    for (std::size_t at = 0; at + window <= heard.size(); at += window / 2) {
        amplitudes.push_back(tests::amplitude_at(heard.subspan(at, window), 1000, format.rate_hz()));
    }
    REQUIRE(!amplitudes.empty());
    const auto middle = amplitudes.begin() + static_cast<std::ptrdiff_t>(amplitudes.size() / 2);
    std::nth_element(amplitudes.begin(), middle, amplitudes.end());
    return 20 * std::log10(std::max(*middle, 1.0) / amplitude);
}

/// Listen until so much sound was heard; false when it does not come.
bool hears(Bench& bench, FarEnd& far, std::size_t samples) {
    return bench.until([&] {
        far.listen();
        return far.heard.size() >= samples;
    });
}

}  // namespace

TEST_CASE("pipeline: a tone passes between all codecs at its level") {
    Bench bench;
    const auto formats = tests::built_in_formats();
    std::deque<Bridge> bridges;
    for (const Format& from : formats) {
        for (const Format& to : formats) {
            bridges.emplace_back(bench, from, to);
        }
    }
    const auto all_heard_half_a_second = [&] {
        std::size_t at = 0;
        return std::all_of(bridges.begin(), bridges.end(), [&](const Bridge& bridge) {
            return bridge.right.heard.size() >= formats[at++ % formats.size()].rate_hz() / 2;
        });
    };
    // On a machine that stalls some of it is lost, so it goes on, for two seconds at most.
    Metronome metronome(20);
    for (int n = 0; n < 50 || (n < 100 && !all_heard_half_a_second()); ++n) {
        for (Bridge& bridge : bridges) {
            bridge.speak();
            bridge.right.listen();
        }
        metronome.wait();
    }
    std::size_t place = 0;
    for (Bridge& bridge : bridges) {
        const Format& from = formats[place / formats.size()];
        const Format& to = formats[place++ % formats.size()];
        CAPTURE(static_cast<int>(from.codec));
        CAPTURE(from.clock_hz);
        CAPTURE(static_cast<int>(to.codec));
        CAPTURE(to.clock_hz);
        REQUIRE(hears(bench, bridge.right, to.rate_hz() / 2));
        CHECK(std::abs(level_db(bridge.right.heard, to)) < 1.0);
        for (const std::size_t length : bridge.right.lengths) {
            CHECK(length == to.rate_hz() / 50);
        }
        const auto& headers = bridge.right.headers;
        for (std::size_t n = 1; n < headers.size(); ++n) {
            CHECK(headers[n].ssrc == headers[0].ssrc);
            CHECK(headers[n].sequence == static_cast<std::uint16_t>(headers[n - 1].sequence + 1));
            // What a stall of the machine was not made up for shows as time that passed.
            const std::uint32_t step = headers[n].timestamp - headers[n - 1].timestamp;
            CHECK(step >= to.clock_hz / 50);
            CHECK(step < to.clock_hz);
        }
    }
}

TEST_CASE("pipeline: packets get the length that the far end wants") {
    struct Case {
        Format format;
        std::uint32_t from_ms, to_ms;
    };
    for (const Case& one : {Case{pcmu, 20, 60}, Case{pcmu, 60, 10}, Case{l16_wide, 30, 20}}) {
        CAPTURE(one.from_ms);
        CAPTURE(one.to_ms);
        Bench bench;
        Bridge bridge(bench, one.format, one.format, one.from_ms, one.to_ms);
        Metronome metronome(one.from_ms);
        for (std::uint32_t ms = 0; ms < 900; ms += one.from_ms) {
            bridge.speak();
            metronome.wait();
            bridge.right.listen();
        }
        REQUIRE(hears(bench, bridge.right, one.format.rate_hz() / 2));
        for (const std::size_t length : bridge.right.lengths) {
            CHECK(length == one.format.rate_hz() / 1000 * one.to_ms);
        }
        CHECK(std::abs(level_db(bridge.right.heard, one.format)) < 0.5);
    }
}

TEST_CASE("pipeline: what was lost is made up, what was not said is not sent") {
    Bench bench;
    Bridge bridge(bench, pcmu, l16_wide);
    Metronome metronome(20);
    for (int n = 0; n < 30; ++n) {
        bridge.speak(n != 12);
        metronome.wait();
    }
    // The far end falls silent as one with voice activity detection does.
    for (int n = 0; n < 30; ++n) {
        bridge.left.pause();
        metronome.wait();
    }
    bridge.right.listen();
    const std::size_t before = bridge.right.lengths.size();
    // All that was said, the lost packet, and less than 200 ms that were thought lost.
    CHECK(before >= 20);
    CHECK(before <= 45);
    for (int n = 0; n < 10; ++n) {
        bridge.speak();
        metronome.wait();
    }
    REQUIRE(bench.until([&] {
        bridge.right.listen();
        return bridge.right.lengths.size() > before;
    }));
    const rtp::Header& last = bridge.right.headers[before - 1];
    const rtp::Header& next = bridge.right.headers[before];
    CHECK(next.marker);
    CHECK(next.sequence == static_cast<std::uint16_t>(last.sequence + 1));
    // The pause shows in the timestamps, whatever was made up of it.
    CHECK(next.timestamp - last.timestamp > 16 * 300);
}

TEST_CASE("pipeline: a pause is described as noise to who takes that") {
    Bench bench;
    Bridge bridge(bench, pcmu, l16_wide);
    auto settings = bridge.right.settings();
    settings.noise_type = 119;
    bridge.b->connect(settings);
    Metronome metronome(20);
    for (int n = 0; n < 10; ++n) {
        bridge.speak();
        metronome.wait();
    }
    // Noise of -60 dBov without a spectrum (RFC 3389 3.1).
    bridge.left.peer.send(bridge.a->udp_port(), {13, false, 710, 5000 + 10 * 160, 0xF00D}, {60});
    for (int n = 0; n < 20; ++n) {
        metronome.wait();
    }
    REQUIRE(bench.until([&] {
        bridge.right.listen();
        return !bridge.right.others.empty();
    }));
    const tests::Heard& noise = bridge.right.others.front();
    CHECK(noise.header.payload_type == 119);
    CHECK_FALSE(noise.header.marker);
    REQUIRE(noise.payload.size() == 1);
    CHECK(bridge.right.others.size() <= 2);
}

TEST_CASE("pipeline: mute puts silence in place of one side") {
    Bench bench;
    Bridge bridge(bench, pcmu, pcmu);
    Metronome metronome(20);
    const auto speak = [&](int packets) {
        bridge.right.listen();
        bridge.right.heard.clear();
        for (int n = 0; n < packets; ++n) {
            bridge.speak();
            metronome.wait();
        }
        REQUIRE(hears(bench, bridge.right, 800));
        return tests::rms(std::span<const std::int16_t>(bridge.right.heard).last(400));
    };
    CHECK(speak(10) > 4000);
    bridge.a->mute(true, false);
    CHECK(speak(15) == 0);
    bridge.a->mute(false, false);
    CHECK(speak(10) > 4000);
    bridge.b->mute(false, true);
    CHECK(speak(15) == 0);
    bridge.b->mute(false, false);
    CHECK(speak(10) > 4000);
    CHECK(bench.until([&] { return bridge.a->snapshot().packets_in == 60; }));
}

TEST_CASE("pipeline: a codec that changes in mid-stream leaves the tap its rate and its clock") {
    Bench bench;
    FarEnd before(pcmu);
    FarEnd after(l16_wide, 20, 0xBEEF);
    auto stream = bench.open();
    stream->connect(before.settings());
    auto tap = stream->open_tap({graph::Encoding::l16, 16000});
    const auto begin = std::chrono::steady_clock::now();
    Metronome metronome(20);
    const auto narrow = tests::tone(1000, 8000, 160, amplitude);
    const auto wide = tests::tone(1000, 16000, 320, amplitude);
    for (int n = 0; n < 25; ++n) {
        before.speak(stream->udp_port(), narrow);
        metronome.wait();
    }
    // The far end sends the new codec from another address.
    stream->connect(after.settings());
    for (int n = 0; n < 25; ++n) {
        after.speak(stream->udp_port(), wide);
        metronome.wait();
    }
    bench.fetch(0);
    const auto passed_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin)
            .count();
    const auto framed_ms = static_cast<std::int64_t>(20 * bench.frames.size());
    CHECK(std::abs(framed_ms - passed_ms) <= 300);
    std::vector<std::int16_t> heard;
    for (const auto& frame : bench.frames) {
        REQUIRE(frame.size() == 640);
        std::vector<std::int16_t> samples(320);
        std::memcpy(samples.data(), frame.data(), frame.size());
        heard.insert(heard.end(), samples.begin(), samples.end());
    }
    const auto both = std::span<const std::int16_t>(heard);
    CHECK(std::abs(level_db(both.first(heard.size() / 2), l16_wide)) < 1.0);
    CHECK(std::abs(level_db(both.last(heard.size() / 3), l16_wide)) < 1.0);
    // It is answered in the new codec, under another clock and so another SSRC.
    before.listen();
    after.listen();
    REQUIRE(before.headers.size() > 3);
    REQUIRE(after.headers.size() > 3);
    CHECK(before.headers[0].ssrc != after.headers[0].ssrc);
    CHECK(after.headers[0].payload_type == 96);
    CHECK(after.headers[2].timestamp - after.headers[1].timestamp == 320);
}

TEST_CASE("pipeline: a bridged call changes between relaying and transcoding") {
    Bench bench;
    Bridge bridge(bench, pcmu, pcmu);
    FarEnd later(pcma, 40);
    Metronome metronome(20);
    for (int n = 0; n < 10; ++n) {
        bridge.speak();
        metronome.wait();
    }
    bridge.b->connect(later.settings());
    for (int n = 0; n < 30; ++n) {
        bridge.speak();
        metronome.wait();
    }
    CHECK(hears(bench, bridge.right, 8 * 160));
    REQUIRE(hears(bench, later, 5 * 320));
    CHECK(std::all_of(later.lengths.begin(), later.lengths.end(),
                      [](std::size_t size) { return size == 320; }));
    bridge.b->connect(bridge.right.settings());
    bridge.right.heard.clear();
    for (int n = 0; n < 10; ++n) {
        bridge.speak();
        metronome.wait();
    }
    CHECK(hears(bench, bridge.right, 8 * 160));
}

TEST_CASE("pipeline: a wide codec echoes undecoded") {
    Bench bench;
    FarEnd far(l16_wide);
    auto stream = bench.open();
    stream->connect(far.settings());
    stream->link(*stream);
    const auto sound = tests::tone(1000, 16000, 320, amplitude);
    far.speak(stream->udp_port(), sound);
    const auto heard = far.peer.hear();
    REQUIRE(heard);
    REQUIRE(heard->payload.size() == 640);
    CHECK((heard->payload[2] << 8 | heard->payload[3]) == static_cast<std::uint16_t>(sound[1]));
}

TEST_CASE("pipeline: a format the engine lacks is refused") {
    Bench bench;
    auto stream = bench.open();
    CHECK_THROWS_AS(stream->connect(tests::speaking(9, {Codec::l16, 44100})), std::invalid_argument);
}
