// Whole streams over loopback sockets.

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "peer.hpp"
#include "support.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/io/wav_file.hpp"

using namespace trunkline;
using engine::EventKind;
using tests::Bench;
using tests::Peer;
using tests::towards;

namespace {

rtp::Header header(std::uint16_t sequence, std::uint8_t payload_type = 0, std::uint32_t ssrc = 0xABCD) {
    return {payload_type, false, sequence, sequence * 160U, ssrc};
}

std::vector<std::uint8_t> codes(std::uint8_t code) {
    return std::vector<std::uint8_t>(160, code);
}

/// The next event of a kind; an empty one when it does not come.
engine::Event told(Bench& bench, EventKind kind) {
    return bench.expect(kind).value_or(engine::Event{});
}

std::vector<std::int16_t> samples_of(const std::string& bytes) {
    std::vector<std::int16_t> samples(bytes.size() / 2);
    std::memcpy(samples.data(), bytes.data(), 2 * samples.size());
    return samples;
}

}  // namespace

TEST_CASE("linked streams relay both ways under their own numbers") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(left.udp_port()));
    b->connect(towards(right.udp_port()));
    REQUIRE(a->link(*b));
    std::uint16_t first_sequence = 0;
    for (std::uint16_t n = 0; n < 20; ++n) {
        left.send(a->udp_port(), header(static_cast<std::uint16_t>(100 + n)),
                  codes(static_cast<std::uint8_t>(n)));
        const auto heard = right.hear();
        REQUIRE(heard);
        if (n == 0) first_sequence = heard->header.sequence;
        CHECK(heard->header.ssrc == b->snapshot().ssrc_out);
        CHECK(heard->header.ssrc != 0xABCD);
        CHECK(heard->header.sequence == static_cast<std::uint16_t>(first_sequence + n));
        CHECK(heard->payload == codes(static_cast<std::uint8_t>(n)));
        right.send(b->udp_port(), header(n), codes(9));
        REQUIRE(left.hear());
    }
    CHECK(bench.expect(EventKind::first_packet));
    CHECK(bench.expect(EventKind::first_packet));
    CHECK(a->snapshot().packets_in == 20);
    // Counted after it was sent, so the packet may be here first.
    CHECK(bench.until([&] { return a->snapshot().packets_out == 20; }));
    a->unlink();
    left.send(a->udp_port(), header(200), codes(1));
    CHECK(right.hears_nothing());
}

TEST_CASE("codecs and event types are translated between linked streams") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(left.udp_port(), dsp::Law::mu, 101));
    b->connect(towards(right.udp_port(), dsp::Law::a, 96));
    a->link(*b);
    left.send(a->udp_port(), header(1), codes(0x80));
    auto heard = right.hear();
    REQUIRE(heard);
    CHECK(heard->header.payload_type == 8);
    std::int16_t sample = 0;
    dsp::decode(dsp::Law::a, {heard->payload.data(), 1}, &sample);
    CHECK(sample == doctest::Approx(32124).epsilon(0.03));
    left.send(a->udp_port(), header(2, 101), {5, 0x8A, 3, 0x20});
    heard = right.hear();
    REQUIRE(heard);
    CHECK(heard->header.payload_type == 96);
    CHECK(heard->payload == std::vector<std::uint8_t>{5, 0x8A, 3, 0x20});
    const auto event = bench.expect(EventKind::dtmf_received);
    REQUIRE(event);
    CHECK(event->a == '5');
    CHECK(event->b == 100);
    CHECK(event->stream == a->id());
}

TEST_CASE("a static payload type is heard by its own law, whichever was agreed") {
    // The greatest sample in either law.
    struct Loud {
        std::uint8_t payload_type;
        std::uint8_t code;
    };
    constexpr Loud loud[] = {{0, 0x80}, {8, 0xAA}};
    for (const dsp::Law agreed : {dsp::Law::mu, dsp::Law::a}) {
        CAPTURE(static_cast<int>(agreed));
        Bench bench;
        Peer left;
        Peer right;
        auto a = bench.open();
        auto b = bench.open(a.get());
        a->connect(towards(left.udp_port(), agreed));
        b->connect(towards(right.udp_port()));
        a->link(*b);
        std::uint16_t sequence = 0;
        for (const Loud& packet : loud) {
            CAPTURE(int{packet.payload_type});
            left.send(a->udp_port(), header(++sequence, packet.payload_type), codes(packet.code));
            const auto heard = right.hear();
            REQUIRE(heard);
            std::int16_t sample = 0;
            dsp::decode(dsp::Law::mu, {heard->payload.data(), 1}, &sample);
            CHECK(sample == doctest::Approx(32124).epsilon(0.03));
        }
    }
}

