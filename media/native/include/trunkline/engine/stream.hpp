#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trunkline/codec/comfort_noise.hpp"
#include "trunkline/dsp/dtmf_generator.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/latch.hpp"
#include "trunkline/engine/listener.hpp"
#include "trunkline/engine/media_socket.hpp"
#include "trunkline/engine/readable.hpp"
#include "trunkline/engine/recorder.hpp"
#include "trunkline/engine/rtcp_state.hpp"
#include "trunkline/engine/settings.hpp"
#include "trunkline/engine/stream_figures.hpp"
#include "trunkline/engine/stream_parts.hpp"
#include "trunkline/engine/tap.hpp"
#include "trunkline/engine/timer_wheel.hpp"
#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/graph/track_mixer.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"
#include "trunkline/rtp/dtmf_sender.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/rtp/reception.hpp"
#include "trunkline/rtp/sender.hpp"
#include "trunkline/rtp/token_bucket.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

struct BrowserLeg;

/// Digits to send, with the token that tells when they are.
struct DtmfText final : util::Node {
    std::uint32_t token = 0;
    std::string digits;
    std::uint32_t duration_ms = 0;
    std::uint32_t gap_ms = 0;
};

/// One RTP stream: a socket, the far end it talks to, and what is done with the audio.
///
/// Lives on one shard's thread. What it sends is, in this order: digits, the tap's audio, playback, a
/// source's audio, what the linked stream receives, silence, or noise if that is
/// asked for, while there is a tap or something is muted, or always. Tracks are added to any of it but
/// digits.
///
/// Received packets go undecoded to a linked stream that accepts them. Linear audio is
/// decoded once in `ReceivePath`, for all its consumers; audio that is not relayed leaves through `SendPath`.
class Stream final : public util::Node, public Readable, private graph::PlaybackListener {
  public:
    Stream(std::uint64_t id, io::UdpSocket socket, rtp::Sender sender, EventQueue& event_queue,
           TimerWheel& wheel, std::int64_t now_ns);
    ~Stream() override;

    // Orders, run between packets.

    /// Adopt parts from the control thread; the replaced ones go back to it.
    void equip(StreamParts parts, std::int64_t now_ns);
    /// Obey what SDP agreed. `settings` come without keys; what they change is in `srtp`, whose contexts are
    /// taken over. A change of the RTP clock, or a key that was sent under before, takes the fresh SSRC.
    void connect(const MediaSettings& settings, SrtpChange& srtp, std::uint32_t fresh_ssrc,
                 std::int64_t now_ns);
    void link(Stream& other, std::int64_t now_ns);
    void unlink(std::int64_t now_ns);
    /// Put silence in place of what the far end says, or of what is sent to it. Digits still pass.
    void mute(bool received, bool sent, std::int64_t now_ns);
    /// Send soft noise where there is nothing else to send, so that a pause does not sound like a dead line.
    void fill_with_noise(bool active, std::int64_t now_ns);
    void play(graph::Playback* playback, std::int64_t now_ns);
    void pause_playback(std::int64_t now_ns);
    void resume_playback(std::int64_t now_ns);
    void stop_playback(std::int64_t now_ns);
    /// Add a playback to whatever is sent, on a track of its own. `mixer` is for a stream that has none.
    void play_track(std::size_t track, graph::Playback* playback, graph::TrackMixer* mixer,
                    std::int64_t now_ns);
    void stop_track(std::size_t track, std::int64_t now_ns);
    /// What a mixer's playbacks tell.
    graph::PlaybackListener& playback_listener() { return *this; }
    void send_dtmf(DtmfText* text, std::int64_t now_ns);
    void attach_tap(Tap* tap, std::int64_t now_ns);
    void detach_tap(std::int64_t now_ns);
    void attach_recorder(Recorder* recorder, std::int64_t now_ns);
    void detach_recorder(std::int64_t now_ns);
    void pause_recorder(bool paused, std::int64_t now_ns);
    /// Feed a listener with what is received; the stream owns it until it is detached.
    void attach_listener(Listener* listener, std::int64_t now_ns);
    /// Detach a listener and return it to the control thread; harmless when it is not attached.
    void detach_listener(Listener* listener, std::int64_t now_ns);
    /// Send what a source has, behind playback and instead of the linked stream's audio; null takes it away.
    /// Not owned: whoever attached it takes it away before it goes.
    void attach_source(AudioSource* source, std::int64_t now_ns);
    /// Limits of silence while audio is expected, and while it is not; 0 for none.
    void set_media_timeout(std::int64_t timeout_ns, std::int64_t hold_timeout_ns, std::int64_t now_ns);
    /// Send all through an outlet, or (null) through the own socket again.
    void send_through(Outlet* outlet) { media_socket_.send_through(outlet); }
    /// Get what a browser's leg of the same thread receives, or (null) no more.
    void join(BrowserLeg* leg);
    /// Use a port of its own for RTCP.
    void open_rtcp(io::UdpSocket socket);
    /// Release everything, so that the control thread can destroy the stream.
    void shut(std::int64_t now_ns);

