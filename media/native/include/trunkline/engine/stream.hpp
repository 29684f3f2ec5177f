#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/engine/latch.hpp"
#include "trunkline/engine/outlet.hpp"
#include "trunkline/engine/recorder.hpp"
#include "trunkline/engine/tap.hpp"
#include "trunkline/engine/tick_wheel.hpp"
#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/io/udp_socket.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"
#include "trunkline/rtp/dtmf_sender.hpp"
#include "trunkline/rtp/jitter_meter.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/rtp/sender.hpp"
#include "trunkline/rtp/sequence_tracker.hpp"
#include "trunkline/util/counter.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

inline constexpr std::uint32_t clock_hz = 8000;
inline constexpr std::uint32_t samples_per_ms = clock_hz / 1000;
/// Longest packet, in milliseconds, that is sent, and that is decoded when received.
inline constexpr std::uint32_t max_packet_ms = 60;

/// Protection profiles of SRTP with SDES keys (RFC 4568 6.2, RFC 6188).
enum class SrtpSuite : std::uint8_t {
    aes_cm_128_hmac_sha1_80,
    aes_cm_128_hmac_sha1_32,
    aes_256_cm_hmac_sha1_80
};

/// Master key and salt of one direction.
struct SrtpKey {
    static constexpr std::size_t max_bytes = 46;

    SrtpSuite suite = SrtpSuite::aes_cm_128_hmac_sha1_80;
    std::array<std::uint8_t, max_bytes> bytes{};  ///< 30 of them for AES-128, 46 for AES-256.

    bool operator==(const SrtpKey&) const = default;
};

/// What SDP agreed about a stream.
struct MediaSettings {
    io::Address remote;
    codec::Format format;                      ///< Sent, and expected besides the static types of G.711.
    std::uint8_t payload_type = 0;             ///< What we send with.
    std::optional<std::uint8_t> receive_type;  ///< What the far end sends with, when it differs.
    std::uint32_t ptime_ms = 20;
    codec::EncoderOptions encoder;
    std::optional<std::uint8_t> noise_type;      ///< Of comfort noise (RFC 3389), when the far end takes it.
    std::optional<std::uint8_t> dtmf_send_type;  ///< Payload type the far end wants its events with.
    std::optional<std::uint8_t> dtmf_receive_type;  ///< Payload type of the events it sends.
    /// Digits go to and come from the far end as tones in the audio.
    bool dtmf_tones = false;
    /// Where RTCP goes; nothing when it shares the port of RTP (RFC 5761).
    std::optional<io::Address> rtcp_remote;
    /// Keys of SRTP, for what we send and what we receive; both or none (RFC 4568).
    std::optional<SrtpKey> srtp_send, srtp_receive;
    bool send = true;
    bool receive = true;

    /// The law of G.711 that is spoken; meaningless for other codecs.
    dsp::Law law() const { return format.codec == codec::Codec::pcma ? dsp::Law::a : dsp::Law::mu; }
};

/// What happened on a stream so far. Written by the engine thread, readable from any.
struct StreamFigures {
    util::Counter packets_in, bytes_in, packets_out, bytes_out;
    util::Counter lost, duplicates, late;
    util::Counter dropped_foreign;   ///< From another source than the far end's.
    util::Counter dropped_invalid;   ///< Not RTP, or of a payload type nobody agreed on.
    util::Counter dropped_unwanted;  ///< Before `connect`, or against the agreed direction.
    util::Counter send_errors;
    util::Counter rtcp_in;
    util::Figure<std::uint32_t> jitter_us, ssrc_in;
};

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
class Stream final : public util::Node, private graph::PlaybackListener {
  public:
    Stream(std::uint64_t id, io::UdpSocket socket, rtp::Sender sender, Outlet& outlet, TickWheel& wheel);
    ~Stream() override;

    // Orders, run between packets.

