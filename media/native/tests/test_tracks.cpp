// Tracks: sounds that are added to all that a stream sends.

#include <doctest/doctest.h>

#include <stdexcept>

#include "driven.hpp"
#include "far_end.hpp"
#include "recorded.hpp"
#include "support.hpp"
#include "trunkline/graph/track_mixer.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;
using tests::Driven;
using tests::FarEnd;
using tests::ms;

namespace {

constexpr Format pcmu{Codec::pcmu, 8000};
constexpr Format l16_wide{Codec::l16, 16000};
constexpr double voice_hz = 600;
constexpr double track_hz = 1700;
constexpr double other_hz = 2500;

std::unique_ptr<graph::Playback> endless(std::uint64_t id, double freq_hz, double amplitude = 6000) {
    return tests::playback(id, tests::tone(freq_hz, 8000, 800, amplitude), 0);
}

/// A far end that listens, linked with one that may speak.
struct Line {
    Line(const Format& hears, const Format& speaks, bool continuous = true)
        : driven(0, continuous),
          ear(hears),
          mouth(speaks),
          a(driven.media->open_stream(nullptr)),
          b(driven.media->open_stream(a.get())) {
        a->connect(ear.settings());
        b->connect(mouth.settings());
    }

    /// Let packets of 20 ms pass, in which the other side speaks or says nothing.
    void pass(int packets, bool speaks = false) {
        const double rate_hz = static_cast<double>(mouth.frame_samples()) * 50;
        for (int n = 0; n < packets; ++n) {
            // A tenth of a second has a whole number of periods.
            const auto frame = tests::tone(voice_hz, rate_hz, mouth.frame_samples(), 6000);
            mouth.speak(b->udp_port(), frame, speaks);
            driven.run_for(20 * ms);
            ear.listen();
            mouth.listen();
        }
    }

    /// Loudness of a frequency in the last 400 ms that were heard.
    double hears(double freq_hz) const {
        const double rate_hz = static_cast<double>(ear.frame_samples()) * 50;
        const auto samples = static_cast<std::size_t>(rate_hz * 0.4);
        if (ear.heard.size() < samples) return -1;
        return tests::amplitude_at(std::span(ear.heard).last(samples), freq_hz, rate_hz);
    }

    Driven driven;
    FarEnd ear, mouth;
    std::shared_ptr<engine::StreamHandle> a, b;
};

}  // namespace

TEST_CASE("tracks: the sum is limited once, and an empty mixer changes nothing") {
    struct Silent final : graph::PlaybackListener {
        void playback_finished(std::uint64_t, graph::PlaybackEnd, char, std::uint64_t) override { ++ends; }
        void playback_position(std::uint64_t, std::uint64_t) override {}
        void spent(util::Node* node) override { delete node; }
        int ends = 0;
    } listener;
    graph::TrackMixer mixer(listener);
    auto frame = tests::level(30000, 160);
    CHECK(mixer.empty());
    CHECK_FALSE(mixer.add_to(frame, 8000));
    CHECK(frame[0] == 30000);
    mixer.play(0, tests::playback(1, tests::level(20000, 320)).release());
    mixer.play(3, tests::playback(2, tests::level(-19000, 160)).release());
    CHECK(mixer.add_to(frame, 8000));
    CHECK(frame[80] == 31000);
    frame = tests::level(30000, 160);
    CHECK(mixer.add_to(frame, 8000));
    CHECK(frame[80] == 32767);
    CHECK(mixer.empty());
    CHECK(listener.ends == 2);
}

