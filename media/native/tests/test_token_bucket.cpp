// How much one far end may make an engine thread do.

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "peer.hpp"
#include "trunkline/rtp/token_bucket.hpp"

using namespace trunkline;
using rtp::TokenBucket;
using tests::Bench;
using tests::Peer;
using tests::towards;

namespace {

constexpr std::int64_t ms_ns = 1'000'000;
constexpr std::int64_t packet_ns = 20 * ms_ns;

std::vector<std::uint8_t> codes(std::uint8_t code) {
    return std::vector<std::uint8_t>(160, code);
}

}  // namespace

TEST_CASE("real time may always be heard, and what a blocked path delivers at once") {
    TokenBucket token_bucket;
    std::int64_t now_ns = 5 * ms_ns;
    for (int n = 0; n < 10'000; ++n) {
        REQUIRE(token_bucket.take(packet_ns, now_ns));
        now_ns += packet_ns;
    }
    now_ns += 8'000 * ms_ns;
    for (int n = 0; n < 400; ++n) {
        REQUIRE(token_bucket.take(packet_ns, now_ns));
    }
}

TEST_CASE("a flood is heard as fast as one and a half times real time") {
    TokenBucket token_bucket;
    std::int64_t now_ns = 0;
    int heard = 0;
    for (int n = 0; n < 600'000; ++n) {
        if (token_bucket.take(packet_ns, now_ns)) ++heard;
        now_ns += ms_ns / 10;
    }
    // A minute of it.
    CHECK(heard >= 4500);
    CHECK(heard <= 4500 + 500 + 1);
}

TEST_CASE("packets that hold nothing count, too") {
    TokenBucket token_bucket;
    int heard = 0;
    for (int n = 0; n < 100'000; ++n) {
        if (token_bucket.take(0, 0)) ++heard;
    }
    CHECK(heard == TokenBucket::most_ns / TokenBucket::least_ns);
}

TEST_CASE("a time that runs backwards adds nothing") {
    TokenBucket token_bucket;
    while (token_bucket.take(packet_ns, 1'000 * ms_ns)) {
    }
    CHECK_FALSE(token_bucket.take(packet_ns, 0));
    CHECK_FALSE(token_bucket.take(packet_ns, 5 * ms_ns));
}

TEST_CASE("linked streams that were pointed at one another do not drive packets in a circle") {
    Bench bench;
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(b->udp_port()));
    b->connect(towards(a->udp_port()));
    REQUIRE(a->link(*b));
    // The last packet of our own is relayed back to where it came from, and so on.
    auto playback = std::make_unique<graph::Playback>();
    playback->clips.push_back({});
    playback->clips.back().pause_ms = 100;
    a->play(std::move(playback));
    REQUIRE(bench.expect(engine::EventKind::playback_finished));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const auto all = [&] { return a->snapshot().packets_out + b->snapshot().packets_out; };
    const std::uint64_t before = all();
    CHECK(before < 2'500);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK(all() - before < 250);
}

TEST_CASE("a flood of one far end is passed on no faster than anybody speaks") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(left.udp_port()));
    b->connect(towards(right.udp_port()));
    REQUIRE(a->link(*b));
    for (std::uint16_t n = 0; n < 4000; ++n) {
        left.send(a->udp_port(), {0, false, n, n * 160U, 0xABCD}, codes(1));
        // No faster than the socket is read.
        if (n % 100 == 99) bench.fetch(10);
    }
    REQUIRE(bench.until([&] { return a->snapshot().packets_in >= 3900; }));
    const auto in = a->snapshot();
    CHECK(in.dropped_unwanted >= 3900 - 500 - 500);
    CHECK(b->snapshot().packets_out + in.dropped_unwanted <= in.packets_in);
}
