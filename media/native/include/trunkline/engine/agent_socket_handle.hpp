#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "trunkline/engine/agent_socket.hpp"
#include "trunkline/engine/command.hpp"
#include "trunkline/engine/shard.hpp"

namespace trunkline::engine {

class Engine;
class TapHandle;

/// The control thread's hold on the socket to an agent. All methods are harmless after `release`.
class AgentSocketHandle {
  public:
    AgentSocketHandle(std::shared_ptr<Engine> engine, Shard& shard, AgentSocket* socket, std::uint64_t id)
        : engine_(std::move(engine)), shard_(&shard), socket_(socket), id_(id) {}
    AgentSocketHandle(const AgentSocketHandle&) = delete;
    AgentSocketHandle& operator=(const AgentSocketHandle&) = delete;
    ~AgentSocketHandle() { release(); }

    std::uint64_t id() const { return id_; }
    bool open() const { return socket_ != nullptr; }

    /// Join it to a tap. False if that cannot be, because the tap is of another shard or closed: then audio
    /// must pass through `audio` and `TapHandle::write`. Throws `std::invalid_argument` for another format.
    bool attach(TapHandle& tap);

    /// How to write the audio of each track, in all text dialects, and the time its clock begins at, in ms.
    void set_templates(std::string inbound, std::string outbound, std::uint64_t origin_ms);

    /// See `websocket::Inbound::learn`; `unlearn` undoes it.
    void learn(std::string before, std::string after);
    void learn(LearnedEvent learned);
    void unlearn();

    /// See `AgentSocket::convert`. Whoever shares the converter must not use it any more.
    void convert(std::shared_ptr<graph::AudioConverter> converter);

    void listen(websocket::Listening listening);

    /// Send a frame of audio. Throws `std::invalid_argument` if it is not of the agreed length.
    void audio(websocket::Track track, std::span<const std::uint8_t> frame);

    /// Send another text frame; it is numbered where it has a place for that.
    void send(std::string text);

    void ping();

    /// Drop waiting audio, and send what else waits, then a last frame unless it is empty.
    void finish(std::string last);
    void close(std::uint16_t code, std::string reason);
    void disconnect(bool at_once);

    /// One text or binary message was handled, which took so long.
    void handled(std::int64_t spent_ns);

    std::uint64_t frames_sent() const { return open() ? socket_->figures().frames_sent.get() : frames_sent_; }
    std::uint64_t frames_dropped() const {
        return open() ? socket_->figures().frames_dropped.get() : frames_dropped_;
    }
    /// Time of the inbound track, in ms.
    std::uint64_t clock_ms() const { return open() ? socket_->figures().clock_ms.get() : 0; }

    /// End the connection at once and let go of the socket.
    void release();

  private:
    friend class Engine;

    /// Run `action(AgentSocket&, now_ns)` on the socket's thread, in order.
    template <typename Action>
    void order(Action action, bool wake = true) {
        if (!open()) return;
        shard_->submit(make_command([socket = socket_, action = std::move(action)](
                                        std::int64_t now_ns) mutable { action(*socket, now_ns); }),
                       wake);
    }

    std::shared_ptr<Engine> engine_;
    Shard* shard_;
    AgentSocket* socket_;  ///< Null once released.
    std::uint64_t id_;
    std::uint64_t frames_sent_ = 0;
    std::uint64_t frames_dropped_ = 0;
};

}  // namespace trunkline::engine
