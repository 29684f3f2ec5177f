#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trunkline/engine/command.hpp"
#include "trunkline/engine/detectors.hpp"
#include "trunkline/engine/listener.hpp"
#include "trunkline/engine/port_pool.hpp"
#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/stream.hpp"
#include "trunkline/engine/stream_figures.hpp"
#include "trunkline/engine/stream_parts.hpp"
#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/graph/playout_queue.hpp"

namespace trunkline::engine {

class Engine;
class FrameListenerHandle;
class MonitorHandle;
class MonitorLine;
class TapHandle;

/// The control thread's hold on a stream. All methods are harmless after `close`.
class StreamHandle : public std::enable_shared_from_this<StreamHandle> {
  public:
    StreamHandle(std::shared_ptr<Engine> engine, Shard& shard, Stream* stream, PortLease lease);
    StreamHandle(const StreamHandle&) = delete;
    StreamHandle& operator=(const StreamHandle&) = delete;
    ~StreamHandle() { close(); }

    std::uint64_t id() const { return id_; }
    std::uint16_t udp_port() const { return udp_port_; }
    bool open() const { return stream_ != nullptr; }

    /// Throws `std::invalid_argument` for keys that cannot be used.
    void connect(MediaSettings settings);
    /// Returns false when the other stream lives on another shard.
    bool link(StreamHandle& other);
    void unlink();
    /// See `Stream::mute`.
    void mute(bool received, bool sent);
    void play(std::unique_ptr<graph::Playback> playback);
    void pause_playback();
    void resume_playback();
    void stop_playback();
    /// Add a playback to all that is sent, on a track below `graph::TrackMixer::max_tracks`.
    void play_track(std::size_t track, std::unique_ptr<graph::Playback> playback);
    void stop_track(std::size_t track);
    void send_dtmf(std::unique_ptr<DtmfText> text);
    void set_media_timeout(std::int64_t timeout_ns, std::int64_t hold_timeout_ns);
    /// Record to a file; its end is an event with `recording_id` for the stream. Returns 0 or the error
    /// number.
    int start_recording(std::uint64_t recording_id, const std::string& path, const RecordingOptions& options);
    void pause_recording(bool paused);
    void stop_recording();
    /// With `both`, frames of what is sent come under a number of their own, `TapHandle::sent_id`.
    std::shared_ptr<TapHandle> open_tap(graph::AudioFormat format, bool both = false);
    /// Hand out what is received, at 8000 or 16000 Hz; any number of times. Null when the stream is closed.
    std::shared_ptr<FrameListenerHandle> listen(std::uint32_t rate_hz);
    /// Have another stream, which is connected and may be on any shard, send what this one receives and what
    /// it sends. Nothing of this one changes. Null when one of them is closed.
    std::shared_ptr<MonitorHandle> monitor(const std::shared_ptr<StreamHandle>& hearing);
    /// Send soft noise where there is nothing else to send.
    void comfort_noise(bool active);
    /// Feed a listener with what the stream receives. What is returned only serves to detach it.
    Listener* attach_listener(std::unique_ptr<Listener> listener);
    void detach_listener(Listener* listener);
    /// Note that the stream begins or ends to be used for something that takes parts it may not have, and
    /// give it those. Must come before the order that begins the use.
    void use(Use what, bool begins = true);
    DetectorSlots& detectors() { return detectors_; }
    StreamSnapshot snapshot() const;
    /// Quality by intervals, the oldest first.
    std::vector<rtp::QualityInterval> intervals() const;
    void close();

    /// Run `action(Stream&, now_ns)` on the stream's thread, in order; nothing once closed.
    /// See `Shard::submit` for `wake`.
    template <typename Action>
    void order(Action action, bool wake = true) {
        if (!open()) return;
        shard_->submit(make_command([stream = stream_, action = std::move(action)](
                                        std::int64_t now_ns) mutable { action(*stream, now_ns); }),
                       wake);
    }

  private:
    void open_rtcp_port();

    friend class AgentSocketHandle;
    friend class BrowserLegHandle;
    friend class TapHandle;
    friend class Engine;
    friend class MonitorHandle;

    /// Detach the ear of a monitor.
    void end_monitor(Listener* ear);
    /// Send what a line has no more, and keep that until it cannot be asked for.
    void release_source(std::shared_ptr<MonitorLine> line);
    StreamParts missing_parts();
    void equip();
    void equip_with_peer();
    std::shared_ptr<StreamHandle> forget_peer();

    std::shared_ptr<Engine> engine_;
    StreamOutfit outfit_;
    std::weak_ptr<StreamHandle> peer_;  ///< The stream it is linked with, if that is open.
    Shard* shard_;
    Stream* stream_;  ///< Null once closed.
    std::uint64_t id_;
    std::uint32_t ssrc_out_;
    std::uint32_t ssrc_before_ = 0;  ///< What the stream still shows until the order to change it has run.
    std::uint16_t udp_port_;
    PortLease lease_;  ///< Goes with the command that closes the sockets.
    std::weak_ptr<TapHandle> tap_;
    DetectorSlots detectors_;
    bool has_rtcp_port_ = false;
    SrtpKeys srtp_;
    StreamSnapshot last_;
    std::vector<rtp::QualityInterval> last_intervals_;
};

}  // namespace trunkline::engine
