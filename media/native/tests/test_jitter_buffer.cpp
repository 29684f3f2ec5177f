#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "numbered.hpp"

using namespace trunkline;
using graph::Origin;
using tests::BufferBench;
using tests::ms;
using tests::NumberDecoder;

namespace {

using Heard = std::vector<int>;

}  // namespace

TEST_CASE("a decoding buffer passes audio in order at once") {
    BufferBench bench;
    for (int n = 1; n <= 50; ++n) {
        bench.put(n, n * 20 * ms);
        REQUIRE(bench.heard.back() == n);
    }
    CHECK(bench.buffer.figures().concealed_samples == 0);
    CHECK(bench.buffer.figures().wait_ms == 25);
}

TEST_CASE("a decoding buffer hands out silence before the first packet") {
    BufferBench bench;
    bench.take_until(0, 200);
    CHECK(bench.heard == Heard(11, 0));
}

TEST_CASE("a decoding buffer waits for a packet that is only late") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.flush();
    bench.put(3, 60 * ms);
    CHECK(bench.heard.empty());
    bench.put(2, 64 * ms);
    CHECK(bench.heard == Heard{2, 3});
    CHECK(bench.buffer.figures().late == 0);
}

TEST_CASE("a decoding buffer conceals a lost packet and then catches up") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.flush();
    bench.put(3, 60 * ms);
    CHECK(bench.flush().empty());
    bench.put(4, 80 * ms);
    CHECK(bench.flush() == Heard{99, 3, 4});
    bench.put(2, 81 * ms);
    CHECK(bench.flush().empty());
    CHECK(bench.buffer.figures().late == 1);
    CHECK(bench.buffer.figures().concealed_samples == 160);
    bench.put(5, 100 * ms);
    CHECK(bench.flush() == Heard{5});
}

TEST_CASE("a decoding buffer recovers a lost packet from the next one") {
    BufferBench bench;
    bench.recoverable = true;
    bench.put(1, 20 * ms);
    bench.flush();
    SUBCASE("one of one") {
        bench.put(3, 60 * ms);
        bench.take(80 * ms);
        CHECK(bench.flush() == Heard{2, 3});
    }
    SUBCASE("the last of some") {
        bench.put(5, 100 * ms);
        bench.take(105 * ms);
        CHECK(bench.flush() == Heard{99, 99, 4, 5});
    }
    CHECK(bench.buffer.figures().recovered_packets == 1);
}

TEST_CASE("concealment fades away and then there is silence") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.flush();
    bench.take_until(20, 420);
    REQUIRE(bench.heard.size() >= 15);
    CHECK(bench.heard[0] == 99);
    CHECK(bench.heard[1] == 99);
    CHECK(bench.heard[3] < 60);
    CHECK(Heard(bench.heard.begin() + 5, bench.heard.end()) == Heard(bench.heard.size() - 5, 0));
    CHECK(bench.origins.back() == Origin::silence);
    CHECK(bench.buffer.figures().concealed_samples == 800);
}

TEST_CASE("a decoding buffer keeps its clock while the sender is silent") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.samples = 0;
    bench.take_until(25, 1020);
    // One second has passed; what is waited for may still be on its way.
    CHECK(bench.samples / 160 >= 47);
    CHECK(bench.samples / 160 <= 50);
    SUBCASE("and goes on when the sender's timestamps did") {
        bench.put_at(51, 2, bench.stamp(51), 1020 * ms);
        CHECK(bench.heard.back() == 51);
        CHECK(bench.samples == 50 * 160);
    }
    SUBCASE("at once when they stood still and the marker says so") {
        bench.put(2, 1020 * ms, true);
        CHECK(bench.heard.back() == 2);
        CHECK(bench.samples / 160 >= 49);
        CHECK(bench.samples / 160 <= 50);
    }
    SUBCASE("and soon when they stood still") {
        for (int n = 2; n <= 10; ++n) {
            bench.put(n, (980 + n * 20) * ms);
        }
        CHECK(bench.heard.back() == 10);
        CHECK(bench.samples / 160 >= 57);
        CHECK(bench.samples / 160 <= 59);
    }
}

