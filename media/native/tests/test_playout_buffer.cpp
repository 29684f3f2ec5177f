#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "support.hpp"
#include "trunkline/graph/playout_buffer.hpp"

using namespace trunkline;
using graph::Origin;
using graph::PlayoutBuffer;
using tests::level;
using tests::ms;

namespace {

using Frame = std::array<std::int16_t, 320>;

/// A reader of 16 kHz that is fed and pulled by hand.
struct ReaderBench {
    ReaderBench() : reader(16000) {}

    void put(std::span<const std::int16_t> samples, Origin origin = Origin::received) {
        reader.put(samples, origin, now_ns);
    }

    void pull() {
        now_ns += 20 * ms;
        real += reader.pull(frame);
    }

    PlayoutBuffer reader;
    Frame frame{};
    std::int64_t now_ns = 0;
    std::size_t real = 0;
};

}  // namespace

TEST_CASE("a clocked reader is silent until enough has come") {
    ReaderBench bench;
    bench.pull();
    bench.put(level(1000, 320));
    bench.pull();
    CHECK(bench.real == 0);
    CHECK(bench.frame == Frame{});
    bench.put(level(1000, 320));
    bench.pull();
    CHECK(bench.real == 320);
    CHECK(bench.frame[319] == 1000);
    CHECK(bench.reader.depth_samples() == 320);
}

TEST_CASE("a clocked reader that runs dry hides it, keeps what comes late and shrinks again") {
    ReaderBench bench;
    const auto sine = tests::tone(500, 16000, 320 * 400, 8000);
    std::size_t put = 0;
    const auto put_next = [&] {
        bench.put(std::span(sine).subspan(put, 320));
        put += 320;
    };
    put_next();
    for (int n = 0; n < 50; ++n) {
        put_next();
        bench.pull();
    }
    // The network holds four packets back.
    for (int n = 0; n < 4; ++n) {
        bench.pull();
        if (n == 1) CHECK(tests::rms(bench.frame) > 2000);
    }
    CHECK(bench.reader.figures().concealed_samples >= 2 * 320);
    for (int n = 0; n < 5; ++n) {
        put_next();
    }
    bench.pull();
    const std::uint32_t grown = bench.reader.depth_samples();
    CHECK(grown >= 4 * 320);
    while (put + 320 <= sine.size()) {
        put_next();
        bench.pull();
        REQUIRE(tests::rms(bench.frame) > 5000);
    }
    CHECK(bench.reader.depth_samples() < grown - 320);
    CHECK(bench.reader.figures().removed_samples > 320);
    CHECK(bench.reader.figures().overflowed_samples == 0);
}

TEST_CASE("a clocked reader catches up in a pause first") {
    ReaderBench bench;
    // Ten packets at once at the start: far more than a good network needs.
    for (int n = 0; n < 10; ++n) {
        bench.put(level(0, 320), Origin::silence);
    }
    for (int n = 0; n < 40; ++n) {
        bench.put(level(0, 320));
        bench.pull();
    }
    CHECK(bench.reader.depth_samples() <= 4 * 320);
    CHECK(bench.reader.figures().removed_samples >= 6 * 320);
}

TEST_CASE("a clocked reader drops what is far too much") {
    ReaderBench bench;
    bench.put(level(500, 16000));
    CHECK(bench.reader.depth_samples() <= 16 * PlayoutBuffer::max_depth_ms);
    CHECK(bench.reader.figures().overflowed_samples > 8000);
    bench.pull();
    CHECK(bench.real == 320);
}

TEST_CASE("a clocked reader whose sender stopped is silent and starts again cheaply") {
    ReaderBench bench;
    for (int n = 0; n < 10; ++n) {
        bench.put(tests::tone(500, 16000, 320));
        bench.pull();
    }
    for (int n = 0; n < 5000; ++n) {
        bench.pull();
        if (n > 5) REQUIRE(bench.frame == Frame{});
    }
    const std::size_t before = bench.real;
    for (int n = 0; n < 100; ++n) {
        bench.put(tests::tone(500, 16000, 320));
        bench.pull();
    }
    CHECK(bench.real - before >= 98 * 320);
    CHECK(bench.reader.depth_samples() <= 3 * 320);
}

TEST_CASE("any rhythm of puts and pulls leaves a clocked reader bounded") {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        PlayoutBuffer reader(seed % 2 == 0 ? 8000 : 16000);
        std::vector<std::int16_t> noise(5000);
        for (std::int16_t& sample : noise) {
            sample = static_cast<std::int16_t>(random());
        }
        std::array<std::int16_t, 960> out;
        std::int64_t now_ns = 0;
        for (int n = 0; n < 2000; ++n) {
            now_ns += static_cast<std::int64_t>(random() % 40) * ms;
            if (random() % 50 == 0) now_ns += 3000 * ms;
            for (std::uint32_t puts = random() % 3; puts > 0; --puts) {
                const std::size_t size = random() % 100 == 0 ? 5000 : random() % 700;
                reader.put(std::span(noise).first(size), static_cast<Origin>(random() % 5), now_ns);
            }
            const std::size_t size = reader.rate_hz() / 1000 * (10 + random() % 51);
            REQUIRE(reader.pull(std::span(out).first(size)) <= size);
            REQUIRE(reader.depth_samples() <= reader.rate_hz() * PlayoutBuffer::max_depth_ms / 1000 + 960);
        }
    }
}
