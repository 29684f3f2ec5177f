// The writing end of a WebSocket: frames, numbers, and what waits while the socket is full.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trunkline/websocket/outbound.hpp"
#include "websocket_peer.hpp"

using namespace trunkline;
using namespace trunkline::websocket;
using tests::client_frames;
using tests::ClientFrame;

namespace {

class Writer final : private OutboundListener {
  public:
    explicit Writer(std::size_t max_frames = 10, bool binary = false)
        : outbound({binary, 2, max_frames, 20, 0xd5}, figures, *this) {
        FrameTemplate said("a\x01:\x02:\x03:\x04");
        FrameTemplate heard("b\x01:\x02:\x03:\x04");
        outbound.set_template(Track::inbound, said);
        outbound.set_template(Track::outbound, heard);
    }

    void audio(Track track = Track::inbound) {
        const std::uint8_t frame[] = {1, 2};
        outbound.audio(track, frame);
    }

    bool control(std::string text) {
        auto* frame = new ControlFrame;
        frame->text = FrameTemplate(std::move(text));
        return outbound.control(frame);
    }

    /// Have the socket take up to so many bytes; returns the frames that came through.
    std::vector<std::string> take(std::size_t most = 1 << 30) {
        while (!outbound.output().empty() && most > 0) {
            const auto output = outbound.output();
            const std::size_t size = std::min(most, output.size());
            received.insert(received.end(), output.begin(),
                            output.begin() + static_cast<std::ptrdiff_t>(size));
            outbound.sent(size);
            most -= size;
        }
        if (!outbound.output().empty()) outbound.blocked();
        std::vector<std::string> texts;
        for (const ClientFrame& frame : client_frames(received))
            texts.push_back(static_cast<int>(frame.opcode) == 1
                                ? frame.payload
                                : std::to_string(static_cast<int>(frame.opcode)) + " " + frame.payload);
        return texts;
    }

    /// Fill the socket: it takes nothing until `take`.
    void fill() {
        control(std::string(Outbound::high_water_bytes, 'f'));
        outbound.blocked();
    }

    std::uint32_t mask_key() override { return key += 0x9e3779b9; }
    std::span<const std::uint8_t> coded(std::span<const std::uint8_t> frame) override {
        if (!codes) return frame;
        coded_frames.push_back(frame[0]);
        // The first of them is kept back, as a filter does.
        return coded_frames.size() == 1 ? std::span<const std::uint8_t>{} : frame.first(1);
    }
    void spent(util::Node* node) override {
        ++spent_frames;
        delete node;
    }

    OutboundFigures figures;
    Outbound outbound;
    std::vector<std::uint8_t> received;
    std::uint32_t key = 1;
    int spent_frames = 0;
    bool codes = false;
    std::vector<std::uint8_t> coded_frames;
};

using Texts = std::vector<std::string>;
const std::string filling(Outbound::high_water_bytes, 'f');

}  // namespace

TEST_CASE("frames are numbered as they are written, in one count for all") {
    Writer writer;
    writer.outbound.set_origin(1000);
    writer.control("start \x01");
    writer.audio();
    writer.audio(Track::outbound);
    writer.control("mark \x01");
    writer.control("no number");
    writer.audio();
    writer.control("at \x03");
    CHECK(writer.take() == Texts{"start 1", "a2:1:1020:AQI=", "b3:1:1020:AQI=", "mark 4", "no number",
                                 "a5:2:1040:AQI=", "at 1040"});
    CHECK(writer.figures.frames_sent.get() == 3);
    CHECK(writer.figures.frames_dropped.get() == 0);
    CHECK(writer.figures.clock_ms.get() == 40);
    CHECK(writer.spent_frames == 4);
}

TEST_CASE("binary audio is the frame") {
    Writer writer(10, true);
    writer.audio();
    CHECK(writer.take() == Texts{"2 \x01\x02"});
}

TEST_CASE("audio is coded as it is written, so that what is dropped leaves nothing behind") {
    Writer writer(2);
    writer.codes = true;
    writer.audio();
    CHECK(writer.take().empty());
    writer.audio();
    CHECK(writer.take() == Texts{"a1:1:40:AQ=="});
    writer.fill();
    for (int n = 0; n < 4; ++n)
        writer.audio();
    CHECK(writer.coded_frames.size() == 2);
    CHECK(writer.take() == Texts{filling, "a2:2:100:AQ==", "a3:3:120:AQ=="});
    CHECK(writer.coded_frames.size() == 4);
    writer.outbound.listen(Listening::silence);
    writer.audio();
    CHECK(writer.coded_frames.back() == 0xd5);
    CHECK(writer.figures.frames_dropped.get() == 2);
}