    Tap* tap() { return tap_; }

    // Detections, for playbacks that end by them.

    /// The far end pressed a key; told at once, not when it is up again.
    void key_pressed(char key, std::int64_t now_ns);
    /// The far end began to speak.
    void speech_started(std::int64_t now_ns);
    /// A key was found in the audio: told unless its telephone event was, and sent on as one to a linked
    /// stream that takes these and no tones.
    void digit_detected(const rtp::Digit& digit, std::int64_t now_ns);
    /// True if a playback waits for the far end to speak.
    bool wants_speech() const { return playback_.wants_speech(); }

    /// True if digits of ours are on their way, whose echo is not the far end's.
    bool sending_digits() const;
    /// Tell the control thread.
    void tell(EventKind kind, std::uint32_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) {
        event_queue_.emit({id_, kind, a, b, c});
    }

    // Work.

    /// Read what has come and pass it on; true when there may be more.
    bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) override;

    /// Take a datagram of the browser: as if it had come from the address that was signalled.
    void take_from_browser(std::span<std::uint8_t> datagram, io::SendBatch& relayed, std::int64_t now_ns);

    /// Slow work, every 250 ms: tells when the far end has been silent too long, sends RTCP that is due.
    void check(std::int64_t now_ns);

    std::uint64_t id() const { return id_; }
    int descriptor() const { return media_socket_.descriptor(); }
    const StreamFigures& figures() const { return figures_; }
    StreamFigures& figures() { return figures_; }
    /// Additional descriptor to watch: the port for RTCP.
    RtcpState& rtcp() { return rtcp_; }
    /// From any thread: quality by intervals, the oldest first.
    std::vector<rtp::QualityInterval> intervals() const { return rtcp_.history.read(); }

    std::size_t index = 0;  ///< Place in the shard's table.

  private:
    /// Calls a member function of the stream at each tick.
    template <void (Stream::*method)(std::int64_t)>
    struct BoundTicker final : Ticker {
        explicit BoundTicker(Stream& owner) : stream(owner) {}
        void tick(std::int64_t now_ns) override { (stream.*method)(now_ns); }
        Stream& stream;
    };

    /// Meaning of a payload type.
    enum class Kind : std::uint8_t { audio, event, noise, unknown };
    struct Meaning {
        Kind kind = Kind::unknown;
        Speech speech = Speech::agreed;
    };

    void run_clocks(std::int64_t now_ns);
    void note_listener(const Listener& listener, int change, std::int64_t now_ns);
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
    Meaning meaning_of(std::uint8_t payload_type) const;
    codec::Format format_of(Speech speech) const;
    std::uint32_t audible_units(const rtp::PacketView& packet, Meaning meaning) const;
    std::int64_t cost_ns(Meaning meaning, std::uint32_t units) const;
    void take_datagram(std::span<std::uint8_t> datagram, const io::Address& source, io::SendBatch& relayed,
                       std::int64_t now_ns);
    bool follow_address(const io::Address& source, const rtp::Header& header, std::int64_t now_ns);
    bool follow_source(const rtp::Header& header, std::int64_t now_ns);
    bool loops(const rtp::Header& header, std::int64_t now_ns);
    void take_audio(const rtp::PacketView& packet, Speech speech, std::uint32_t units, io::SendBatch& relayed,
                    std::int64_t now_ns);
    void take_noise(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);
    void take_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);
    void report(const std::optional<rtp::Digit>& digit, bool by_tone, std::int64_t now_ns);
    void tick_receive(std::int64_t now_ns);

    // Linear audio, in stream_hear.cpp.
    bool must_hear() const;
    void hear(std::int64_t now_ns);
    void hand_out(const graph::AudioChunk& chunk, std::int64_t now_ns);
    /// True if there is a consumer of what is sent, be it relayed or our own.
    bool notes_sent() const { return recorder_ != nullptr || sent_listeners_ != 0; }

    // For the linked stream, in stream_relay.cpp.
    bool relays(const codec::Format& format, std::uint32_t units);
    bool occupied() const;
    bool plays() const;
    bool passes() const { return may_send() && !occupied() && !muted_.sent; }
    void relay_audio(const rtp::PacketView& packet, const codec::Format& format, std::uint32_t units,
                     io::SendBatch& relayed, std::int64_t now_ns);
    void relay_packet(const rtp::PacketView& packet, std::uint8_t payload_type, std::uint32_t units,
                      io::SendBatch& relayed, std::int64_t now_ns);
    void relay_event(const rtp::PacketView& packet, const Stream& from, io::SendBatch& relayed,
                     std::int64_t now_ns);
    void renumber_event(const rtp::PacketView& packet, const Stream& from, std::int64_t now_ns);
    std::uint32_t units_since_press(std::uint32_t timestamp, std::uint32_t clock_hz,
                                    std::int64_t now_ns) const;
    void sound_event(const rtp::PacketView& packet, const Stream& from, std::int64_t now_ns);
    void begin_sound(char key, std::int64_t now_ns);
    void relay_noise(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns);
    void transcode(const graph::AudioChunk& chunk, std::int64_t now_ns);
    void pass_pause(const graph::AudioChunk& pause, std::int64_t now_ns);

    // Sending, in stream_send.cpp.
    bool may_send() const { return connected_ && settings_.send && latch_.remote().reachable(); }
    bool must_send() const;
    bool stands_in() const;
    std::uint32_t units_of(std::size_t samples) const;
    void tick_send(std::int64_t now_ns);
    void end_tracks(std::int64_t now_ns);
    bool next_audio(std::span<std::int16_t> samples, bool& silent, std::int64_t now_ns);
    bool must_fill(std::int64_t now_ns) const;
    void send_audio(std::span<const std::int16_t> samples, rtp::Feed feed, bool silent, std::int64_t now_ns);
    void send_alone(std::span<const std::int16_t> samples, rtp::Feed feed, bool silent, bool noted,
                    std::int64_t now_ns);
    void note_sent(std::span<const std::int16_t> samples, std::int64_t now_ns);
    bool hush(std::uint32_t ms, std::uint32_t after_ms, rtp::Feed feed, std::int64_t now_ns);
    void send_noise(rtp::Feed feed, std::int64_t now_ns);
    void send_payload(PacketRoom& room, const rtp::Header& header, std::size_t size);

    // Digits to the far end, in stream_digits.cpp.
    bool step_digits(std::span<std::int16_t> samples, std::int64_t now_ns);
    void send_event(const rtp::DtmfPacket& packet, std::int64_t now_ns);
    void start_digits(std::string_view digits, std::uint32_t duration_ms, std::uint32_t gap_ms);
    void next_digits();
    void finish_dtmf_text();
    void press(char key);
    void queue_press(char key);

    void playback_finished(std::uint64_t id, graph::PlaybackEnd why, char key,
                           std::uint64_t played_ms) override;
    void playback_position(std::uint64_t id, std::uint64_t played_ms) override;
    void spent(util::Node* node) override { event_queue_.discard(node); }

    std::uint64_t id_;
    StreamFigures figures_;
    MediaSocket media_socket_;
    rtp::Sender sender_;
    EventQueue& event_queue_;
    TimerWheel& wheel_;
    MediaSettings settings_;
    bool connected_ = false;
    Latch latch_;
    BrowserLeg* browser_ = nullptr;  ///< Null for a far end with sockets of its own.
    Stream* peer_ = nullptr;
    ReceivePath* receive_path_ = nullptr;  ///< Null while nobody wants linear audio.
    SendPath* send_path_ = nullptr;        ///< Null until something is sent that is not relayed.
    struct {
        bool received = false;
        bool sent = false;
    } muted_;

    rtp::Reception reception_{8000};
    rtp::TokenBucket token_bucket_;
    RtcpState rtcp_;
    rtp::DtmfReceiver dtmf_receiver_;
    bool heard_ = false;
    bool restarted_ = true;  ///< The next audio has timestamps of a new run.
    bool hears_ = false;     ///< `receive_path_` is being fed.
    /// Way of the latest audio to the linked stream.
    enum class Route : std::uint8_t { none, relayed, transcoded } route_ = Route::none;
    std::uint32_t last_units_ = 0;     ///< Length of the audio packet that came last,
    std::uint32_t regular_units_ = 0;  ///< and of the last two in a row that were equal.
    rtp::Digit last_digit_;
    bool last_digit_by_tone_ = false;
    std::int64_t last_digit_ns_ = 0;
    std::int64_t last_heard_ns_ = 0;
    std::int64_t timeout_ns_ = 0;
    std::int64_t hold_timeout_ns_ = 0;
    std::int64_t collided_ns_ = 0;  ///< When our SSRC was changed last.
    bool reflecting_ = false;       ///< The far end sends our own packets back.
    bool silence_reported_ = false;

    graph::PlaybackQueue playback_;
    graph::TrackMixer* tracks_ = nullptr;  ///< Null while no track sounds.
    rtp::DtmfSender dtmf_sender_;
    DtmfText* dtmf_first_ = nullptr;  ///< The text being sent, then those that wait.
    DtmfText* dtmf_last_ = nullptr;
    dsp::DtmfGenerator key_tones_;
    std::int64_t sounded_ns_ = 0;     ///< When the tones' last frame was made.
    std::array<char, 32> pressed_{};  ///< Keys the linked stream's far end pressed, to be sent by ourselves.
    std::size_t pressed_count_ = 0;
    char pressing_ = 0;
    enum class Digits : std::uint8_t { none, text, pressed } digits_ = Digits::none;  ///< What is being sent.
    struct {
        std::uint32_t press = 0;  ///< Its number as the linked stream counts them; 0 for none of that one.
        std::uint32_t timestamp_in = 0;
        std::uint32_t timestamp_out = 0;
        std::int64_t last_ns = 0;
        bool down = false;                  ///< It sounds, and its end has not come.
        bool known = false;                 ///< There was one, if only of a stream that was linked before.
    } event_;                               ///< A linked stream's event that cannot be relayed as it is.
    std::int64_t press_sent_until_ns_ = 0;  ///< More packets of a linked stream's event may come.
    Tap* tap_ = nullptr;
    Recorder* recorder_ = nullptr;
    Listener* listeners_ = nullptr;
    std::uint32_t sent_listeners_ = 0;  ///< Those that hear what is sent, too.
    AudioSource* source_ = nullptr;
    bool fills_with_noise_ = false;
    codec::NoiseGenerator noise_;
    BoundTicker<&Stream::tick_send> send_ticker_{*this};
    BoundTicker<&Stream::tick_receive> receive_ticker_{*this};
};

}  // namespace trunkline::engine
