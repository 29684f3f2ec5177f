#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "support.hpp"
#include "trunkline/graph/eager_reader.hpp"
#include "trunkline/graph/sample_ring.hpp"

using namespace trunkline;
using graph::SampleRing;
using tests::level;
using tests::ms;

namespace {

using Frame = std::array<std::int16_t, 160>;

bool is_level(const Frame& frame, std::int16_t value) {
    for (const std::int16_t sample : frame) {
        if (sample != value) return false;
    }
    return true;
}

/// Feeds an eager reader with packets whose samples all hold the packet's number.
struct EagerBench {
    explicit EagerBench() : reader(0) {}

    void put(std::int16_t number, std::int64_t now_ns, bool marker = false) {
        reader.put(1000 + static_cast<std::uint32_t>(number) * 160, level(number, 160), false, marker,
                   now_ns);
        take(now_ns);
    }

    void take(std::int64_t now_ns) {
        Frame frame;
        while (reader.next(frame, now_ns)) {
            heard.push_back(frame[80]);
        }
    }

    graph::EagerReader reader;
    std::vector<int> heard;
};

}  // namespace

TEST_CASE("the sample ring puts packets in order and knows what is missing") {
    SampleRing ring;
    ring.reset(0xFFFFFF00);  // The timestamps wrap on the way.
    CHECK(ring.write(0xFFFFFF00 + 160, level(2, 160)) == SampleRing::Stored::stored);
    CHECK(ring.contiguous() == 0);
    CHECK(ring.ahead() == 320);
    CHECK(ring.write(0xFFFFFF00, level(1, 160)) == SampleRing::Stored::stored);
    CHECK(ring.contiguous() == 320);
    Frame frame;
    CHECK(ring.read(frame) == 160);
    CHECK(is_level(frame, 1));
    CHECK(ring.read(frame) == 160);
    CHECK(is_level(frame, 2));
    CHECK(ring.read(frame) == 0);
    CHECK(is_level(frame, 0));
    CHECK(ring.write(0xFFFFFF00 + 320, level(3, 160)) == SampleRing::Stored::late);
    CHECK(ring.write(0xFFFFFF00 + 400, level(4, 160)) == SampleRing::Stored::stored);
    CHECK(ring.ahead() == 80);
}

TEST_CASE("the sample ring refuses what does not fit") {
    SampleRing ring;
    ring.reset(0);
    CHECK(ring.write(SampleRing::capacity_samples - 159, level(1, 160)) == SampleRing::Stored::too_far);
    CHECK(ring.write(SampleRing::capacity_samples - 160, level(1, 160)) == SampleRing::Stored::stored);
    CHECK(ring.write(0x80000000, level(1, 160)) == SampleRing::Stored::too_far);
}

TEST_CASE("the loudest negative sample is audio, not absence") {
    SampleRing ring;
    ring.reset(0);
    ring.write(0, level(-32768, 160));
    Frame frame;
    CHECK(ring.read(frame) == 160);
    CHECK(is_level(frame, -32767));
}

TEST_CASE("an eager reader passes audio in order at once") {
    EagerBench bench;
    for (std::int16_t n = 1; n <= 50; ++n) {
        bench.put(n, n * 20 * ms);
        REQUIRE(bench.heard.size() == static_cast<std::size_t>(n));
        REQUIRE(bench.heard.back() == n);
    }
    CHECK(bench.reader.filled_samples() == 0);
}

TEST_CASE("an eager reader hands out silence before the first packet") {
    EagerBench bench;
    for (std::int64_t at = 0; at <= 200; at += 5) {
        bench.take(at * ms);
    }
    CHECK(bench.heard.size() == 11);
}

TEST_CASE("an eager reader waits for a packet that is only late") {
    EagerBench bench;
    bench.put(1, 20 * ms);
    bench.put(3, 60 * ms);
    CHECK(bench.heard == std::vector<int>{1});
    bench.put(2, 70 * ms);
    CHECK(bench.heard == std::vector<int>{1, 2, 3});
    CHECK(bench.reader.filled_samples() == 0);
}

TEST_CASE("an eager reader fills a lost packet and then catches up") {
    EagerBench bench;
    bench.put(1, 20 * ms);
    bench.put(3, 60 * ms);
    bench.put(4, 80 * ms);
    CHECK(bench.heard == std::vector<int>{1});
    bench.put(5, 100 * ms);
    CHECK(bench.heard == std::vector<int>{1, 0, 3, 4, 5});
    bench.put(6, 120 * ms);
    CHECK(bench.heard.back() == 6);
    bench.put(2, 121 * ms);
    CHECK(bench.heard.size() == 6);
    CHECK(bench.reader.late() == 1);
}

TEST_CASE("an eager reader keeps its clock while the sender is silent") {
    EagerBench bench;
    bench.put(1, 20 * ms);
    for (std::int64_t at = 25; at <= 1020; at += 5) {
        bench.take(at * ms);
    }
    // One second has passed; 40 ms of it may still be on its way.
    CHECK(bench.heard.size() >= 47);
    CHECK(bench.heard.size() <= 51);
    SUBCASE("and goes on when the sender's timestamps did") {
        bench.put(51, 1020 * ms);
        bench.take(1060 * ms);
        CHECK(bench.heard.back() == 51);
        CHECK(bench.heard.size() == 51);
    }
    SUBCASE("at once when the sender says that it was silent") {
        bench.put(51, 1020 * ms, true);
        CHECK(bench.heard.back() == 51);
        CHECK(bench.heard.size() == 51);
    }
    SUBCASE("and when the sender's timestamps stood still") {
        for (std::int16_t n = 2; n <= 10; ++n) {
            bench.put(n, (1000 + n * 20) * ms);
        }
        CHECK(bench.heard.back() == 10);
    }
    SUBCASE("at once when they stood still and the marker says so") {
        bench.put(2, 1020 * ms, true);
        CHECK(bench.heard.back() == 2);
    }
}

TEST_CASE("an eager reader does not play a burst after a stall on top of the silence for it") {
    EagerBench bench;
    std::int64_t at = 20;
    for (std::int16_t n = 1; n <= 10; ++n, at += 20) {
        bench.put(n, at * ms);
    }
    for (std::int64_t t = 0; t < 200; t += 5) {
        bench.take((at + t) * ms);
    }
    at += 200;
    for (std::int16_t n = 11; n <= 20; ++n) {
        bench.put(n, at * ms);
    }
    for (std::int16_t n = 21; n <= 40; ++n, at += 20) {
        bench.put(n, at * ms);
    }
    CHECK(bench.heard.back() == 40);
    CHECK(bench.heard.size() <= 42);
}

TEST_CASE("an eager reader takes packets of any length") {
    for (const std::uint32_t samples : {80U, 160U, 240U, 320U, 480U}) {
        graph::EagerReader reader(0);
        Frame frame;
        std::size_t frames = 0;
        for (std::uint32_t n = 0; n < 50; ++n) {
            const std::int64_t at = (n + 1) * samples * 125'000LL;
            reader.put(n * samples, level(1, samples), false, false, at);
            for (std::int64_t t = 0; t < samples / 8; t += 5) {
                while (reader.next(frame, at + t * ms)) {
                    REQUIRE(is_level(frame, 1));
                    ++frames;
                }
            }
        }
        CAPTURE(samples);
        CHECK(frames == 50 * samples / 160);
        CHECK(reader.filled_samples() == 0);
    }
}
