// Detectors on streams: digits told once, in whatever ways they come, and passed on; echoes passed over.

#include <doctest/doctest.h>

#include "far_end.hpp"
#include "sounds.hpp"
#include "trunkline/dsp/dtmf_detector.hpp"
#include "trunkline/dsp/dtmf_generator.hpp"

using namespace trunkline;
using engine::DetectorSlots;
using engine::EventKind;
using tests::Bench;
using tests::Metronome;
using tests::Peer;

TEST_SUITE_BEGIN("detection");

namespace {

/// A far end that sends mu-law and telephone events in one run of packets.
class Caller {
  public:
    /// The next 20 ms: audio, or the event of the key 5 as it stands after so many ms.
    void send(std::uint16_t to_port, std::span<const std::int16_t> audio, int event_ms = -1,
              bool ended = false) {
        if (event_ms >= 0) {
            const int units = 8 * event_ms;
            const std::vector<std::uint8_t> event{5, static_cast<std::uint8_t>(ended ? 0x8A : 0x0A),
                                                  static_cast<std::uint8_t>(units >> 8),
                                                  static_cast<std::uint8_t>(units)};
            if (event_start_ == 0) event_start_ = timestamp_;
            peer.send(to_port, {101, event_ms == 20, sequence_++, event_start_, 7}, event);
        }
        if (!audio.empty()) {
            std::vector<std::uint8_t> codes(audio.size());
            dsp::encode(dsp::Law::mu, audio, codes.data());
            peer.send(to_port, {0, false, sequence_++, timestamp_, 7}, codes);
        }
        timestamp_ += 160;
    }

    Peer peer;

  private:
    std::uint16_t sequence_ = 100;
    std::uint32_t timestamp_ = 16'000;
    std::uint32_t event_start_ = 0;
};

[[maybe_unused]] std::vector<std::int16_t> key_frame(int frame) {
    tests::Sounds heard;
    heard.tones({770, 1336}, 20 * (frame + 1));
    return {heard.samples.end() - 160, heard.samples.end()};
}

const std::vector<std::int16_t> quiet(160);

[[maybe_unused]] int digits_told(Bench& bench) {
    int told = 0;
    bench.fetch(200);
    for (const engine::Event& event : bench.events) {
        if (event.kind == EventKind::dtmf_received) ++told;
    }
    return told;
}

}  // namespace

#if TRUNKLINE_HAVE_SPANDSP

TEST_CASE("a digit that comes as a tone and as an event is told once") {
    // The whole tone beside the event, or only its beginning before a gateway has cut it.
    for (const int tone_frames : {10, 3}) {
        CAPTURE(tone_frames);
        Bench bench;
        Caller caller;
        auto stream = bench.open();
        auto settings = tests::towards(caller.peer.udp_port());
        settings.dtmf_tones = true;
        stream->connect(settings);
        Metronome metronome(20);
        for (int n = 0; n < 60; ++n) {
            const bool tone = n >= 10 && n < 10 + tone_frames;
            const bool pressed = n >= 12 && n < 20;
            caller.send(stream->udp_port(), tone ? key_frame(n) : quiet, pressed ? 20 * (n - 11) : -1,
                        n == 19);
            metronome.wait();
        }
        const auto first = bench.expect(EventKind::dtmf_received);
        REQUIRE(first);
        CHECK(first->a == '5');
        CHECK(digits_told(bench) == 0);
    }
}

TEST_CASE("a tone is passed on as an event to a linked far end that takes events") {
    Bench bench;
    Caller caller;
    Peer callee;
    auto one = bench.open();
    auto other = bench.open(one.get());
    auto settings = tests::towards(caller.peer.udp_port(), dsp::Law::mu, -1);
    settings.dtmf_tones = true;
    one->connect(settings);
    other->connect(tests::towards(callee.udp_port()));
    one->link(*other);
    Metronome metronome(20);
    int events = 0;
    bool ended = false;
    for (int n = 0; n < 60; ++n) {
        const bool tone = n >= 10 && n < 16;
        caller.send(one->udp_port(), tone ? key_frame(n) : quiet);
        metronome.wait();
        while (const auto packet = callee.hear(0)) {
            if (packet->header.payload_type != 101) continue;
            ++events;
            CHECK(packet->payload.at(0) == 5);
            ended = ended || (packet->payload.at(1) & 0x80) != 0;
        }
    }
    CHECK(events >= 3);
    CHECK(ended);
    CHECK(digits_told(bench) == 1);
}

