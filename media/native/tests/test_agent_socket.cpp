// The socket to an agent on a driven engine: audio both ways, order, and every way to an end.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent_scene.hpp"
#include "trunkline/dsp/resampler.hpp"

using namespace trunkline;
using engine::AgentMessage;
using engine::EventKind;
using tests::AgentScene;
using tests::base64_of;
using tests::ClientFrame;
using tests::lost;
using tests::Messages;
using tests::ms;
using tests::Peer;
using tests::server_frame;
using tests::server_text;
using tests::towards;
using websocket::MessageKind;

TEST_CASE("a tap's audio goes to the agent, numbered with the other frames") {
    AgentScene scene;
    scene.socket->send("start \x01");
    const auto tap = scene.attach();
    scene.driven.run_for(100 * ms);
    scene.socket->send("mark \x01");
    const auto frames = scene.heard();
    REQUIRE(frames.size() >= 6);
    CHECK(frames.front().payload == "start 1");
    const std::string silence = base64_of(std::string(320, '\0'));
    for (std::size_t n = 1; n + 1 < frames.size(); ++n) {
        const std::string number = std::to_string(n);
        CHECK(frames[n].payload ==
              "said " + std::to_string(n + 1) + " " + number + " " + std::to_string(20 * n) + " " + silence);
    }
    CHECK(frames.back().payload == "mark " + std::to_string(frames.size()));
    CHECK(scene.socket->frames_sent() == frames.size() - 2);
    CHECK(scene.socket->clock_ms() == 20 * (frames.size() - 2));
    // None of it takes the way through the control thread.
    CHECK(!scene.driven.media->front_frame());
}

TEST_CASE("both tracks go to the agent in turn") {
    AgentScene scene;
    const auto tap = scene.attach(true);
    scene.driven.run_for(100 * ms);
    const auto frames = scene.heard();
    REQUIRE(frames.size() >= 8);
    for (std::size_t n = 0; n < frames.size(); ++n)
        CHECK(frames[n].payload.rfind(n % 2 == 0 ? "said " : "heard ", 0) == 0);
}

TEST_CASE("binary audio goes both ways") {
    AgentScene scene(true);
    const auto tap = scene.attach();
    scene.socket->learn("", "");
    scene.driven.run_for(60 * ms);
    const auto frames = scene.heard();
    REQUIRE(!frames.empty());
    CHECK(frames[0] == ClientFrame{websocket::Opcode::binary, std::string(320, '\0')});
    scene.say(server_frame(0x82, std::string(3200, '\1')));
    CHECK(tap->queued_ms() == 200);
    CHECK(scene.messages().empty());
    scene.say(server_frame(0x82, std::string(3, '\1')));
    CHECK(scene.messages() == Messages{"2 0 \1\1\1"});
}

TEST_CASE("learned audio is played, and a mark stands between the audio before and behind it") {
    AgentScene scene;
    const auto tap = scene.attach();
    const auto audio = server_text("<" + base64_of(std::string(1600, '\1')) + ">");
    scene.say(audio);
    CHECK(scene.messages().size() == 1);
    CHECK(tap->queued_ms() == 0);
    scene.socket->learn("<", ">");
    scene.socket->handled(0);
    scene.say(audio);
    scene.say(server_text("mark"));
    scene.say(audio);
    CHECK(scene.messages() == Messages{"1 0 mark"});
    CHECK(tap->queued_ms() == 100);
    tap->mark(7);
    scene.socket->handled(0);
    scene.driven.run_for(0);
    CHECK(tap->queued_ms() == 200);
    std::uint64_t played_ms = 0;
    for (int n = 0; n < 100 && played_ms == 0; ++n) {
        scene.driven.run_for(5 * ms);
        for (const EventKind kind : scene.driven.events())
            if (kind == EventKind::mark_reached) played_ms = tap->played_ms();
    }
    CHECK(played_ms >= 100);
    CHECK(played_ms <= 120);
}