TEST_CASE("tracks: a track is heard over a linked party, whatever the codecs") {
    for (const auto& [hears, speaks] : {std::pair{pcmu, pcmu}, {l16_wide, pcmu}, {pcmu, l16_wide}}) {
        CAPTURE(static_cast<int>(hears.codec));
        CAPTURE(static_cast<int>(speaks.codec));
        Line line(hears, speaks);
        line.a->link(*line.b);
        line.pass(30, true);
        CHECK(line.hears(voice_hz) > 5000);
        line.a->play_track(0, endless(1, track_hz));
        line.a->play_track(2, endless(2, other_hz, 3000));
        line.pass(40, true);
        CHECK(line.hears(voice_hz) > 5000);
        CHECK(line.hears(track_hz) > 5000);
        CHECK(line.hears(other_hz) == doctest::Approx(3000).epsilon(0.15));
        CHECK(tests::amplitude_at(line.mouth.heard, track_hz, 8000) < 50);
        line.a->stop_track(2);
        line.pass(30, true);
        CHECK(line.hears(other_hz) < 100);
        CHECK(line.hears(track_hz) > 5000);
        line.a->stop_track(0);
        line.pass(30, true);
        CHECK(line.hears(track_hz) < 100);
        CHECK(line.hears(voice_hz) > 5000);
    }
}

TEST_CASE("tracks: packets are relayed before and after, and numbered without a gap all along") {
    Line line(pcmu, pcmu);
    line.a->link(*line.b);
    line.pass(10, true);
    line.a->play_track(0, tests::playback(1, tests::tone(track_hz, 8000, 3200)));
    line.pass(40, true);
    const auto& headers = line.ear.headers;
    REQUIRE(headers.size() > 45);
    for (std::size_t n = 1; n < headers.size(); ++n) {
        CHECK(headers[n].sequence == static_cast<std::uint16_t>(headers[n - 1].sequence + 1));
    }
    // What is relayed keeps the code for -0, which an encoder does not write.
    const std::vector<std::uint8_t> payload(160, 0x7F);
    line.mouth.peer.send(line.b->udp_port(), {0, false, 700 + 50, 5000 + 50 * 160, 0xF00D}, payload);
    line.driven.run_for(0);
    CHECK(line.ear.peer.hear_until(payload));
}

TEST_CASE("tracks: a track goes on while the linked party says nothing, in real time") {
    for (const bool continuous : {true, false}) {
        CAPTURE(continuous);
        Line line(pcmu, pcmu, continuous);
        line.a->link(*line.b);
        line.pass(10, true);
        line.a->play_track(0, endless(1, track_hz));
        line.pass(30);
        line.ear.headers.clear();
        line.pass(50);
        CHECK(line.hears(track_hz) > 5000);
        CHECK(line.ear.headers.size() >= 49);
        CHECK(line.ear.headers.size() <= 51);
        line.pass(30, true);
        CHECK(line.hears(track_hz) > 5000);
        CHECK(line.hears(voice_hz) > 4000);
    }
}

TEST_CASE("tracks: a track is heard over a playback, an agent, and alone; its end is told") {
    Line line(pcmu, pcmu);
    line.a->play(endless(1, voice_hz));
    line.a->play_track(1, tests::playback(7, tests::tone(track_hz, 8000, 8000, 6000)));
    line.pass(45);
    CHECK(line.hears(voice_hz) > 5000);
    CHECK(line.hears(track_hz) > 5000);
    line.driven.media->acknowledge();
    line.pass(10);
    bool told = false;
    for (engine::Event event; line.driven.media->next_event(event);) {
        told =
            told || (event.kind == engine::EventKind::playback_finished && event.b == 7 && event.c == 1000);
    }
    CHECK(told);
    line.a->stop_playback();
    line.a->play_track(1, endless(8, track_hz));
    line.pass(30);
    CHECK(line.hears(voice_hz) < 100);
    CHECK(line.hears(track_hz) > 5000);
}

TEST_CASE("tracks: who is not to hear anything hears no track") {
    Line line(pcmu, pcmu);
    line.a->link(*line.b);
    line.a->play_track(0, endless(1, track_hz));
    line.a->mute(false, true);
    line.pass(30, true);
    CHECK(line.hears(track_hz) < 50);
    line.a->mute(false, false);
    line.b->mute(true, false);
    line.pass(30, true);
    CHECK(line.hears(track_hz) > 5000);
    CHECK(line.hears(voice_hz) < 100);
}

