// Nothing may be left behind, whatever is opened, used and closed in whatever order.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "peer.hpp"
#include "support.hpp"

using namespace trunkline;
using tests::Bench;

namespace {

std::size_t entries(const char* directory) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

std::unique_ptr<graph::Playback> playback(std::uint64_t id) {
    auto made = tests::playback(id, tests::tone(700, 8000, 4000), id % 3 == 0 ? 0 : 1);
    made->clips.push_back(tests::sound(tests::tone(900, 16000, 1000), 16000));
    made->ends_by_digit = id % 2 == 0;
    made->position_every_ms = id % 5 == 0 ? 100 : 0;
    return made;
}

}  // namespace

TEST_CASE("ten thousand streams leave nothing behind") {
    // With its first thread a process may start those of a sanitizer.
    {
        const Bench first;
    }
    const std::size_t descriptors = entries("/proc/self/fd");
    const std::size_t threads = entries("/proc/self/task");
    {
        Bench bench(2, 1000);
        std::vector<std::shared_ptr<engine::StreamHandle>> open;
        for (int n = 0; n < 10'000; ++n) {
            std::shared_ptr<engine::StreamHandle> stream;
            // A port is free again once the engine's thread has closed its socket.
            REQUIRE(bench.until([&] { return (stream = bench.open()) != nullptr; }));
            stream->connect(tests::towards(stream->udp_port()));
            if (n % 5 == 0) stream->link(*stream);
            if (n % 7 == 0) stream->play(playback(static_cast<std::uint64_t>(n)));
            open.push_back(std::move(stream));
            if (open.size() == 200) {
                for (auto& old : open) {
                    old->close();
                }
                open.clear();
                bench.fetch(0);
            }
        }
        CHECK(bench.media->figures().ports_in_use == open.size());
        open.clear();
        CHECK(bench.media->figures().ports_in_use == 0);
        CHECK(bench.media->figures().streams == 0);
    }
    CHECK(entries("/proc/self/fd") == descriptors);
    CHECK(entries("/proc/self/task") == threads);
}