TEST_CASE("a decoding buffer does not play a burst after a stall on top of the fill for it") {
    BufferBench bench;
    std::int64_t at = 20;
    for (int n = 1; n <= 10; ++n, at += 20) {
        bench.put(n, at * ms);
    }
    bench.take_until(at, at + 200);
    at += 200;
    for (int n = 11; n <= 20; ++n) {
        bench.put(n, at * ms);
    }
    for (int n = 21; n <= 40; ++n, at += 20) {
        bench.put(n, at * ms);
    }
    CHECK(bench.heard.back() == 40);
    CHECK(bench.samples / 160 <= 41);
}

TEST_CASE("comfort noise goes on until the next audio") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    const std::vector<std::uint8_t> described{30};
    bench.buffer.put_noise({13, false, 2, bench.stamp(2), 1}, described, false, 40 * ms);
    bench.origins.clear();
    bench.take_until(40, 540);
    REQUIRE(bench.origins.size() >= 20);
    CHECK(bench.origins == std::vector<Origin>(bench.origins.size(), Origin::noise));
    bench.put_at(3, 3, bench.stamp(27), 540 * ms, true);
    CHECK(bench.heard.back() == 3);
    CHECK(bench.origins.back() == Origin::received);
}

TEST_CASE("telephone events leave no gap to wait for") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.flush();
    bench.buffer.skip({101, false, 2, bench.stamp(2), 1});
    bench.buffer.skip({101, false, 3, bench.stamp(2), 1});
    bench.put(4, 80 * ms);
    CHECK(bench.heard == Heard{0, 0, 4});
}

TEST_CASE("a decoding buffer starts over with another source") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.put(2, 40 * ms);
    bench.put_at(7, 40000, 5, 60 * ms, false, true);
    bench.put_at(8, 40001, 165, 80 * ms);
    CHECK(bench.heard == Heard{0, 1, 2, 7, 8});
    CHECK(bench.decoder.resets == 1);
}

TEST_CASE("a decoding buffer follows timestamps that jump") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.flush();
    SUBCASE("forward") {
        bench.put_at(2, 2, bench.stamp(5000), 40 * ms);
        bench.put_at(3, 3, bench.stamp(5001), 60 * ms);
        CHECK(bench.heard == Heard{2, 3});
    }
    SUBCASE("backward") {
        for (int n = 2; n <= 8; ++n) {
            bench.put_at(n, static_cast<std::uint16_t>(n), bench.stamp(n - 5000), n * 20 * ms);
        }
        CHECK(bench.heard.back() == 8);
        CHECK(bench.samples / 160 >= 7);
    }
}

