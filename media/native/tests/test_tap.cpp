// An agent's end of a stream, over sockets: what it hears of both directions, levels, noise while it is away.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "far_end.hpp"
#include "peer.hpp"
#include "support.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/engine/tap_handle.hpp"

using namespace trunkline;
using engine::EventKind;
using tests::Bench;
using tests::Peer;
using tests::towards;

namespace {

std::vector<std::int16_t> decoded(const std::vector<std::uint8_t>& payload) {
    std::vector<std::int16_t> samples(payload.size());
    dsp::decode(dsp::Law::mu, payload, samples.data());
    return samples;
}

std::size_t write(engine::TapHandle& tap, const std::vector<std::int16_t>& samples) {
    return tap.write(reinterpret_cast<const std::uint8_t*>(samples.data()), 2 * samples.size());
}

/// The frames of one number, joined.
std::vector<std::int16_t> joined(const std::vector<std::pair<std::uint64_t, std::vector<std::int16_t>>>& all,
                                 std::uint64_t id) {
    std::vector<std::int16_t> samples;
    for (const auto& [tag, frame] : all) {
        if (tag == id) samples.insert(samples.end(), frame.begin(), frame.end());
    }
    return samples;
}

}  // namespace

TEST_CASE("a tap for both directions tells each 20 ms of what is heard, then of what is sent") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        CAPTURE(rate_hz);
        Bench bench;
        auto stream = bench.open();
        tests::FarEnd far({codec::Codec::pcmu, 8000});
        stream->connect(far.settings());
        auto tap = stream->open_tap({graph::Encoding::l16, rate_hz}, true);
        REQUIRE(tap->sent_id() != 0);
        write(*tap, tests::tone(500, rate_hz, 8 * rate_hz));
        std::vector<std::pair<std::uint64_t, std::vector<std::int16_t>>> frames;
        const auto heard = tests::tone(1000, 8000, 8000);
        tests::Metronome tick(20);
        for (std::size_t n = 0; n < 50; ++n) {
            far.speak(stream->udp_port(), std::span(heard).subspan(160 * n, 160));
            tick.wait();
            while (const auto frame = bench.media->front_frame()) {
                std::vector<std::int16_t> samples(frame->bytes.size() / 2);
                std::memcpy(samples.data(), frame->bytes.data(), frame->bytes.size());
                frames.emplace_back(frame->tag, samples);
                bench.media->release_frame();
            }
        }
        REQUIRE(frames.size() > 60);
        for (std::size_t n = 0; n < frames.size(); ++n) {
            CHECK(frames[n].first == (n % 2 == 0 ? tap->id() : tap->sent_id()));
            CHECK(frames[n].second.size() == rate_hz / 50);
        }
        const auto in = joined(frames, tap->id());
        const auto out = joined(frames, tap->sent_id());
        const auto late_half = [&](const std::vector<std::int16_t>& samples) {
            return std::span(samples).last(samples.size() / 2);
        };
        CHECK(tests::amplitude_at(late_half(in), 1000, rate_hz) > 3000);
        CHECK(tests::amplitude_at(late_half(in), 500, rate_hz) < 500);
        CHECK(tests::amplitude_at(late_half(out), 500, rate_hz) > 8000);
        CHECK(tests::amplitude_at(late_half(out), 1000, rate_hz) < 500);
    }
}

TEST_CASE("a tap for one direction has no number for the other") {
    Bench bench;
    auto stream = bench.open();
    CHECK(stream->open_tap({})->sent_id() == 0);
}

TEST_CASE("levels of a tap's queue are told as events") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    auto tap = stream->open_tap({});
    tap->watch_level(500, 400);
    write(*tap, tests::level(1000, 4800));
    const auto full = bench.expect(EventKind::playout_level);
    REQUIRE(full);
    CHECK(full->a == 1);
    CHECK(full->b == 600);
    const auto low = bench.expect(EventKind::playout_level);
    REQUIRE(low);
    CHECK(low->a == 0);
    CHECK(low->b == 400);
    CHECK(tap->played_ms() >= 200);
    CHECK(bench.expect(EventKind::playout_drained));
    CHECK(tap->played_ms() == 600);
}

TEST_CASE("an underrun is counted for the stream and the engine, and kept when the stream is gone") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    auto tap = stream->open_tap({});
    // On a slow machine half a second may pass before the second chunk comes.
    REQUIRE(bench.until([&] {
        write(*tap, tests::level(1000, 800));
        return bench.expect(EventKind::playout_drained).has_value() && stream->snapshot().underruns > 0;
    }));
    const std::uint64_t before = stream->snapshot().underruns;
    CHECK(bench.media->figures().underruns == before);
    stream->close();
    CHECK(bench.media->figures().underruns == before);
}

TEST_CASE("on the wire, clearing is a fade of 5 ms and then silence") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    auto tap = stream->open_tap({});
    write(*tap, tests::level(10000, 80'000));
    const auto loud = [](std::int16_t sample) { return sample > 9000; };
    std::vector<std::int16_t> samples;
    do {
        const auto packet = peer.hear();
        REQUIRE(packet);
        samples = decoded(packet->payload);
    } while (!std::all_of(samples.begin(), samples.end(), loud));
    tap->clear();
    // Packets that were sent before the order ran are loud throughout; then one fades, and no other does.
    do {
        const auto packet = peer.hear();
        REQUIRE(packet);
        samples = decoded(packet->payload);
    } while (std::all_of(samples.begin(), samples.end(), loud));
    REQUIRE(samples.size() == 160);
    CHECK(samples[0] > 9000);
    CHECK(std::is_sorted(samples.rbegin(), samples.rend()));
    CHECK(samples[39] < 600);
    CHECK(std::all_of(samples.begin() + 40, samples.end(), [](std::int16_t sample) { return sample == 0; }));
    for (int n = 0; n < 3; ++n) {
        const auto packet = peer.hear();
        REQUIRE(packet);
        CHECK(decoded(packet->payload) == std::vector<std::int16_t>(160, 0));
    }
}

TEST_CASE("soft noise stands in for silence and gives way to the agent") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->comfort_noise(true);
    std::vector<std::int16_t> noise;
    for (int n = 0; n < 25; ++n) {
        const auto packet = peer.hear();
        REQUIRE(packet);
        const auto samples = decoded(packet->payload);
        noise.insert(noise.end(), samples.begin(), samples.end());
    }
    const double level = tests::rms(std::span<const std::int16_t>(noise).last(2000));
    CHECK(level > 10);
    CHECK(level < 100);

    auto tap = stream->open_tap({});
    write(*tap, tests::level(10000, 1600));
    std::vector<std::uint8_t> loud(160);
    dsp::encode(dsp::Law::mu, tests::level(10000, 160), loud.data());
    CHECK(peer.hear_until(loud));
    CHECK(bench.expect(EventKind::playout_drained));
    stream->comfort_noise(false);
    CHECK(peer.hear_until(std::vector<std::uint8_t>(160, 0xFF)));
    tap->close();
}