TEST_CASE("a stream linked to itself echoes") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->link(*stream);
    peer.send(stream->udp_port(), header(1), codes(7));
    const auto heard = peer.hear();
    REQUIRE(heard);
    CHECK(heard->payload == codes(7));
    CHECK(heard->header.ssrc == stream->snapshot().ssrc_out);
}

TEST_CASE("another source is not heard and cannot turn the stream away") {
    Bench bench;
    Peer peer;
    Peer thief;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->link(*stream);
    peer.send(stream->udp_port(), header(1), codes(1));
    REQUIRE(peer.hear());
    thief.send(stream->udp_port(), header(2), codes(2));
    CHECK(thief.hears_nothing());
    CHECK(peer.hears_nothing());
    CHECK(bench.until([&] { return stream->snapshot().dropped_foreign == 1; }));
    peer.send(stream->udp_port(), header(3), codes(3));
    CHECK(peer.hear_until(codes(3)));
}

TEST_CASE("what is no RTP, of unknown type or too early is dropped and counted") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    peer.send(stream->udp_port(), header(1), codes(1));
    REQUIRE(bench.until([&] { return stream->snapshot().dropped_unwanted == 1; }));
    stream->connect(towards(peer.udp_port()));
    stream->link(*stream);
    peer.send_raw(stream->udp_port(), {1, 2, 3});
    peer.send_raw(stream->udp_port(), {});
    peer.send_raw(stream->udp_port(), std::vector<std::uint8_t>(4000, 0x80));
    peer.send(stream->udp_port(), header(2, 77), codes(1));
    peer.send(stream->udp_port(), header(3), {});
    peer.send(stream->udp_port(), header(3), std::vector<std::uint8_t>(481, 1));
    peer.send_raw(stream->udp_port(), {0x80, 200, 0, 1, 0, 0, 0, 1});
    peer.send(stream->udp_port(), header(4), codes(4));
    REQUIRE(peer.hear());
    // A report too short for what it must hold is no RTCP either.
    CHECK(stream->snapshot().dropped_invalid == 7);
    CHECK(stream->snapshot().rtcp_in == 0);
    CHECK(stream->snapshot().packets_in == 1);
    // What the whole engine dropped stays counted when the stream is gone.
    CHECK(bench.media->drops().invalid == 7);
    CHECK(bench.media->drops().unwanted == 1);
    stream->close();
    CHECK(bench.media->drops().invalid == 7);
    CHECK(bench.media->drops().unwanted == 1);
    CHECK(bench.media->drops().foreign == 0);
}

TEST_CASE("a stream on hold sends nothing") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    auto settings = towards(peer.udp_port());
    settings.send = false;
    stream->connect(settings);
    stream->play(tests::playback(1, tests::tone(1000, 8000, 800)));
    const auto event = bench.expect(EventKind::playback_finished);
    REQUIRE(event);
    CHECK(peer.hears_nothing());
    settings.send = true;
    stream->connect(settings);
    stream->play(tests::playback(2, tests::tone(1000, 8000, 800)));
    CHECK(peer.hear());
}

TEST_CASE("playback arrives as one unbroken stream") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port(), dsp::Law::a));
    stream->play(tests::playback(11, tests::tone(1000, 8000, 2400)));
    stream->play(tests::playback(12, tests::tone(1000, 8000, 800)));
    std::vector<std::int16_t> heard;
    std::optional<rtp::Header> before;
    for (int n = 0; n < 20; ++n) {
        const auto packet = peer.hear();
        REQUIRE(packet);
        CHECK(packet->header.marker == !before.has_value());
        if (before) {
            CHECK(packet->header.sequence == static_cast<std::uint16_t>(before->sequence + 1));
            CHECK(packet->header.timestamp == before->timestamp + 160);
        }
        before = packet->header;
        std::vector<std::int16_t> samples(packet->payload.size());
        dsp::decode(dsp::Law::a, packet->payload, samples.data());
        heard.insert(heard.end(), samples.begin(), samples.end());
    }
    CHECK(tests::amplitude_at(heard, 1000, 8000) == doctest::Approx(12000).epsilon(0.02));
    CHECK(told(bench, EventKind::playback_finished).b == 11);
    CHECK(told(bench, EventKind::playback_finished).b == 12);
    CHECK(peer.hears_nothing());
}

