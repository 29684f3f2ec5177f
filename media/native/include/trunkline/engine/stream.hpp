#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trunkline/dsp/g711.hpp"
#include "trunkline/engine/latch.hpp"
#include "trunkline/engine/listener.hpp"
#include "trunkline/engine/outlet.hpp"
#include "trunkline/engine/readable.hpp"
#include "trunkline/engine/recording.hpp"
#include "trunkline/engine/rtcp_state.hpp"
#include "trunkline/engine/settings.hpp"
#include "trunkline/engine/stream_figures.hpp"
#include "trunkline/engine/tap.hpp"
#include "trunkline/engine/tick_wheel.hpp"
#include "trunkline/engine/wire.hpp"
#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"
#include "trunkline/rtp/dtmf_sender.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/rtp/reception.hpp"
#include "trunkline/rtp/sender.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

inline constexpr std::uint32_t clock_hz = 8000;
inline constexpr std::uint32_t samples_per_ms = clock_hz / 1000;

/// Digits to send, with the token that tells when they are.
struct DtmfText final : util::Node {
    std::uint32_t token = 0;
    std::string digits;
    std::uint32_t duration_ms = 0;
    std::uint32_t gap_ms = 0;
};

/// One RTP stream: a socket, the far end it talks to, and what is done with the audio.
///
/// Lives on one shard's thread. What it sends is, in this order: digits, the tap's audio, playback, what the
/// linked stream receives, silence while there is a tap.
class Stream final : public util::Node, public Readable, private graph::PlaybackListener {
  public:
    Stream(std::uint64_t id, io::UdpSocket socket, rtp::Sender sender, Outlet& outlet, TickWheel& wheel);
    ~Stream() override;

    // Orders, run between packets.

    /// `settings` come without keys; what they change is in `srtp`, whose contexts are taken over.
    void connect(const MediaSettings& settings, SrtpChange& srtp, std::int64_t now_ns);
    void link(Stream& other);
    void unlink();
    void play(graph::Playback* playback, std::int64_t now_ns);
    void pause_playback(std::int64_t now_ns);
    void resume_playback(std::int64_t now_ns);
    void stop_playback(std::int64_t now_ns);
    void send_dtmf(DtmfText* text, std::int64_t now_ns);
    void attach_tap(Tap* tap, std::int64_t now_ns);
    void detach_tap(std::int64_t now_ns);
    void attach_recorder(Recorder* recorder, std::int64_t now_ns);
    void detach_recorder(std::int64_t now_ns);
    /// Feed a listener with what is received; the stream owns it until it is detached.
    void attach_listener(Listener* listener, std::int64_t now_ns);
    /// Let go of a listener and give it back to the control thread; harmless when it is not attached.
    void detach_listener(Listener* listener, std::int64_t now_ns);
    /// Send what a source has, behind playback and instead of the linked stream's audio; null takes it away.
    /// Not owned: whoever attached it takes it away before it goes.
    void attach_source(AudioSource* source, std::int64_t now_ns);
    /// Limits of silence while audio is expected, and while it is not; 0 for none.
    void set_media_timeout(std::int64_t timeout_ns, std::int64_t hold_timeout_ns, std::int64_t now_ns);
    /// Use a port of its own for RTCP.
    void open_rtcp(io::UdpSocket socket);
    /// Let go of everything, so that the control thread can destroy the stream.
    void shut(std::int64_t now_ns);

    Tap* tap() { return tap_; }

    // What was detected, for playbacks that end by it.

    /// The far end pressed a key; told at once, not when it is up again.
    void key_pressed(char key, std::int64_t now_ns);
    /// The far end began to speak.
    void speech_started(std::int64_t now_ns);
    /// Whether a playback waits for the far end to speak.
    bool wants_speech() const { return playback_.wants_speech(); }

    // Work.