TEST_CASE("tracks: a stream without them has no part for them, and ends with them at any time") {
    Line line(pcmu, pcmu, false);
    line.a->link(*line.b);
    line.a->stop_track(3);
    line.pass(5, true);
    CHECK(line.a->snapshot().packets_out == 5);
    CHECK_THROWS_AS(line.a->stop_track(4), std::invalid_argument);
    CHECK_THROWS_AS(line.a->play_track(4, endless(1, track_hz)), std::invalid_argument);
    line.a->play_track(0, endless(2, track_hz));
    line.b->close();
    line.pass(3);
    line.a->play_track(1, endless(3, track_hz));
    line.a->close();
    line.a->play_track(1, endless(4, track_hz));
    line.a->stop_track(1);
    line.pass(3);
    CHECK(line.driven.media->figures().streams == 0);
}

TEST_CASE("tracks: a track is heard alone by a party that hears nothing else") {
    Line line(pcmu, pcmu, false);
    line.a->play_track(0, tests::playback(1, tests::tone(track_hz, 8000, 8000, 6000)));
    line.pass(45);
    CHECK(line.ear.headers.size() >= 44);
    CHECK(line.hears(track_hz) > 5000);
    line.pass(20);
    CHECK(line.ear.headers.size() <= 52);
}

TEST_CASE("tracks: keys in the audio are sent without a track, which goes on after them") {
    for (const bool tones : {true, false}) {
        CAPTURE(tones);
        Line line(pcmu, pcmu);
        engine::MediaSettings settings = line.ear.settings();
        settings.dtmf_tones = tones;
        line.a->connect(settings);
        line.a->play_track(0, endless(1, track_hz));
        line.pass(10);
        auto text = std::make_unique<engine::DtmfText>();
        text->digits = "5";
        text->duration_ms = 600;
        text->gap_ms = 100;
        line.a->send_dtmf(std::move(text));
        line.pass(25);
        if (tones) {
            CHECK(line.hears(770) > 1000);
            CHECK(line.hears(track_hz) < 50);
        }
        line.pass(40);
        CHECK(line.hears(track_hz) > 5000);
    }
}

TEST_CASE("tracks: a recording has what the party hears, whoever else is silent") {
    for (const bool speaks : {true, false}) {
        CAPTURE(speaks);
        const tests::ScratchFile file("tracks.wav");
        Line line(pcmu, pcmu, false);
        line.a->link(*line.b);
        REQUIRE(line.a->start_recording(1, file.path(), {}) == 0);
        line.pass(20, speaks);
        line.a->play_track(0, endless(1, track_hz));
        line.pass(40, speaks);
        line.pass(40);
        line.a->stop_track(0);
        line.pass(30, true);
        line.a->stop_recording();
        line.driven.media->close();
        const auto sent = tests::play_wav(file.bytes()).channels.at(1);
        REQUIRE(sent.size() >= 8 * 2550);
        const auto loudness = [&](std::size_t from_ms, double freq_hz) {
            return tests::amplitude_at(std::span(sent).subspan(8 * from_ms, 8 * 400), freq_hz, 8000);
        };
        CHECK(loudness(800, track_hz) > 5000);
        CHECK((loudness(800, voice_hz) > 5000) == speaks);
        CHECK(loudness(1500, track_hz) > 5000);
        CHECK(loudness(1500, voice_hz) < 100);
        CHECK(loudness(2150, track_hz) < 100);
        CHECK(loudness(2150, voice_hz) > 5000);
    }
}

TEST_CASE("tracks: no noise is described in place of a track") {
    Line line(pcmu, pcmu);
    engine::MediaSettings settings = line.ear.settings();
    settings.noise_type = 13;
    line.a->connect(settings);
    line.a->play_track(0, endless(1, track_hz));
    line.pass(50);
    CHECK(line.hears(track_hz) > 5000);
    CHECK(line.ear.heard.size() >= 8 * 980);
}
