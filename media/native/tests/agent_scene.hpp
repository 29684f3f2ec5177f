#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driven.hpp"
#include "tls_peer.hpp"
#include "trunkline/engine/agent_socket_handle.hpp"
#include "trunkline/engine/tap_handle.hpp"
#include "trunkline/text/base64.hpp"
#include "websocket_peer.hpp"

namespace trunkline::tests {

inline std::string base64_of(const std::string& bytes) {
    std::string out(text::base64_size(bytes.size()), ' ');
    text::to_base64({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, out.data());
    return out;
}

/// A driven engine with a stream, and a socket to an agent whose other end is the test's.
struct AgentScene {
    explicit AgentScene(bool binary = false, std::size_t max_frames = 10, bool secure = false) {
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
        agent = ends[1];
        stream = driven.media->open_stream(nullptr);
        stream->connect(towards(peer.udp_port()));
        auto tls = secure ? open_tls() : nullptr;
        engine::AgentSocketSettings settings;
        settings.audio.binary = binary;
        settings.audio.max_frames = max_frames;
        socket = driven.media->open_agent_socket(stream.get(), ends[0], std::move(tls), {}, settings);
        socket->set_templates("said \x01 \x02 \x03 \x04", "heard \x01 \x02 \x03 \x04", 0);
    }
    ~AgentScene() {
        if (agent >= 0) ::close(agent);
    }

    std::shared_ptr<engine::TapHandle> attach(bool both = false) {
        auto tap = stream->open_tap({graph::Encoding::l16, 8000}, both);
        CHECK(socket->attach(*tap));
        return tap;
    }

    /// The client's end of TLS, after the handshake with the agent's.
    std::unique_ptr<tls::Client> open_tls() {
        const tls::Context trusting(certificate);
        auto client = std::make_unique<tls::Client>(trusting, "bot.test");
        server = std::make_unique<TlsServer>();
        shake_hands(*client, *server);
        REQUIRE(client->state() == tls::State::open);
        return client;
    }

    void say(const std::vector<std::uint8_t>& bytes) {
        if (server == nullptr) {
            send(bytes);
            return;
        }
        server->say({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        send(server->output());
    }

    /// Send bytes as they are, below TLS.
    void send(const std::vector<std::uint8_t>& bytes) {
        REQUIRE(::send(agent, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
        driven.run_for(0);
    }

    /// The frames that have come to the agent.
    std::vector<ClientFrame> heard() {
        driven.run_for(0);
        std::uint8_t room[65536];
        ssize_t size = 0;
        while ((size = ::recv(agent, room, sizeof room, 0)) > 0) {
            take(std::span(room).first(static_cast<std::size_t>(size)));
            driven.run_for(0);
        }
        ended = size == 0;
        return client_frames(received);
    }

    void take(std::span<const std::uint8_t> bytes) {
        if (server == nullptr) {
            received.insert(received.end(), bytes.begin(), bytes.end());
            return;
        }
        const std::string said = server->receive(bytes);
        received.insert(received.end(), said.begin(), said.end());
    }

    /// The messages that have come from it, as kind, code and text.
    std::vector<std::string> messages() {
        driven.run_for(0);
        driven.media->acknowledge();
        std::vector<std::string> found;
        util::Node* const first = driven.media->take_messages();
        for (const util::Node* node = first; node != nullptr; node = node->next_node) {
            const auto& message = static_cast<const engine::AgentMessage&>(*node);
            CHECK(message.socket == socket->id());
            audio_bytes += message.audio_bytes;
            found.push_back(std::to_string(static_cast<int>(message.kind)) + " " +
                            std::to_string(message.code) + " " +
                            std::string(message.bytes.begin(), message.bytes.end()));
        }
        util::NodeStack::destroy(first);
        return found;
    }

    Driven driven;
    Peer peer;
    int agent = -1;
    std::shared_ptr<engine::StreamHandle> stream;
    std::shared_ptr<engine::AgentSocketHandle> socket;
    std::unique_ptr<TlsServer> server;
    std::vector<std::uint8_t> received;
    std::uint64_t audio_bytes = 0;  ///< That the messages say were played before them.
    bool ended = false;
};

using Messages = std::vector<std::string>;

inline const std::string lost = "8 0 ";

}  // namespace trunkline::tests