TEST_CASE("the packet time agreed on is kept") {
    for (const std::uint32_t ptime_ms : {10U, 30U, 60U}) {
        Bench bench;
        Peer peer;
        auto stream = bench.open();
        auto settings = towards(peer.udp_port());
        settings.ptime_ms = ptime_ms;
        stream->connect(settings);
        stream->play(tests::playback(1, tests::level(5, 4000)));
        for (int n = 0; n < 3; ++n) {
            const auto heard = peer.hear();
            REQUIRE(heard);
            CHECK(heard->payload.size() == ptime_ms * 8);
        }
    }
}

TEST_CASE("digits cross from one stream to another") {
    Bench bench;
    auto a = bench.open();
    auto b = bench.open();
    a->connect(towards(b->udp_port()));
    b->connect(towards(a->udp_port()));
    auto text = std::make_unique<engine::DtmfText>();
    text->token = 77;
    text->digits = "5#";
    text->duration_ms = 60;
    text->gap_ms = 60;
    a->send_dtmf(std::move(text));
    CHECK(told(bench, EventKind::dtmf_received).a == '5');
    CHECK(told(bench, EventKind::dtmf_received).a == '#');
    CHECK(told(bench, EventKind::dtmf_sent).a == 77);
}

TEST_CASE("a tap hears and speaks") {
    Bench bench;
    auto agent = bench.open();
    auto caller = bench.open();
    agent->connect(towards(caller->udp_port()));
    caller->connect(towards(agent->udp_port()));
    auto tap = agent->open_tap({graph::Encoding::l16, 16000});
    REQUIRE(tap);
    caller->play(tests::playback(1, tests::tone(1000, 8000, 8000)));
    REQUIRE(bench.until([&] { return bench.heard_of(EventKind::playback_finished); }));
    for (int n = 0; n < 10; ++n) {
        bench.fetch(20);
    }
    std::vector<std::int16_t> heard;
    for (const auto& frame : bench.frames) {
        REQUIRE(frame.size() == 640);
        const auto samples = samples_of({frame.begin(), frame.end()});
        if (tests::rms(samples) > 5000) heard.insert(heard.end(), samples.begin(), samples.end());
    }
    CHECK(heard.size() > 14'000);
    CHECK(tests::amplitude_at(heard, 1000, 16000) > 8000);

    const auto speech = tests::tone(500, 16000, 16000);
    CHECK(tap->write(reinterpret_cast<const std::uint8_t*>(speech.data()), 2 * speech.size()) == 0);
    CHECK(tap->queued_ms() <= 1000);
    tap->mark(5);
    CHECK(told(bench, EventKind::mark_reached).b == 5);
    CHECK(bench.expect(EventKind::playout_drained));
    CHECK(tap->queued_ms() == 0);
    tap->close();
    CHECK(tap->write(reinterpret_cast<const std::uint8_t*>(speech.data()), 100) == 0);
}

TEST_CASE("a stream with a tap sends silence when there is nothing else") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port(), dsp::Law::a));
    auto tap = stream->open_tap({});
    for (int n = 0; n < 5; ++n) {
        const auto heard = peer.hear();
        REQUIRE(heard);
        CHECK(heard->payload == codes(0xD5));
    }
}