TEST_CASE("a decoding buffer bridges a long run of lost packets") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    bench.take_until(20, 10'000);
    bench.samples = 0;
    bench.put_at(2, 501, bench.stamp(501), 10'020 * ms);
    bench.put_at(3, 502, bench.stamp(502), 10'040 * ms);
    CHECK(bench.heard.back() == 3);
    CHECK(bench.samples / 160 <= 6);
}

TEST_CASE("a decoding buffer does not hand out more than a sender with a wrong clock sends") {
    BufferBench bench;
    SUBCASE("a clock that stands still") {
        for (int n = 1; n <= 500; ++n) {
            bench.put_at(n % 90, static_cast<std::uint16_t>(n), 77, n * 20 * ms);
        }
        CHECK(bench.samples == 501 * 160);
        CHECK(bench.heard.back() == 500 % 90);
    }
    SUBCASE("a clock at half the rate") {
        for (int n = 1; n <= 500; ++n) {
            bench.put_at(n % 90, static_cast<std::uint16_t>(n), static_cast<std::uint32_t>(n) * 80,
                         n * 20 * ms);
        }
        CHECK(bench.samples == 501 * 160);
    }
    SUBCASE("a clock at twice the rate") {
        for (int n = 1; n <= 500; ++n) {
            bench.put_at(n % 90, static_cast<std::uint16_t>(n), static_cast<std::uint32_t>(n) * 320,
                         n * 20 * ms);
        }
        CHECK(bench.samples <= (501 + 30) * 160);
        CHECK(bench.heard.back() == 500 % 90);
    }
}

TEST_CASE("a decoding buffer knows clocks that differ from the rate of the samples") {
    const std::vector<codec::Format> formats{
        {codec::Codec::g722, 8000}, {codec::Codec::opus, 48000}, {codec::Codec::l16, 16000}};
    for (const codec::Format& format : formats) {
        CAPTURE(format.clock_hz);
        BufferBench bench(format);
        CHECK(bench.buffer.rate_hz() == 16000);
        for (int n = 1; n <= 100; ++n) {
            if (n % 10 != 0) bench.put(n, n * 20 * ms);
        }
        bench.take(2'100 * ms);
        CHECK(bench.samples >= 101 * 320);
        CHECK(bench.samples <= 105 * 320);
        CHECK(bench.buffer.figures().late == 0);
        CHECK(bench.buffer.figures().concealed_samples >= 9 * 320);
    }
}

TEST_CASE("another codec begins anew without a break in the run") {
    BufferBench bench;
    bench.put(1, 20 * ms);
    NumberDecoder other({codec::Codec::g722, 8000});
    bench.buffer.use(&other, 30 * ms);
    CHECK(bench.buffer.rate_hz() == 16000);
    bench.samples = 0;
    bench.take_until(30, 230);
    CHECK(bench.samples >= 9 * 320);
    CHECK(bench.samples <= 11 * 320);
    bench.buffer.use(nullptr, 240 * ms);
    bench.samples = 0;
    bench.take_until(240, 340);
    bench.put(2, 340 * ms);
    CHECK(bench.samples == 0);
}

TEST_CASE("any sequence of packets leaves a decoding buffer bounded and in good order") {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        const auto one_of = [&](std::uint32_t count) { return random() % count; };
        BufferBench bench(one_of(2) == 0 ? codec::Format{} : codec::Format{codec::Codec::opus, 48000});
        const std::uint32_t rate_hz = bench.decoder.format().rate_hz();
        std::uint64_t put_samples = 0;
        std::uint64_t jumps = 1;
        std::int64_t now_ns = 0;
        std::uint16_t sequence = 0;
        std::uint32_t timestamp = 0;
        for (int n = 0; n < 3000; ++n) {
            now_ns += one_of(30) * ms * (one_of(100) == 0 ? 100 : 1);
            const std::vector<std::uint8_t> payload{static_cast<std::uint8_t>(one_of(256)),
                                                    static_cast<std::uint8_t>(one_of(9)), 1};
            const auto size = one_of(10) == 0 ? one_of(4) : 2 + one_of(2);
            sequence = static_cast<std::uint16_t>(sequence + (one_of(20) == 0 ? random() : one_of(4)));
            timestamp += one_of(20) == 0 ? static_cast<std::uint32_t>(random()) : one_of(2000);
            const rtp::Header header{0, one_of(10) == 0, sequence, timestamp, 1};
            const bool restarted = one_of(50) == 0;
            const auto bytes = std::span(payload).first(std::min<std::size_t>(size, payload.size()));
            switch (one_of(8)) {
                case 0:
                    bench.buffer.put_noise(header, bytes, restarted, now_ns);
                    break;
                case 1:
                    bench.buffer.skip(header);
                    break;
                default:
                    bench.buffer.put(header, bytes, restarted, now_ns);
                    put_samples += bench.decoder.samples(bytes);
                    ++jumps;
            }
            graph::AudioChunk chunk;
            int chunks = 0;
            while (bench.buffer.next(chunk, now_ns)) {
                REQUIRE(!chunk.samples.empty());
                REQUIRE(chunk.samples.size() <= codec::max_packet_samples);
                REQUIRE(++chunks < 1000);
                bench.samples += chunk.samples.size();
            }
            REQUIRE(bench.buffer.figures().wait_ms <= 200);
            const std::uint64_t passed = static_cast<std::uint64_t>(now_ns / ms) * rate_hz / 1000;
            // What a jump owes is paid at most once; what is filled ahead of time is bounded.
            REQUIRE(bench.samples <= put_samples + passed + passed / 50 + 2 * rate_hz);
            REQUIRE(bench.samples + 3 * rate_hz + jumps * rate_hz / 50 >= passed);
        }
    }
}
