// Listeners that hand frames to the control thread, beside whatever else is done with a stream.

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <stdexcept>

#include "far_end.hpp"
#include "support.hpp"
#include "trunkline/engine/frame_listener.hpp"
#include "trunkline/engine/tap_handle.hpp"

using namespace trunkline;
using codec::Codec;
using codec::Format;
using tests::Bench;
using tests::FarEnd;
using tests::Metronome;

namespace {

constexpr Format pcmu{Codec::pcmu, 8000};
constexpr double amplitude = 8000;

using Frames = std::map<std::uint64_t, std::vector<std::vector<std::int16_t>>>;

/// Take what the listeners have handed out, by their number.
void take(Bench& bench, Frames& frames) {
    while (const auto frame = bench.media->front_frame()) {
        std::vector<std::int16_t> samples(frame->bytes.size() / 2);
        std::memcpy(samples.data(), frame->bytes.data(), frame->bytes.size());
        frames[frame->tag].push_back(samples);
        bench.media->release_frame();
    }
}

/// Let a far end say a tone of 1 kHz for so many packets of 20 ms.
void speak(FarEnd& far, engine::StreamHandle& stream, int packets) {
    const auto sound = tests::tone(1000, 8000, 160, amplitude);
    Metronome metronome(20);
    for (int n = 0; n < packets; ++n) {
        far.speak(stream.udp_port(), sound);
        metronome.wait();
    }
}

double loudness(const std::vector<std::int16_t>& frame, std::uint32_t rate_hz) {
    return tests::amplitude_at(std::span(frame), 1000, rate_hz);
}

}  // namespace

TEST_CASE("frame listener: several hear a stream beside its tap, each at its rate") {
    Bench bench;
    FarEnd far(pcmu);
    auto stream = bench.open();
    stream->connect(far.settings());
    auto tap = stream->open_tap({graph::Encoding::l16, 8000});
    auto narrow = stream->listen(8000);
    auto wide = stream->listen(16000);
    speak(far, *stream, 40);
    Frames frames;
    take(bench, frames);
    REQUIRE(frames[narrow->id()].size() >= 5);
    REQUIRE(frames[wide->id()].size() >= 5);
    CHECK(frames[tap->id()].size() > 25);
    CHECK(frames[narrow->id()].back().size() == 800);
    CHECK(frames[wide->id()].back().size() == 1600);
    CHECK(loudness(frames[narrow->id()].back(), 8000) > 6000);
    CHECK(loudness(frames[wide->id()].back(), 16000) > 6000);
}

TEST_CASE("frame listener: packets between linked streams stay as they are") {
    Bench bench;
    FarEnd left(pcmu);
    FarEnd right(pcmu);
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(left.settings());
    b->connect(right.settings());
    a->link(*b);
    auto listener = a->listen(8000);
    speak(left, *a, 25);
    Frames frames;
    take(bench, frames);
    right.listen();
    CHECK(frames[listener->id()].size() >= 2);
    CHECK(right.headers.size() == 25);
    // Nothing of ours was sent to the one that only listens.
    left.listen();
    CHECK(left.headers.empty());
}

TEST_CASE("frame listener: a muted far end is silent") {
    Bench bench;
    FarEnd far(pcmu);
    auto stream = bench.open();
    stream->connect(far.settings());
    stream->mute(true, false);
    auto listener = stream->listen(8000);
    speak(far, *stream, 25);
    Frames frames;
    take(bench, frames);
    REQUIRE(frames[listener->id()].size() >= 2);
    for (const auto& frame : frames[listener->id()]) {
        CHECK(loudness(frame, 8000) == 0);
    }
}

TEST_CASE("frame listener: none hears after its end, nor that of the stream") {
    Bench bench;
    FarEnd far(pcmu);
    auto stream = bench.open();
    stream->connect(far.settings());
    auto first = stream->listen(8000);
    auto second = stream->listen(8000);
    speak(far, *stream, 15);
    first->close();
    first->close();
    Frames before;
    take(bench, before);
    speak(far, *stream, 15);
    Frames after;
    take(bench, after);
    CHECK(after[second->id()].size() >= 2);
    CHECK(after[first->id()].size() <= 1);  // Its last one was under way.
    stream->close();
    second->close();
    CHECK(stream->listen(8000) == nullptr);
}

TEST_CASE("frame listener: other rates are refused") {
    Bench bench;
    CHECK_THROWS_AS(bench.open()->listen(44100), std::invalid_argument);
}