TEST_CASE("a tap takes bytes in any portions, and no more than two minutes") {
    Bench bench;
    auto stream = bench.open();
    auto tap = stream->open_tap({});
    const std::vector<std::uint8_t> bytes(3'000'000, 1);
    CHECK(tap->write(bytes.data(), 3) == 0);
    CHECK(tap->queued_ms() == 0);
    CHECK(tap->write(bytes.data(), 1) == 0);
    CHECK(tap->write(bytes.data(), 16 * 1000 - 4) == 0);
    CHECK(tap->queued_ms() == 1000);
    CHECK(tap->write(bytes.data(), bytes.size()) == bytes.size() - 16 * 119'000);
    CHECK(tap->queued_ms() == 120'000);
    CHECK(tap->write(bytes.data(), 160) == 160);
    tap->clear();
    CHECK(tap->queued_ms() == 0);
    CHECK(tap->write(bytes.data(), 160) == 0);
    CHECK(tap->queued_ms() == 10);
}

TEST_CASE("clearing a tap ends its audio") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    auto tap = stream->open_tap({});
    const auto speech = tests::level(10000, 80'000);
    tap->write(reinterpret_cast<const std::uint8_t*>(speech.data()), 2 * speech.size());
    std::vector<std::uint8_t> loud(160);
    std::vector<std::int16_t> loud_samples(160, 10000);
    dsp::encode(dsp::Law::mu, loud_samples, loud.data());
    REQUIRE(peer.hear_until(loud));
    tap->clear();
    // How soon is the playout queue's own test; here packets may lie unread on a slow machine.
    CHECK(peer.hear_until(codes(0xFF)));
    CHECK(bench.expect(EventKind::playout_drained));
}

TEST_CASE("a recording holds both directions, side by side in time") {
    const auto path =
        std::filesystem::temp_directory_path() / ("engine-rec-" + std::to_string(getpid()) + ".wav");
    Bench bench;
    auto a = bench.open();
    auto b = bench.open();
    a->connect(towards(b->udp_port()));
    b->connect(towards(a->udp_port()));
    REQUIRE(a->start_recording(99, path.string(), {}) == 0);
    a->play(tests::playback(1, tests::tone(500, 8000, 4800)));
    CHECK(bench.expect(EventKind::playback_finished));
    b->play(tests::playback(2, tests::tone(1000, 8000, 4800)));
    CHECK(bench.expect(EventKind::playback_finished));
    // Closing ends the recording as well.
    a->close();
    const auto finished = bench.expect(EventKind::recording_finished);
    REQUIRE(finished);
    CHECK(finished->stream == 99);
    CHECK(finished->a == 0);
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    CHECK(bytes.size() == finished->c);
    const auto both = samples_of(bytes.substr(io::wav_header_bytes));
    std::vector<std::int16_t> received;
    std::vector<std::int16_t> sent;
    for (std::size_t n = 0; n + 1 < both.size(); n += 2) {
        received.push_back(both[n]);
        sent.push_back(both[n + 1]);
    }
    // Sent first, received after it; neither leaks into the other.
    const auto half = std::span<const std::int16_t>(sent).subspan(800, 3200);
    CHECK(tests::amplitude_at(half, 500, 8000) == doctest::Approx(12000).epsilon(0.05));
    CHECK(tests::rms(std::span<const std::int16_t>(received).subspan(0, 3200)) < 10);
    CHECK(tests::amplitude_at(received, 1000, 8000) > 3000);
    CHECK(tests::amplitude_at(received, 500, 8000) < 100);
    CHECK(finished->b >= 1200);
    std::filesystem::remove(path);
}

TEST_CASE("a disk error ends the recording, not the stream") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    REQUIRE(stream->start_recording(5, "/dev/full", {}) == 0);
    const auto finished = bench.expect(EventKind::recording_finished);
    REQUIRE(finished);
    CHECK(finished->a == ENOSPC);
    stream->link(*stream);
    peer.send(stream->udp_port(), header(1), codes(1));
    CHECK(peer.hear());
    CHECK(stream->start_recording(6, "/nonexistent/x.wav", {}) == ENOENT);
}

TEST_CASE("events that are no key are neither told nor passed on") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(left.udp_port()));
    b->connect(towards(right.udp_port()));
    a->link(*b);
    // Flash, and a fax tone.
    left.send(a->udp_port(), header(1, 101), {16, 0x8A, 3, 0x20});
    left.send(a->udp_port(), header(2, 101), {36, 0x8A, 3, 0x20});
    left.send(a->udp_port(), header(3, 101), {7, 0x8A, 3, 0x20});
    const auto heard = right.hear();
    REQUIRE(heard);
    CHECK(heard->payload[0] == 7);
    const auto event = bench.expect(EventKind::dtmf_received);
    REQUIRE(event);
    CHECK(event->a == '7');
    CHECK_FALSE(bench.heard_of(EventKind::dtmf_received));
}