TEST_CASE("what the queue has no room for is dropped and reported once") {
    AgentScene scene(true);
    const auto tap = scene.attach();
    scene.socket->learn("", "");
    const std::string second(16'000, '\1');
    int overflows = 0;
    for (int n = 0; n < 130; ++n) {
        scene.say(server_frame(0x82, second));
        // Reading may pause after so much; the clock goes on until it has ended.
        scene.driven.run_for(n % 20 == 19 ? 60 * ms : 0);
        for (const EventKind kind : scene.driven.events())
            overflows += kind == EventKind::playout_overflow ? 1 : 0;
    }
    CHECK(overflows == 1);
    CHECK(tap->queued_ms() > 119'000);
    CHECK(tap->queued_ms() <= 120'000);
    CHECK(tap->refused_ms() > 8'000);
    tap->clear();
    scene.driven.run_for(0);
    CHECK(tap->queued_ms() == 0);
    scene.say(server_frame(0x82, second));
    CHECK(tap->queued_ms() == 1000);
}

TEST_CASE("audio for an agent that does not read is dropped, and comes back fresh") {
    AgentScene scene(false, 3);
    const auto tap = scene.attach();
    scene.driven.run_for(60'000 * ms);
    CHECK(scene.socket->frames_dropped() > 1000);
    const auto frames = scene.heard();
    for (std::size_t n = 0; n < frames.size(); ++n)
        CHECK(frames[n].payload.rfind("said " + std::to_string(n + 1) + " ", 0) == 0);
    CHECK(scene.socket->frames_sent() == frames.size());
    CHECK(scene.socket->clock_ms() == 20 * (frames.size() + scene.socket->frames_dropped()));
    CHECK(frames.back().payload.find(" " + std::to_string(scene.socket->clock_ms()) + " ") !=
          std::string::npos);
}

TEST_CASE("an agent that does not read while it is told much is reported once") {
    AgentScene scene;
    for (int n = 0; n < 2000; ++n)
        scene.socket->send(std::string(1000, 'x'));
    CHECK(scene.messages() == Messages{"7 0 "});
}

TEST_CASE("a ping of the agent is answered, and a pong of it reported") {
    AgentScene scene;
    scene.socket->ping();
    CHECK(scene.heard() == std::vector<ClientFrame>{{websocket::Opcode::ping, ""}});
    scene.say(server_frame(0x8a, ""));
    scene.say(server_frame(0x89, "now"));
    CHECK(scene.messages() == Messages{"3 0 "});
    CHECK(scene.heard() == std::vector<ClientFrame>{{websocket::Opcode::pong, "now"}});
}

TEST_CASE("an agent that says goodbye and hangs up at once is heard to the end") {
    AgentScene scene;
    const auto tap = scene.attach();
    scene.socket->learn("<", ">");
    auto bytes = server_text("<" + base64_of(std::string(1600, '\1')) + ">");
    const auto close = server_frame(0x88, "\x03\xe8");
    bytes.insert(bytes.end(), close.begin(), close.end());
    REQUIRE(::send(scene.agent, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    ::close(std::exchange(scene.agent, -1));
    CHECK(scene.messages() == Messages{"4 1000 ", lost});
    CHECK(tap->queued_ms() == 100);
}

TEST_CASE("a connection that breaks is reported once, and everything later is harmless") {
    AgentScene scene;
    const auto tap = scene.attach();
    ::close(std::exchange(scene.agent, -1));
    CHECK(scene.messages() == Messages{lost});
    scene.socket->send("x");
    scene.socket->ping();
    scene.socket->close(1000, "");
    scene.socket->disconnect(false);
    scene.socket->disconnect(true);
    scene.socket->handled(0);
    scene.driven.run_for(100 * ms);
    CHECK(scene.messages().empty());
    scene.socket->release();
    scene.socket->release();
    CHECK(!scene.socket->attach(*tap));
    scene.driven.run_for(100 * ms);
    CHECK(scene.messages().empty());
}

TEST_CASE("a clean end sends all, and waits for the agent to close its side") {
    AgentScene scene;
    scene.socket->send("waits");
    scene.socket->finish("stop \x01");
    scene.socket->close(1000, "bye");
    scene.socket->disconnect(false);
    const auto frames = scene.heard();
    REQUIRE(frames.size() == 3);
    CHECK(frames[1].payload == "stop 1");
    CHECK(frames[2] == ClientFrame{websocket::Opcode::close,
                                   "\x03\xe8"
                                   "bye"});
    CHECK(scene.ended);
    scene.say(server_text("late"));
    CHECK(scene.messages().empty());
    ::close(std::exchange(scene.agent, -1));
    CHECK(scene.messages() == Messages{lost});
}

TEST_CASE("an end at once waits for nothing") {
    AgentScene scene;
    scene.socket->disconnect(true);
    CHECK(scene.messages() == Messages{lost});
    CHECK(scene.heard().empty());
    CHECK(scene.ended);
}

TEST_CASE("tap and socket end in any order, and the tap can join another socket") {
    for (const bool tap_first : {true, false}) {
        CAPTURE(tap_first);
        AgentScene scene;
        auto tap = scene.attach();
        scene.driven.run_for(40 * ms);
        CHECK(!scene.heard().empty());
        if (tap_first) {
            tap->close();
            scene.driven.run_for(40 * ms);
            CHECK(scene.heard().empty());
            scene.socket->learn("", "");
            scene.say(server_frame(0x82, "ab"));
            CHECK(scene.messages() == Messages{"2 0 ab"});
            tap = scene.attach();
            scene.driven.run_for(40 * ms);
            CHECK(!scene.heard().empty());
        } else {
            scene.socket->release();
            scene.driven.run_for(40 * ms);
            // Frames go to the control thread again.
            CHECK(scene.driven.media->front_frame().has_value());
        }
    }
}

TEST_CASE("a tap of another format is not joined") {
    AgentScene scene;
    const auto tap = scene.stream->open_tap({graph::Encoding::l16, 16000});
    CHECK_THROWS_AS(scene.socket->attach(*tap), std::invalid_argument);
    CHECK_THROWS_AS(scene.socket->audio(websocket::Track::inbound, std::vector<std::uint8_t>(319)),
                    std::invalid_argument);
}

TEST_CASE("a tap has one socket, the last that it was joined to") {
    AgentScene scene;
    const auto tap = scene.attach();
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const auto other = scene.driven.media->open_agent_socket(scene.stream.get(), ends[0], nullptr, {}, {});
    CHECK(other->attach(*tap));
    scene.driven.run_for(40 * ms);
    scene.heard();
    scene.driven.run_for(40 * ms);
    CHECK(scene.heard().empty());
    CHECK(other->frames_sent() > 0);
    ::close(ends[1]);
}

TEST_CASE("bytes behind the handshake come first") {
    tests::Driven driven;
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const auto first = server_text("first");
    const auto second = server_text("second");
    REQUIRE(::send(ends[1], second.data(), second.size(), 0) > 0);
    const auto socket = driven.media->open_agent_socket(nullptr, ends[0], nullptr, first, {});
    driven.run_for(0);
    std::vector<std::string> texts;
    util::Node* const messages = driven.media->take_messages();
    for (const util::Node* node = messages; node != nullptr; node = node->next_node) {
        const auto& bytes = static_cast<const AgentMessage&>(*node).bytes;
        texts.emplace_back(bytes.begin(), bytes.end());
    }
    util::NodeStack::destroy(messages);
    CHECK(texts == std::vector<std::string>{"first", "second"});
    ::close(ends[1]);
}

TEST_CASE("an engine with threads carries an agent's audio too") {
    const auto media = engine::Engine::create(
        {"127.0.0.1", tests::first_port(), static_cast<std::uint16_t>(tests::first_port() + 99), 2, 0});
    Peer peer;
    const auto stream = media->open_stream(nullptr);
    stream->connect(towards(peer.udp_port()));
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const auto socket = media->open_agent_socket(stream.get(), ends[0], nullptr, {}, {});
    socket->set_templates("\x01 \x04", "", 0);
    const auto tap = stream->open_tap({graph::Encoding::l16, 8000});
    REQUIRE(socket->attach(*tap));
    // A tap of another thread cannot be joined.
    std::shared_ptr<engine::StreamHandle> apart = media->open_stream(nullptr);
    const auto far = apart->open_tap({graph::Encoding::l16, 8000});
    CHECK(!socket->attach(*far));
    std::vector<std::uint8_t> received;
    std::vector<ClientFrame> frames;
    while (frames.size() < 5) {
        std::uint8_t room[4096];
        const ssize_t size = ::recv(ends[1], room, sizeof room, 0);
        REQUIRE(size > 0);
        received.insert(received.end(), room, room + size);
        for (auto& frame : tests::client_frames(received))
            frames.push_back(std::move(frame));
    }
    CHECK(frames[4].payload.rfind("5 ", 0) == 0);
    media->close();
    ::close(ends[1]);
}

namespace {

engine::LearnedEvent described(std::shared_ptr<graph::AudioConverter> converter = nullptr,
                               bool whole = false) {
    using Kind = websocket::AudioEvent::Kind;
    const std::vector<websocket::AudioEvent::Member> members{{"/a", Kind::audio, "", 0},
                                                             {"/n", Kind::equal, "1", 0}};
    return {std::make_unique<websocket::AudioEvent>(members, false), std::move(converter), whole};
}

std::vector<std::uint8_t> event_of(std::size_t bytes) {
    return server_text(R"({"id":"x","n":1,"a":")" + base64_of(std::string(bytes, '\1')) + "\"}");
}

}  // namespace

TEST_CASE("the message behind audio that was played says how much it was") {
    AgentScene scene;
    const auto tap = scene.attach();
    scene.socket->learn(described());
    scene.say(event_of(1600));
    scene.say(event_of(320));
    CHECK(scene.messages().empty());
    CHECK(tap->queued_ms() == 120);
    scene.say(server_text("cut"));
    CHECK(scene.messages() == Messages{"1 0 cut"});
    CHECK(scene.audio_bytes == 1920);
    // What follows waits, and is another's then.
    scene.say(event_of(1600));
    scene.socket->unlearn();
    scene.socket->handled(0);
    CHECK(scene.messages().size() == 1);
    CHECK(scene.audio_bytes == 1920);
    CHECK(tap->queued_ms() == 120);
    scene.socket->handled(0);
    scene.socket->learn(described());
    scene.say(event_of(3));
    CHECK(scene.messages().size() == 1);
    CHECK(scene.audio_bytes == 1920);
}

TEST_CASE("audio of another format is converted both ways, and what is dropped is no command") {
    if (!dsp::can_resample(24'000, 8000)) return;
    const graph::AudioFormat ours{graph::Encoding::l16, 8000}, theirs{graph::Encoding::l16, 24'000};
    AgentScene scene(false, 2);
    const auto tap = scene.attach();
    auto shared = std::make_shared<graph::AudioConverter>(theirs, ours);
    scene.socket->learn(described(shared));
    scene.say(event_of(4800));
    CHECK(scene.messages().empty());
    CHECK(tap->queued_ms() == 90);
    // The control thread goes on where the engine stopped.
    scene.say(server_text("over"));
    CHECK(scene.messages() == Messages{"1 0 over"});
    CHECK(scene.audio_bytes == 4800);
    CHECK(shared->flush().size() == 160);
    scene.socket->learn(described(shared, true));
    scene.socket->handled(0);
    scene.say(event_of(4800));
    CHECK(tap->queued_ms() == 190);
    // More than others of the thread could wait for.
    scene.say(event_of(48'000));
    CHECK(scene.messages().size() == 1);
    scene.socket->handled(0);
    scene.say(event_of(1));
    CHECK(scene.messages().size() == 1);
    CHECK(tap->queued_ms() == 190);

    scene.socket->convert(
        std::make_shared<graph::AudioConverter>(ours, graph::AudioFormat{graph::Encoding::mulaw, 8000}));
    scene.driven.run_for(60 * ms);
    const auto frames = scene.heard();
    REQUIRE(!frames.empty());
    CHECK(frames.back().payload.ends_with(" " + base64_of(std::string(160, '\xff'))));
    const std::string half(512 * 1024, 'x');
    scene.socket->send(half);
    scene.driven.run_for(1000 * ms);
    CHECK(scene.socket->frames_dropped() > 10);
    CHECK(scene.socket->frames_sent() < 20);
}