    /// Read what has come and pass it on; true when there may be more.
    bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) override;

    /// Slow work, every 250 ms: tells when the far end has been silent too long, sends RTCP that is due.
    void check(std::int64_t now_ns);

    std::uint64_t id() const { return id_; }
    int descriptor() const { return wire_.descriptor(); }
    const StreamFigures& figures() const { return figures_; }
    /// What to watch besides the stream itself: its port for RTCP.
    RtcpState& rtcp() { return rtcp_; }
    /// From any thread: quality by intervals, the oldest first.
    std::vector<rtp::QualityInterval> intervals() const { return rtcp_.history.read(); }

    std::size_t index = 0;  ///< Place in the shard's table.

  private:
    /// Calls a member function of the stream at each beat.
    template <void (Stream::*beat)(std::int64_t)>
    struct BoundTicker final : Ticker {
        explicit BoundTicker(Stream& owner) : stream(owner) {}
        void tick(std::int64_t now_ns) override { (stream.*beat)(now_ns); }
        Stream& stream;
    };

    enum class Kind : std::uint8_t { audio_mu, audio_a, event, noise, unknown };

    void run_clocks(std::int64_t now_ns);
    void check_silence(std::int64_t now_ns);

    // RTCP, in stream_rtcp.cpp.
    friend class RtcpState;
    void take_rtcp_only(std::span<std::uint8_t> datagram, const io::Address& source, std::int64_t now_ns);
    void take_rtcp(std::span<std::uint8_t> datagram, const io::Address& source, bool shared,
                   std::int64_t now_ns);
    void note_far_report();
    void check_rtcp(std::int64_t now_ns);
    void send_report(bool bye, std::int64_t now_ns);
    void say_goodbye(std::int64_t now_ns);
    rtp::Outgoing outgoing(std::int64_t now_ns) const;
    rtp::ReceivedTotals received_totals() const;
    rtp::QualityContext quality_context() const;
    void change_ssrc(std::int64_t now_ns);
    void follow_ssrc();

    // Receiving, in stream_receive.cpp.
    Kind classify(std::uint8_t payload_type) const;
    void take_datagram(std::span<std::uint8_t> datagram, const io::Address& source, io::SendBatch& relayed,
                       std::int64_t now_ns);
    bool follow_address(const io::Address& source, const rtp::Header& header, std::int64_t now_ns);
    bool follow_source(const rtp::Header& header, std::int64_t now_ns);
    bool loops(const rtp::Header& header, std::int64_t now_ns);
    void take_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);
    void take_audio(const rtp::PacketView& packet, dsp::Law law, io::SendBatch& relayed, std::int64_t now_ns);
    void report(const std::optional<rtp::Digit>& digit);
    bool listened_to() const;
    void feed(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool marker,
              std::int64_t now_ns);
    void tick_receive(std::int64_t now_ns);

    // For the linked stream, in stream_relay.cpp.
    bool occupied() const;
    void relay_audio(const rtp::PacketView& packet, dsp::Law law, std::span<const std::int16_t> samples,
                     io::SendBatch& relayed, std::int64_t now_ns);
    void relay_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);

    // Sending, in stream_send.cpp.
    bool may_send() const { return connected_ && settings_.send && latch_.remote().reachable(); }
    void tick_send(std::int64_t now_ns);
    bool next_audio(std::span<std::int16_t> samples, std::int64_t now_ns);
    void send_audio(std::span<const std::int16_t> samples, std::int64_t now_ns);
    void send_event(const rtp::DtmfPacket& packet, std::int64_t now_ns);
    void next_dtmf_text();
    void finish_dtmf_text();

    void playback_finished(std::uint64_t id, graph::PlaybackEnd why, char key,
                           std::uint64_t played_ms) override;
    void playback_position(std::uint64_t id, std::uint64_t played_ms) override;
    void spent(util::Node* node) override { outlet_.discard(node); }

    std::uint64_t id_;
    StreamFigures figures_;
    Wire wire_;
    rtp::Sender sender_;
    Outlet& outlet_;
    TickWheel& wheel_;
    MediaSettings settings_;
    bool connected_ = false;
    Latch latch_;
    Stream* peer_ = nullptr;

    rtp::Reception reception_{clock_hz};
    RtcpState rtcp_;
    rtp::DtmfReceiver dtmf_receiver_;
    bool heard_ = false;
    bool restarted_ = true;  ///< The next audio has timestamps of a new run.
    std::int64_t last_heard_ns_ = 0;
    std::int64_t timeout_ns_ = 0;
    std::int64_t hold_timeout_ns_ = 0;
    bool reflecting_ = false;  ///< The far end sends our own packets back.
    bool silence_reported_ = false;

    graph::PlaybackQueue playback_;
    rtp::DtmfSender dtmf_sender_;
    DtmfText* dtmf_first_ = nullptr;  ///< The text being sent, then those that wait.
    DtmfText* dtmf_last_ = nullptr;
    Tap* tap_ = nullptr;
    Recorder* recorder_ = nullptr;
    Listener* listeners_ = nullptr;
    AudioSource* source_ = nullptr;
    BoundTicker<&Stream::tick_send> send_ticker_{*this};
    BoundTicker<&Stream::tick_receive> receive_ticker_{*this};
};

}  // namespace trunkline::engine