TEST_CASE("audio that is not wanted is left out or silent, and its time goes on") {
    Writer writer;
    writer.audio();
    writer.outbound.listen(Listening::nothing);
    writer.audio();
    writer.outbound.listen(Listening::silence);
    writer.audio();
    writer.outbound.listen(Listening::all);
    writer.audio();
    CHECK(writer.take() == Texts{"a1:1:20:AQI=", "a2:2:60:1dU=", "a3:3:80:AQI="});
    CHECK(writer.figures.frames_sent.get() == 3);
}

TEST_CASE("the oldest audio is dropped and other frames are kept, without a gap in the numbers") {
    Writer writer(3);
    writer.fill();
    for (int n = 0; n < 6; ++n) {
        writer.audio();
        CHECK(writer.control("c\x01"));
    }
    writer.outbound.pong(std::vector<std::uint8_t>{'1'});
    writer.outbound.pong(std::vector<std::uint8_t>{'2'});
    CHECK(writer.take() == Texts{filling, "10 2", "c1", "c2", "c3", "c4", "c5", "c6",
                                 "a7:1:80:AQI=", "a8:2:100:AQI=", "a9:3:120:AQI="});
    CHECK(writer.figures.frames_sent.get() == 3);
    CHECK(writer.figures.frames_dropped.get() == 3);
}

TEST_CASE("a socket that fills up again keeps the order") {
    Writer writer(500);
    writer.fill();
    for (int n = 0; n < 400; ++n)
        writer.audio();
    Texts texts;
    for (int round = 0; texts.size() < 401 && round < 1000; ++round) {
        for (auto& text : writer.take(700))
            texts.push_back(std::move(text));
        // One more, which must come last.
        if (round == 3) writer.audio();
    }
    for (auto& text : writer.take())
        texts.push_back(std::move(text));
    REQUIRE(texts.size() == 402);
    for (std::size_t n = 1; n < texts.size(); ++n)
        CHECK(texts[n].rfind("a" + std::to_string(n) + ":" + std::to_string(n) + ":", 0) == 0);
}

TEST_CASE("a socket that takes part of a frame gets the rest of it") {
    Writer writer;
    writer.audio();
    writer.control("c\x01");
    Texts texts;
    while (!writer.outbound.output().empty()) {
        for (auto& text : writer.take(1))
            texts.push_back(std::move(text));
    }
    CHECK(texts == Texts{"a1:1:20:AQI=", "c2"});
}

TEST_CASE("other frames are bounded") {
    Writer writer;
    writer.fill();
    int kept = 0;
    while (writer.control(std::string(1000, 'x')))
        ++kept;
    CHECK(kept > 200);
    CHECK(kept < 300);
}

TEST_CASE("the end takes other frames along but no audio, and nothing follows it") {
    Writer writer;
    writer.fill();
    writer.audio();
    writer.control("c\x01");
    auto* last = new ControlFrame;
    last->text = FrameTemplate("stop \x01");
    writer.outbound.finish(last);
    writer.outbound.close(4408, "no pong");
    writer.audio();
    writer.control("late");
    writer.outbound.ping();
    writer.outbound.pong({});
    CHECK(writer.take() == Texts{filling, "c1", "stop 2", "8 \x11\x38no pong"});
    CHECK(writer.figures.frames_dropped.get() == 1);
    CHECK(writer.figures.frames_sent.get() == 0);
    CHECK(writer.spent_frames == 4);
}

TEST_CASE("without a queue, audio for a full socket is dropped") {
    Writer writer(0);
    writer.fill();
    writer.audio();
    CHECK(writer.take() == Texts{filling});
    CHECK(writer.figures.frames_dropped.get() == 1);
}

TEST_CASE("a connection that is lost has no output, and frees what waited") {
    Writer writer;
    writer.fill();
    writer.audio();
    writer.control("c\x01");
    writer.outbound.drop();
    CHECK(writer.outbound.output().empty());
    CHECK(writer.spent_frames == 2);
    writer.control("late");
    CHECK(writer.outbound.output().empty());
    CHECK(writer.spent_frames == 3);
}

TEST_CASE("no two masks are the same") {
    Writer writer;
    writer.audio();
    const std::vector<std::uint8_t> first(writer.outbound.output().begin(), writer.outbound.output().end());
    CHECK(first.size() > 8);
    Writer other;
    other.key = 77;
    other.audio();
    const std::vector<std::uint8_t> second(other.outbound.output().begin(), other.outbound.output().end());
    CHECK(first.size() == second.size());
    CHECK(!std::equal(first.begin() + 2, first.end(), second.begin() + 2));
}
