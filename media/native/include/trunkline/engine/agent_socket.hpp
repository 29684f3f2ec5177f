#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/readable.hpp"
#include "trunkline/engine/timer_wheel.hpp"
#include "trunkline/graph/audio_converter.hpp"
#include "trunkline/tls/client.hpp"
#include "trunkline/util/node.hpp"
#include "trunkline/websocket/inbound.hpp"
#include "trunkline/websocket/outbound.hpp"

namespace trunkline::engine {

class Shard;
class Tap;

/// A message of an agent on its way to the control thread.
struct AgentMessage final : util::Node {
    std::uint64_t socket = 0;
    websocket::MessageKind kind{};
    std::uint16_t code = 0;
    std::vector<std::uint8_t> bytes;
    std::uint64_t audio_bytes = 0;  ///< Audio that was played between the message before and this one.
};

/// How audio of an agent is told and converted.
///
/// The control thread uses the same converter while it handles a message, and this thread while it waits for
/// none: so what is converted on either side is continuous.
struct LearnedEvent {
    std::unique_ptr<websocket::AudioEvent> event;
    std::shared_ptr<graph::AudioConverter> converter;  ///< Null for audio as the tap has it.
    bool whole = false;                                ///< Nothing of an event waits for the next.
};

/// Settings of a socket to an agent.
struct AgentSocketSettings {
    websocket::OutboundAudio audio;
    std::size_t max_message_bytes = 1 << 20;
};

/// The connected TCP socket of a WebSocket to an agent, with or without TLS, and the audio between it and a
/// tap.
///
/// Lives on one shard's thread, from after the handshake. Audio passes to and from the attached tap; what
/// else the agent sends goes to the control thread, and what else it gets comes from there.
class AgentSocket final : public util::Node,
                          public Readable,
                          private websocket::InboundListener,
                          private websocket::OutboundListener {
  public:
    /// Takes over the descriptor. `tls` is null for a connection without it, otherwise open.
    AgentSocket(std::uint64_t id, int descriptor, std::unique_ptr<tls::Client> tls,
                const AgentSocketSettings& settings, Shard& shard);
    ~AgentSocket() override;

    // Orders, run between packets.

    /// Begin, with what was read, and decrypted, behind the handshake.
    void open(std::span<const std::uint8_t> bytes, std::int64_t now_ns);
    /// Join it to a tap of the same shard, or, with null, to none.
    void attach(Tap* tap, std::int64_t now_ns);
    /// The tap is closed.
    void forget_tap();
    void listen(websocket::Listening listening) { outbound_.listen(listening); }
    void set_templates(websocket::FrameTemplate& inbound, websocket::FrameTemplate& outbound,
                       std::uint64_t origin_ms);
    void send(websocket::ControlFrame* frame);
    void ping();
    void finish(websocket::ControlFrame* last);
    void close(std::uint16_t code, std::string_view reason, std::int64_t now_ns);
    /// End the connection at once, or our side of it once all output is written.
    void disconnect(bool at_once);
    /// Release everything, so that the control thread can destroy the socket.
    void shut();
    void handled(std::int64_t spent_ns, std::int64_t now_ns);
    /// What was learned before is given back in exchange.
    void learn(std::string& before, std::string& after) { inbound_.learn(before, after); }
    void learn(LearnedEvent& learned);
    /// Convert audio to the agent from now on; with null, no more. The old one is given back in exchange.
    void convert(std::shared_ptr<graph::AudioConverter>& converter) { to_agent_.swap(converter); }
    void unlearn() { inbound_.unlearn(); }

    // Work.

    /// Send a frame of audio; it leaves with the next `flush`.
    void audio(websocket::Track track, std::span<const std::uint8_t> frame) { outbound_.audio(track, frame); }
    void flush();
    bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) override;

    const websocket::OutboundFigures& figures() const { return figures_; }
    const AgentSocketSettings& settings() const { return settings_; }

  private:
    /// Looks for the end of a pause.
    struct PauseTicker final : Ticker {
        explicit PauseTicker(AgentSocket& owner) : socket(owner) {}
        void tick(std::int64_t now_ns) override { socket.tick(now_ns); }
        AgentSocket& socket;
    };

    bool audio(std::span<const std::uint8_t> bytes, bool base64) override;
    void message(websocket::MessageKind kind, std::uint16_t code,
                 std::span<const std::uint8_t> bytes) override;
    void ping(std::span<const std::uint8_t> payload) override { outbound_.pong(payload); }
    std::uint32_t mask_key() override;
    std::span<const std::uint8_t> coded(std::span<const std::uint8_t> frame) override;
    bool play_converted(std::span<const std::uint8_t> bytes);
    void spent(util::Node* node) override;

    void tick(std::int64_t now_ns);
    void proceed(std::int64_t now_ns);
    std::span<const std::uint8_t> unsent();
    void sent(std::size_t size_bytes);
    void drop_output();
    bool may_end() const;
    void take(std::span<const std::uint8_t> bytes, std::int64_t now_ns);
    void decrypt(std::span<const std::uint8_t> bytes, std::int64_t now_ns);
    void settle(std::int64_t now_ns);
    void end_with_tls();
    void end();

    std::uint64_t id_;
    int descriptor_;
    std::unique_ptr<tls::Client> tls_;
    std::size_t sealed_bytes_ = 0;  ///< Of the output, in records that the socket has not taken whole.
    AgentSocketSettings settings_;
    Shard& shard_;
    websocket::OutboundFigures figures_;
    websocket::Outbound outbound_;
    websocket::Inbound inbound_;
    PauseTicker pause_{*this};
    LearnedEvent learned_;
    std::shared_ptr<graph::AudioConverter> to_agent_;  ///< Null for audio as the tap has it.
    std::vector<std::uint8_t> coded_;
    std::uint64_t audio_bytes_ = 0;  ///< Played since the last message.
    Tap* tap_ = nullptr;
    std::int64_t now_ns_ = 0;  ///< Time of what is being read.
    bool stalled_ = false;
    bool disconnecting_ = false;
};

}  // namespace trunkline::engine