TEST_CASE("the echo of our own digits is not the far end's") {
    Bench bench;
    Caller caller;
    auto stream = bench.open();
    auto settings = tests::towards(caller.peer.udp_port(), dsp::Law::mu, -1);
    settings.dtmf_tones = true;
    stream->connect(settings);
    auto text = std::make_unique<engine::DtmfText>();
    text->digits = "5";
    text->duration_ms = 200;
    text->gap_ms = 80;
    stream->send_dtmf(std::move(text));
    Metronome metronome(20);
    for (int n = 0; n < 30; ++n) {
        caller.send(stream->udp_port(), n >= 3 && n < 12 ? key_frame(n) : quiet);
        metronome.wait();
    }
    CHECK(digits_told(bench) == 0);
    // Later, it is.
    for (int n = 0; n < 30; ++n) {
        caller.send(stream->udp_port(), n >= 3 && n < 12 ? key_frame(n) : quiet);
        metronome.wait();
    }
    CHECK(digits_told(bench) == 1);
}

#endif

TEST_CASE("a prompt that ends by speech listens by itself") {
    Bench bench;
    Caller caller;
    auto stream = bench.open();
    stream->connect(tests::towards(caller.peer.udp_port()));
    const std::vector<std::uint8_t> sound(16 * 4000);
    auto playback = std::make_unique<graph::Playback>();
    playback->id = 3;
    playback->ends_by_speech = true;
    graph::Clip clip;
    clip.bytes = sound;
    playback->clips.push_back(clip);
    stream->play(std::move(playback));
    tests::Sounds heard;
    heard.silence(400).speech("hello_en").silence(200);
    Metronome metronome(20);
    for (std::size_t at = 0; at + 160 <= heard.samples.size(); at += 160) {
        caller.send(stream->udp_port(), std::span(heard.samples).subspan(at, 160));
        metronome.wait();
    }
    const auto finished = bench.expect(EventKind::playback_finished);
    REQUIRE(finished);
    CHECK((finished->a & 0xFF) == static_cast<std::uint32_t>(graph::PlaybackEnd::speech));
    CHECK_FALSE(bench.heard_of(EventKind::speech_started));
}

TEST_CASE("detectors come and go while audio flows, and with the stream") {
    Bench bench;
    Caller caller;
    auto stream = bench.open();
    stream->connect(tests::towards(caller.peer.udp_port()));
    for (int n = 0; n < 300; ++n) {
        caller.send(stream->udp_port(), quiet);
        auto& slots = stream->detectors();
        switch (n % 6) {
            case 0:
                slots.start(*stream, DetectorSlots::Kind::tones,
                            std::make_unique<engine::ToneListener>(dsp::ToneNamer::Limits{}));
                break;
            case 1:
                slots.start(*stream, DetectorSlots::Kind::answer,
                            std::make_unique<engine::AnswerListener>(dsp::AnswerSettings{}));
                break;
            case 2:
                slots.start(*stream, DetectorSlots::Kind::keys, std::make_unique<engine::KeyDetector>());
                break;
            case 3:
                slots.stop(*stream, DetectorSlots::Kind::answer);
                break;
            case 4:
                slots.stop(*stream, DetectorSlots::Kind::answer);
                slots.need_speech(*stream);
                break;
            default:
                bench.fetch(1);
        }
    }
    stream->close();
    stream->detectors().start(*stream, DetectorSlots::Kind::keys, std::make_unique<engine::KeyDetector>());
    CHECK(bench.media->figures().events_dropped == 0);
}

TEST_SUITE_END();