TEST_CASE("orders in any sequence are survived") {
    const char* seed = std::getenv("TRUNKLINE_TEST_SEED");
    std::mt19937 random(seed == nullptr ? 1 : static_cast<unsigned>(std::atoi(seed)));
    const auto directory =
        std::filesystem::temp_directory_path() / ("engine-stress-" + std::to_string(getpid()));
    std::filesystem::create_directory(directory);
    {
        Bench bench(2, 200);
        std::vector<std::shared_ptr<engine::StreamHandle>> streams;
        std::vector<std::shared_ptr<engine::TapHandle>> taps;
        const std::vector<std::uint8_t> audio(3200, 0x33);
        std::uint64_t id = 1'000'000;
        for (int step = 0; step < 6000; ++step) {
            const auto pick = [&](std::size_t size) { return static_cast<std::size_t>(random() % size); };
            if (streams.size() < 4) {
                std::shared_ptr<engine::StreamHandle> made;
                const engine::StreamHandle* near = streams.empty() ? nullptr : streams[0].get();
                // Ports are free again once the engine's thread has had its turn.
                REQUIRE(bench.until([&] { return (made = bench.open(near)) != nullptr; }));
                streams.push_back(std::move(made));
                continue;
            }
            auto& one = *streams[pick(streams.size())];
            auto& other = *streams[pick(streams.size())];
            switch (random() % 16) {
                case 0:
                    if (auto made = bench.open(random() % 2 == 0 ? &one : nullptr)) streams.push_back(made);
                    break;
                case 1:
                    if (streams.size() > 30 || random() % 4 == 0) {
                        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(pick(streams.size())));
                    }
                    break;
                case 2:
                    one.close();
                    break;
                case 3:
                case 4:
                    one.connect(
                        tests::towards(other.udp_port(), random() % 2 == 0 ? dsp::Law::mu : dsp::Law::a));
                    break;
                case 5:
                case 6:
                    one.link(other);
                    break;
                case 7:
                    one.unlink();
                    break;
                case 8:
                    one.play(playback(++id));
                    break;
                case 9:
                    if (random() % 4 == 0) one.pause_playback();
                    if (random() % 4 == 0) one.resume_playback();
                    if (random() % 2 == 0) one.stop_playback();
                    break;
                case 10: {
                    auto text = std::make_unique<engine::DtmfText>();
                    text->digits = "1w#";
                    text->duration_ms = 40;
                    text->gap_ms = 20;
                    one.send_dtmf(std::move(text));
                    break;
                }
                case 11:
                    if (auto tap = one.open_tap({graph::Encoding::l16, random() % 2 == 0 ? 8000U : 16000U})) {
                        taps.push_back(tap);
                    }
                    break;
                case 12:
                    if (!taps.empty()) {
                        auto& tap = *taps[pick(taps.size())];
                        tap.write(audio.data(), 1 + pick(audio.size()));
                        tap.mark(static_cast<std::uint32_t>(++id));
                        if (random() % 8 == 0) tap.clear();
                    }
                    break;
                case 13:
                    if (taps.size() > 10)
                        taps.erase(taps.begin() + static_cast<std::ptrdiff_t>(pick(taps.size())));
                    break;
                case 14: {
                    ++id;
                    engine::RecordingOptions options;
                    options.layout.channels = static_cast<std::uint16_t>(random() % 2 + 1);
                    options.layout.rate_hz = random() % 2 == 0 ? 8000 : 16000;
                    options.pause_as_silence = random() % 2 == 0;
                    one.start_recording(id, (directory / std::to_string(id % 20)).string(), options);
                    break;
                }
                case 15:
                    one.pause_recording(random() % 2 == 0);
                    one.set_media_timeout(static_cast<std::int64_t>(random() % 1000) * 1'000'000, 0);
                    break;
            }
            if (step % 50 == 0) bench.fetch(5);
        }
        CHECK(bench.media->figures().events_dropped == 0);
    }
    std::filesystem::remove_all(directory);
}

TEST_CASE("no datagram does harm") {
    std::mt19937 random(7);
    const auto path = std::filesystem::temp_directory_path() / ("engine-hostile-" + std::to_string(getpid()));
    {
        Bench bench(1, 100);
        tests::Peer peer;
        auto one = bench.open();
        auto other = bench.open(one.get());
        one->connect(tests::towards(peer.udp_port(), dsp::Law::a));
        other->connect(tests::towards(peer.udp_port()));
        one->link(*other);
        auto tap = one->open_tap({graph::Encoding::mulaw, 16000});
        other->start_recording(1, path.string(), {});
        for (int n = 0; n < 20'000; ++n) {
            std::vector<std::uint8_t> bytes(random() % 700);
            for (std::uint8_t& byte : bytes) {
                byte = static_cast<std::uint8_t>(random());
            }
            // Most look like RTP as far as the second byte, some all the way to a plausible number.
            if (!bytes.empty() && n % 8 != 0) bytes[0] = static_cast<std::uint8_t>(0x80 | (bytes[0] & 0x3F));
            if (bytes.size() > 12 && n % 2 == 0) {
                bytes[0] = 0x80;
                bytes[1] = random() % 3 == 0 ? 101 : static_cast<std::uint8_t>(random() % 2 * 8);
                bytes[2] = bytes[8] = bytes[9] = bytes[10] = bytes[11] = 0;
                if (n % 4 == 0) bytes[4] = bytes[5] = 0;
            }
            peer.send_raw(one->udp_port(), bytes);
            if (n % 200 == 0) bench.fetch(1);
        }
        CHECK(one->snapshot().dropped_invalid > 0);
        one->connect(tests::towards(peer.udp_port()));
    }
    std::filesystem::remove(path);
}
