#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trunkline/util/counter.hpp"
#include "trunkline/util/node.hpp"
#include "trunkline/websocket/frame.hpp"
#include "trunkline/websocket/frame_template.hpp"

namespace trunkline::websocket {

/// Direction of audio to a far end: what a party says, or what it hears.
enum class Track : std::uint8_t { inbound = 0, outbound = 1 };

/// Use of the audio for a far end: sent, left out, or replaced by silence.
enum class Listening : std::uint8_t { all = 0, nothing = 1, silence = 2 };

/// A text frame other than audio.
struct ControlFrame final : util::Node {
    FrameTemplate text;
};

/// What a writing end needs from around it.
class OutboundListener {
  public:
    /// A key that nobody can guess (RFC 6455 10.3).
    virtual std::uint32_t mask_key() = 0;

    /// Audio as the far end wants it, from a frame; valid until the next call. Empty if the end of it waits
    /// for what follows.
    virtual std::span<const std::uint8_t> coded(std::span<const std::uint8_t> frame) { return frame; }

    /// A frame is no longer needed.
    virtual void spent(util::Node* node) = 0;

  protected:
    ~OutboundListener() = default;
};

/// Format of the audio to a far end, and how much of it may wait.
struct OutboundAudio {
    bool binary = false;
    std::size_t frame_bytes = 320;
    std::size_t max_frames = 10;
    std::uint32_t frame_ms = 20;
    std::uint8_t silence = 0;  ///< Each byte of a silent frame.
};

/// Figures that other threads read.
struct OutboundFigures {
    util::Counter frames_sent;
    util::Counter frames_dropped;
    util::Counter clock_ms;  ///< Time of the last frame of the inbound track, sent or not.
};

/// Writing end of a WebSocket client: frames, their numbers, and what waits while the socket is full. No I/O.
///
/// While it is full, the oldest audio is dropped: a far end that recovers needs current audio. Other frames
/// wait up to a limit. Frames are numbered as they are written, so that numbers have no gaps.
class Outbound {
  public:
    /// Written bytes that wait for the socket, beyond which it is full, and until which it stays so.
    static constexpr std::size_t high_water_bytes = 4 * 1024;
    static constexpr std::size_t low_water_bytes = 1024;
    /// Bytes of other frames that may wait.
    static constexpr std::size_t max_held_bytes = 256 * 1024;

    Outbound(const OutboundAudio& format, OutboundFigures& figures, OutboundListener& listener);
    Outbound(const Outbound&) = delete;
    Outbound& operator=(const Outbound&) = delete;
    ~Outbound() { util::NodeStack::destroy(held_first_); }

    /// Write audio of a track by this template from now on; its times are counted from `origin_ms`. The old
    /// one is given back in exchange.
    void set_template(Track track, FrameTemplate& text) { tracks_[index_of(track)].text.swap(text); }
    void set_origin(std::uint64_t origin_ms) { origin_ms_ = origin_ms; }

    void listen(Listening listening) { listening_ = listening; }

    /// Send a frame of audio, `frame_bytes` long.
    void audio(Track track, std::span<const std::uint8_t> frame);

    /// Send any other frame; takes ownership. False if too many bytes wait now.
    bool control(ControlFrame* frame);

    void ping();

    /// Answer a ping; while the socket is full, only the last one (RFC 6455 5.5.3).
    void pong(std::span<const std::uint8_t> payload);

    /// Drop waiting audio, and write all other frames, then a last one if not null. No more is sent after it
    /// but a close frame.
    void finish(ControlFrame* last);
    void close(std::uint16_t code, std::string_view reason);

    /// Bytes for the socket.
    std::span<const std::uint8_t> output() const { return std::span(output_).subspan(sent_bytes_); }

    /// The socket took so many of them.
    void sent(std::size_t size_bytes);

    /// The socket takes no more.
    void blocked();

    /// The connection is lost: forget all output.
    void drop();

  private:
    struct TrackState {
        FrameTemplate text;
        std::uint64_t chunks = 0;
        std::uint64_t time_ms = 0;
    };
    struct Waiting {
        Track track = Track::inbound;
        std::uint64_t time_ms = 0;
    };

    static std::size_t index_of(Track track) { return static_cast<std::size_t>(track); }
    std::span<std::uint8_t> slot(std::size_t number);
    void wait(Track track, std::uint64_t time_ms, std::span<const std::uint8_t> frame);
    void write_waiting();
    bool write_next();
    void write_audio(Track track, std::uint64_t time_ms, std::span<const std::uint8_t> frame);
    void write_control(ControlFrame* frame);
    std::span<std::uint8_t> room(std::size_t size_bytes);
    void write_template(const FrameTemplate& text, const FrameValues& values);
    void write(Opcode opcode, std::span<const std::uint8_t> payload);

    OutboundAudio format_;
    OutboundFigures& figures_;
    OutboundListener& listener_;
    std::array<TrackState, 2> tracks_;
    Listening listening_ = Listening::all;
    std::uint64_t origin_ms_ = 0;
    std::uint64_t numbers_ = 0;  ///< Of frames written so far.
    std::uint64_t last_ms_ = 0;  ///< Time of the audio last written.
    std::vector<std::uint8_t> output_;
    std::size_t sent_bytes_ = 0;  ///< Of the output.
    bool full_ = false;
    bool finished_ = false;

    std::vector<std::uint8_t> frames_;  ///< Waiting audio, a ring of `max_frames` frames.
    std::vector<Waiting> waiting_;      ///< What the frames are.
    std::size_t first_frame_ = 0;
    std::size_t frame_count_ = 0;
    ControlFrame* held_first_ = nullptr;
    ControlFrame* held_last_ = nullptr;
    std::size_t held_bytes_ = 0;
    std::array<std::uint8_t, max_control_bytes> pong_{};
    std::size_t pong_bytes_ = 0;
    bool pong_waits_ = false;
};

}  // namespace trunkline::websocket