TEST_CASE("events come with either number of an agreement whose numbers differ") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    auto settings = towards(left.udp_port());
    // We have offered 101, and a browser has answered with 126, with which it also sends.
    settings.dtmf_send_type = 126;
    a->connect(settings);
    b->connect(towards(right.udp_port()));
    a->link(*b);
    for (const std::uint8_t type : {126, 101}) {
        const std::uint8_t key = type == 126 ? 4 : 2;
        left.send(a->udp_port(), header(type == 126 ? 1 : 2, type), {key, 0x8A, 3, 0x20});
        const auto heard = right.hear();
        REQUIRE(heard);
        CHECK(heard->header.payload_type == 101);
        CHECK(heard->payload[0] == key);
        CHECK(told(bench, EventKind::dtmf_received).a == '0' + key);
    }
}

TEST_CASE("the number that a far end wants its events with takes the place of no other") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    auto settings = towards(left.udp_port());
    // The number of PCMA, which is heard whatever was agreed.
    settings.dtmf_send_type = 8;
    a->connect(settings);
    b->connect(towards(right.udp_port()));
    a->link(*b);
    left.send(a->udp_port(), header(1, 8), codes(1));
    const auto heard = right.hear();
    REQUIRE(heard);
    CHECK(heard->header.payload_type == 0);
    CHECK(heard->payload.size() == 160);
}

TEST_CASE("silence is told once, and again after audio") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->set_media_timeout(100'000'000, 0);
    const auto event = bench.expect(EventKind::media_timeout);
    REQUIRE(event);
    CHECK(event->b >= 100);
    peer.send(stream->udp_port(), header(1), codes(1));
    CHECK(bench.expect(EventKind::first_packet));
    CHECK(bench.expect(EventKind::media_timeout));
}

TEST_CASE("ports run out and come back") {
    Bench bench(1, 8);
    std::vector<std::shared_ptr<engine::StreamHandle>> streams;
    for (int n = 0; n < 4; ++n) {
        streams.push_back(bench.open());
        REQUIRE(streams.back());
        CHECK(streams.back()->udp_port() % 2 == 0);
    }
    CHECK_FALSE(bench.open());
    CHECK(bench.media->figures().ports_in_use == 4);
    streams.clear();
    CHECK(bench.media->figures().ports_in_use == 0);
    CHECK(bench.until([&] { return bench.open() != nullptr; }));
}

TEST_CASE("streams of different threads cannot be linked") {
    Bench bench(2);
    auto a = bench.open();
    auto b = bench.open();
    auto c = bench.open(a.get());
    CHECK_FALSE(a->link(*b));
    CHECK(a->link(*c));
}

TEST_CASE("a closed stream takes every order without harm") {
    Bench bench;
    auto stream = bench.open();
    auto other = bench.open(stream.get());
    auto tap = stream->open_tap({});
    stream->link(*other);
    stream->play(tests::playback(1, tests::level(1, 8000)));
    stream->close();
    stream->close();
    stream->connect(towards(9));
    CHECK(stream->link(*other));
    stream->unlink();
    stream->play(tests::playback(2, tests::level(1, 8000)));
    stream->stop_playback();
    CHECK(stream->open_tap({}) == nullptr);
    tap->mark(1);
    tap->clear();
    tap->close();
    CHECK(stream->start_recording(1, "/nonexistent", {}) == 0);
    CHECK(stream->snapshot().packets_in == 0);
}

TEST_CASE("options that cannot work are refused") {
    CHECK_THROWS_AS(engine::Engine::create({"localhost", 15000, 15999, 1, 0}), std::invalid_argument);
    CHECK_THROWS_AS(engine::Engine::create({"127.0.0.1", 15000, 15999, 0, 0}), std::invalid_argument);
    CHECK_THROWS_AS(engine::Engine::create({"127.0.0.1", 5000, 5000, 1, 0}), std::invalid_argument);
}

TEST_CASE("no order waits for something else to wake the thread") {
    Bench bench;
    auto stream = bench.open();
    // Closing a stream tells its digits, if the order to close it ran. With no stream open nothing but the
    // order itself wakes the thread.
    for (int round = 0; round < 4000; ++round) {
        stream->close();
        bench.events.clear();
        stream = bench.open();
        auto text = std::make_unique<engine::DtmfText>();
        text->token = static_cast<std::uint32_t>(round);
        stream->send_dtmf(std::move(text));
        stream->close();
        const auto sent = bench.expect(EventKind::dtmf_sent, 1000);
        REQUIRE(sent);
        CHECK(sent->a == static_cast<std::uint32_t>(round));
        stream = bench.open();
    }
}
