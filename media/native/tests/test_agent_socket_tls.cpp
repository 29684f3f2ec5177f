// The socket to an agent over TLS: the limits and the ends of one without it.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "agent_scene.hpp"

using namespace trunkline;
using tests::AgentScene;
using tests::base64_of;
using tests::ClientFrame;
using tests::lost;
using tests::Messages;
using tests::ms;
using tests::server_frame;
using tests::server_text;

namespace {

std::vector<std::uint8_t> close_frame() {
    return server_frame(0x88, "\x03\xe8");
}

}  // namespace

TEST_CASE("audio and messages go both ways over TLS") {
    AgentScene scene(false, 10, true);
    scene.socket->send("start \x01");
    const auto tap = scene.attach();
    scene.driven.run_for(100 * ms);
    const auto frames = scene.heard();
    REQUIRE(frames.size() >= 5);
    CHECK(frames[0].payload == "start 1");
    CHECK(frames[1].payload == "said 2 1 20 " + base64_of(std::string(320, '\0')));
    scene.socket->learn("<", ">");
    const auto audio = server_text("<" + base64_of(std::string(1600, '\1')) + ">");
    scene.say(audio);
    CHECK(tap->queued_ms() == 100);
    scene.say(server_text("mark"));
    CHECK(scene.messages() == Messages{"1 0 mark"});
}

TEST_CASE("a record in pieces, and many frames in one") {
    AgentScene scene(false, 10, true);
    auto frames = server_text("one");
    const auto two = server_text("two");
    frames.insert(frames.end(), two.begin(), two.end());
    scene.server->say({reinterpret_cast<const char*>(frames.data()), frames.size()});
    for (const std::uint8_t byte : scene.server->output())
        scene.send({byte});
    CHECK(scene.messages() == Messages{"1 0 one", "1 0 two"});
}

TEST_CASE("audio for an agent that does not read is dropped as it is without TLS") {
    std::uint64_t dropped[2];
    for (const bool secure : {false, true}) {
        AgentScene scene(false, 3, secure);
        const auto tap = scene.attach();
        scene.driven.run_for(60'000 * ms);
        dropped[secure ? 1 : 0] = scene.socket->frames_dropped();
        const auto frames = scene.heard();
        for (std::size_t n = 0; n < frames.size(); ++n)
            CHECK(frames[n].payload.rfind("said " + std::to_string(n + 1) + " ", 0) == 0);
        CHECK(scene.socket->frames_sent() == frames.size());
        CHECK(scene.socket->clock_ms() == 20 * (frames.size() + scene.socket->frames_dropped()));
    }
    CHECK(dropped[0] > 1000);
    CHECK(dropped[1] > 1000);
}

TEST_CASE("records that bring nothing are read no faster than frames") {
    AgentScene scene(false, 10, true);
    const auto frame = server_frame(0x81, std::string(900'000, 'x'));
    std::size_t sent = 0;
    std::vector<std::uint8_t> record;
    // One byte in each: the socket takes what it can hold, and what the budget lets the engine read.
    const auto send_some = [&] {
        for (;;) {
            if (record.empty()) {
                scene.server->say({reinterpret_cast<const char*>(&frame[sent]), 1});
                record = scene.server->output();
                ++sent;
            }
            const ssize_t size = ::send(scene.agent, record.data(), record.size(), MSG_NOSIGNAL);
            if (size < 0) return;
            record.erase(record.begin(), record.begin() + size);
        }
    };
    for (int turn = 0; turn < 200; ++turn) {
        send_some();
        scene.driven.run_for(0);
    }
    const std::size_t at_once = sent;
    CHECK(at_once < 50'000);
    for (int turn = 0; turn < 100; ++turn) {
        send_some();
        scene.driven.run_for(10 * ms);
    }
    // A second more: some 4,096 records for each 50 ms, and a read beyond.
    CHECK(sent - at_once > 20'000);
    CHECK(sent - at_once < 200'000);
}

TEST_CASE("a clean end over TLS tells its end when the agent has told its own") {
    AgentScene scene(false, 10, true);
    scene.socket->finish("stop \x01");
    scene.socket->close(1000, "");
    scene.socket->disconnect(false);
    CHECK(scene.heard().size() == 2);
    CHECK(!scene.ended);
    CHECK((SSL_get_shutdown(scene.server->ssl) & SSL_RECEIVED_SHUTDOWN) == 0);
    scene.say(close_frame());
    CHECK(scene.messages() == Messages{"4 1000 "});
    scene.socket->disconnect(false);
    CHECK(scene.heard().empty());
    CHECK(scene.ended);
    CHECK((SSL_get_shutdown(scene.server->ssl) & SSL_RECEIVED_SHUTDOWN) != 0);
    ::close(std::exchange(scene.agent, -1));
    CHECK(scene.messages() == Messages{lost});
}

TEST_CASE("the end of TLS and what is none of it end the connection, behind what was said") {
    for (const bool garbage : {false, true}) {
        CAPTURE(garbage);
        AgentScene scene(false, 10, true);
        scene.server->say({"\x81\x02hi", 4});
        auto bytes = scene.server->output();
        SSL_shutdown(scene.server->ssl);
        const auto last = garbage ? std::vector<std::uint8_t>(40, 0x17) : scene.server->output();
        bytes.insert(bytes.end(), last.begin(), last.end());
        scene.send(bytes);
        CHECK(scene.messages() == Messages{"1 0 hi", lost});
        scene.socket->send("x");
        scene.socket->disconnect(false);
        scene.driven.run_for(100 * ms);
        CHECK(scene.messages().empty());
    }
}

TEST_CASE("the end of TLS waits for what was said before it, and must wait itself") {
    AgentScene scene(false, 10, true);
    const auto tap = scene.attach();
    scene.socket->learn("<", ">");
    // Audio waits until the message before it was handled, and the close frame behind it.
    auto frames = server_text("mark");
    for (const auto& next : {server_text("<" + base64_of(std::string(1600, '\1')) + ">"), close_frame()})
        frames.insert(frames.end(), next.begin(), next.end());
    scene.server->say({reinterpret_cast<const char*>(frames.data()), frames.size()});
    SSL_shutdown(scene.server->ssl);
    scene.send(scene.server->output());
    CHECK(scene.messages() == Messages{"1 0 mark"});
    scene.socket->handled(0);
    CHECK(scene.messages() == Messages{"4 1000 ", lost});
    CHECK(tap->queued_ms() == 100);
}

TEST_CASE("TLS that has ended when the engine gets it is a connection that has") {
    tests::Driven driven;
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const tls::Context trusting(tests::certificate);
    auto client = std::make_unique<tls::Client>(trusting, "bot.test");
    client->receive(std::vector<std::uint8_t>(40, 0x17));
    const auto socket = driven.media->open_agent_socket(nullptr, ends[0], std::move(client), {}, {});
    driven.run_for(0);
    util::Node* const messages = driven.media->take_messages();
    REQUIRE(messages != nullptr);
    CHECK(static_cast<const engine::AgentMessage*>(messages)->kind == websocket::MessageKind::lost);
    util::NodeStack::destroy(messages);
    ::close(ends[1]);
}