    void connect(const MediaSettings& settings, std::int64_t now_ns);
    void link(Stream& other);
    void unlink();
    void play(graph::Clip* clip, std::int64_t now_ns);
    void stop_playback(std::int64_t now_ns);
    void send_dtmf(DtmfText* text, std::int64_t now_ns);
    void attach_tap(Tap* tap, std::int64_t now_ns);
    void detach_tap(std::int64_t now_ns);
    void attach_recorder(Recorder* recorder, std::int64_t now_ns);
    void detach_recorder(std::int64_t now_ns);
    void pause_recorder(bool paused, std::int64_t now_ns);
    void set_media_timeout(std::int64_t timeout_ns, std::int64_t now_ns);
    /// Let go of everything, so that the control thread can destroy the stream.
    void shut(std::int64_t now_ns);

    Tap* tap() { return tap_; }

    // Work.

    /// Read what has come and pass it on; true when there may be more.
    bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns);

    /// Tell when the far end has been silent too long.
    void check_silence(std::int64_t now_ns);

    std::uint64_t id() const { return id_; }
    std::uint32_t ssrc() const { return sender_.ssrc(); }
    int descriptor() const { return socket_.descriptor(); }
    const StreamFigures& figures() const { return figures_; }

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

    // Receiving, in stream_receive.cpp.
    Kind classify(std::uint8_t payload_type) const;
    void take_datagram(std::span<std::uint8_t> datagram, const io::Address& source, io::SendBatch& relayed,
                       std::int64_t now_ns);
    bool follow_source(const rtp::Header& header, std::int64_t now_ns);
    void take_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);
    void take_audio(const rtp::PacketView& packet, dsp::Law law, io::SendBatch& relayed, std::int64_t now_ns);
    void report(const std::optional<rtp::Digit>& digit);
    void tick_receive(std::int64_t now_ns);

    // Sending, in stream_send.cpp.
    bool may_send() const { return connected_ && settings_.send && latch_.remote().reachable(); }
    bool occupied() const;
    void relay_audio(const rtp::PacketView& packet, dsp::Law law, std::span<const std::int16_t> samples,
                     io::SendBatch& relayed, std::int64_t now_ns);
    void relay_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);
    void flush_relayed(io::SendBatch& relayed);
    void tick_send(std::int64_t now_ns);
    bool next_audio(std::span<std::int16_t> samples, std::int64_t now_ns);
    void send_audio(std::span<const std::int16_t> samples, std::int64_t now_ns);
    void send_event(const rtp::DtmfPacket& packet, std::int64_t now_ns);
    void send_datagram(std::span<const std::uint8_t> datagram);
    void next_dtmf_text();
    void finish_dtmf_text();

    void playback_finished(std::uint64_t id, bool interrupted) override;
    void spent(util::Node* node) override { outlet_.discard(node); }

    std::uint64_t id_;
    io::UdpSocket socket_;
    rtp::Sender sender_;
    Outlet& outlet_;
    TickWheel& wheel_;
    MediaSettings settings_;
    bool connected_ = false;
    Latch latch_;
    Stream* peer_ = nullptr;

    rtp::SequenceTracker sequence_;
    rtp::JitterMeter jitter_{clock_hz};
    rtp::DtmfReceiver dtmf_receiver_;
    bool heard_ = false;
    bool restarted_ = true;  ///< The next audio has timestamps of a new run.
    std::int64_t last_heard_ns_ = 0;
    std::int64_t timeout_ns_ = 0;
    bool silence_reported_ = false;

    graph::PlaybackQueue playback_;
    rtp::DtmfSender dtmf_sender_;
    DtmfText* dtmf_first_ = nullptr;  ///< The text being sent, then those that wait.
    DtmfText* dtmf_last_ = nullptr;
    Tap* tap_ = nullptr;
    Recorder* recorder_ = nullptr;
    BoundTicker<&Stream::tick_send> send_ticker_{*this};
    BoundTicker<&Stream::tick_receive> receive_ticker_{*this};
    StreamFigures figures_;
};

}  // namespace trunkline::engine
