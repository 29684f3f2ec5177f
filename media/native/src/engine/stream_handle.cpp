// The control thread's hold on streams: every order becomes a command for the shard that owns the stream.

#include "trunkline/engine/stream_handle.hpp"

#include <stdexcept>
#include <utility>

#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/frame_listener.hpp"
#include "trunkline/engine/random.hpp"
#include "trunkline/engine/tap_handle.hpp"
#include "trunkline/engine/thread.hpp"

namespace trunkline::engine {

StreamHandle::StreamHandle(std::shared_ptr<Engine> engine, Shard& shard, Stream* stream, PortLease lease)
    : engine_(std::move(engine)),
      shard_(&shard),
      stream_(stream),
      id_(stream->id()),
      ssrc_out_(stream->figures().ssrc_out.get()),
      udp_port_(lease.port()),
      lease_(std::move(lease)) {}

void StreamHandle::connect(MediaSettings settings) {
    if (!open()) return;
    if (!codec::supported(settings.format)) throw std::invalid_argument("the engine has no such codec");
    // The stream takes another SSRC by itself when the far end has the same (RFC 3550 8.2).
    const StreamFigures& figures = stream_->figures();
    const std::uint32_t shown = figures.ssrc_out.get();
    if (shown != ssrc_before_) ssrc_out_ = shown;
    const bool clock_changes = outfit_.settings().format.clock_hz != settings.format.clock_hz;
    if (clock_changes || srtp_.spent(settings.srtp_send)) {
        ssrc_before_ = shown;
        ssrc_out_ = random_value<std::uint32_t>();
    }
    if (settings.rtcp_remote) open_rtcp_port();
    std::optional<std::uint32_t> ssrc_in;
    if (figures.packets_in.get() > 0) ssrc_in = figures.ssrc_in.get();
    SrtpChange srtp = srtp_.update(settings.srtp_send, settings.srtp_receive, ssrc_out_, ssrc_in);
    settings.srtp_send.reset();
    settings.srtp_receive.reset();
    settings.continuous = engine_->options_.continuous;
    outfit_.connect(settings);
    // The linked stream first: it may have to decode or encode by the time this one is fed otherwise.
    if (const auto peer = peer_.lock(); peer != nullptr && peer.get() != this) peer->equip();
    // With nothing to send yet, what was agreed matters to the first packet and is in force by then.
    order(
        [settings, srtp = std::move(srtp), parts = missing_parts(), ssrc = ssrc_out_](
            Stream& stream, std::int64_t now_ns) mutable {
            stream.equip(std::move(parts), now_ns);
            stream.connect(settings, srtp, ssrc, now_ns);
        },
        outfit_.speaks());
    if (settings.dtmf_tones) detectors_.need_keys(*this);
}

/// Bind the odd port, which is ours with the even one. Where another process holds it, reports are sent from
/// the port of RTP, and what a far end sends to the odd one is lost.
void StreamHandle::open_rtcp_port() {
    if (!open() || has_rtcp_port_) return;
    io::UdpSocket socket;
    const auto odd = static_cast<std::uint16_t>(udp_port_ + 1);
    if (socket.open(*io::Address::parse(engine_->options_.listen, odd)) != 0) return;
    has_rtcp_port_ = true;
    order(
        [shard = shard_, socket = std::move(socket)](Stream& stream, std::int64_t) mutable {
            const int descriptor = socket.descriptor();
            stream.open_rtcp(std::move(socket));
            (void)shard->watch(descriptor, stream.rtcp());
        },
        false);
}

bool StreamHandle::link(StreamHandle& other) {
    if (!open() || !other.open()) return true;
    if (shard_ != other.shard_) return false;
    const auto before = forget_peer();
    const auto others = other.forget_peer();
    peer_ = other.weak_from_this();
    other.peer_ = weak_from_this();
    equip_with_peer();
    order([two = other.stream_](Stream& one, std::int64_t now_ns) { one.link(*two, now_ns); }, false);
    for (const auto& left : {before, others}) {
        if (left != nullptr && left.get() != this && left.get() != &other) left->equip();
    }
    return true;
}

void StreamHandle::unlink() {
    if (!open()) return;
    const auto before = forget_peer();
    order([](Stream& stream, std::int64_t now_ns) { stream.unlink(now_ns); }, false);
    equip();
    if (before != nullptr && before.get() != this) before->equip();
}

void StreamHandle::mute(bool received, bool sent) {
    if (!open()) return;
    if (const bool any = received || sent; any != outfit_.uses(Use::silence)) use(Use::silence, any);
    order([received, sent](Stream& stream, std::int64_t now_ns) { stream.mute(received, sent, now_ns); });
}

void StreamHandle::use(Use what, bool begins) {
    outfit_.note(what, begins);
    equip_with_peer();
}

/// No longer linked with anything; returns what it was linked with.
std::shared_ptr<StreamHandle> StreamHandle::forget_peer() {
    const auto before = peer_.lock();
    peer_.reset();
    if (before != nullptr) before->peer_.reset();
    return before;
}

StreamParts StreamHandle::missing_parts() {
    const auto peer = peer_.lock();
    return outfit_.make_missing(peer != nullptr ? &peer->outfit_ : nullptr);
}

void StreamHandle::equip() {
    if (!open()) return;
    StreamParts parts = missing_parts();
    if (parts.empty()) return;
    order([parts = std::move(parts)](Stream& stream,
                                     std::int64_t now_ns) mutable { stream.equip(std::move(parts), now_ns); },
          false);
}

void StreamHandle::equip_with_peer() {
    equip();
    if (const auto peer = peer_.lock(); peer != nullptr && peer.get() != this) peer->equip();
}

void StreamHandle::play(std::unique_ptr<graph::Playback> playback) {
    if (!outfit_.uses(Use::output)) use(Use::output);
    if (playback->ends_by_speech) detectors_.need_speech(*this);
    order([playback = std::move(playback)](Stream& stream, std::int64_t now_ns) mutable {
        stream.play(playback.release(), now_ns);
    });
}

void StreamHandle::pause_playback() {
    order([](Stream& stream, std::int64_t now_ns) { stream.pause_playback(now_ns); });
}

void StreamHandle::resume_playback() {
    order([](Stream& stream, std::int64_t now_ns) { stream.resume_playback(now_ns); });
}

void StreamHandle::stop_playback() {
    order([](Stream& stream, std::int64_t now_ns) { stream.stop_playback(now_ns); });
}

void StreamHandle::play_track(std::size_t track, std::unique_ptr<graph::Playback> playback) {
    if (track >= graph::TrackMixer::max_tracks) throw std::invalid_argument("a stream has four tracks");
    if (!open()) return;
    if (!outfit_.uses(Use::tracks)) use(Use::tracks);
    auto mixer = std::make_unique<graph::TrackMixer>(stream_->playback_listener());
    order([track, playback = std::move(playback), mixer = std::move(mixer)](Stream& stream,
                                                                            std::int64_t now_ns) mutable {
        stream.play_track(track, playback.release(), mixer.release(), now_ns);
    });
}

void StreamHandle::stop_track(std::size_t track) {
    if (track >= graph::TrackMixer::max_tracks) throw std::invalid_argument("a stream has four tracks");
    order([track](Stream& stream, std::int64_t now_ns) { stream.stop_track(track, now_ns); });
}

void StreamHandle::send_dtmf(std::unique_ptr<DtmfText> text) {
    if (!outfit_.uses(Use::output)) use(Use::output);
    order([text = std::move(text)](Stream& stream, std::int64_t now_ns) mutable {
        stream.send_dtmf(text.release(), now_ns);
    });
}

void StreamHandle::set_media_timeout(std::int64_t timeout_ns, std::int64_t hold_timeout_ns) {
    order([=](Stream& stream,
              std::int64_t now_ns) { stream.set_media_timeout(timeout_ns, hold_timeout_ns, now_ns); },
          false);
}

Listener* StreamHandle::attach_listener(std::unique_ptr<Listener> listener) {
    Listener* attached = listener.get();
    use(Use::listener);
    order([listener = std::move(listener)](Stream& stream, std::int64_t now_ns) mutable {
        stream.attach_listener(listener.release(), now_ns);
    });
    return attached;
}

void StreamHandle::detach_listener(Listener* listener) {
    order([listener](Stream& stream, std::int64_t now_ns) { stream.detach_listener(listener, now_ns); });
    use(Use::listener, false);
}

int StreamHandle::start_recording(std::uint64_t recording_id, const std::string& path,
                                  const RecordingOptions& options) {
    if (!open()) return 0;
    int error = 0;
    auto recorder = engine_->make_recorder(recording_id, path, options, error);
    if (recorder == nullptr) return error;
    if (!outfit_.uses(Use::recorder)) use(Use::recorder);
    order([recorder = std::move(recorder)](Stream& stream, std::int64_t now_ns) mutable {
        stream.attach_recorder(recorder.release(), now_ns);
    });
    return 0;
}

void StreamHandle::pause_recording(bool paused) {
    order([paused](Stream& stream, std::int64_t now_ns) { stream.pause_recorder(paused, now_ns); });
}

void StreamHandle::stop_recording() {
    order([](Stream& stream, std::int64_t now_ns) { stream.detach_recorder(now_ns); });
    if (outfit_.uses(Use::recorder)) use(Use::recorder, false);
}

void StreamHandle::comfort_noise(bool active) {
    if (active && !outfit_.uses(Use::output)) use(Use::output);
    order([active](Stream& stream, std::int64_t now_ns) { stream.fill_with_noise(active, now_ns); });
}

std::shared_ptr<TapHandle> StreamHandle::open_tap(graph::AudioFormat format, bool both) {
    if (!open()) return nullptr;
    if (const auto before = tap_.lock()) before->close();
    use(Use::tap);
    const std::uint64_t id = engine_->next_id();
    const std::uint64_t sent_id = both ? engine_->next_id() : 0;
    auto tap = std::make_unique<Tap>(id, sent_id, id_, format, stream_->figures(), shard_->event_queue());
    auto handle = std::make_shared<TapHandle>(shared_from_this(), id, sent_id, tap.get(), format);
    tap_ = handle;
    order([tap = std::move(tap)](Stream& stream, std::int64_t now_ns) mutable {
        stream.attach_tap(tap.release(), now_ns);
    });
    return handle;
}

std::shared_ptr<FrameListenerHandle> StreamHandle::listen(std::uint32_t rate_hz) {
    if (rate_hz != 8000 && rate_hz != 16000)
        throw std::invalid_argument("listeners hear at 8000 or 16000 Hz");
    if (!open()) return nullptr;
    const std::uint64_t id = engine_->next_id();
    Listener* listener = attach_listener(std::make_unique<FrameListener>(id, rate_hz, shard_->event_queue()));
    return std::make_shared<FrameListenerHandle>(shared_from_this(), id, listener);
}

StreamSnapshot StreamHandle::snapshot() const {
    if (!open()) return last_;
    return take_snapshot(stream_->figures());
}

std::vector<rtp::QualityInterval> StreamHandle::intervals() const {
    return open() ? stream_->intervals() : last_intervals_;
}

void StreamHandle::close() {
    if (!open()) return;
    last_ = snapshot();
    last_intervals_ = intervals();
    const auto peer = forget_peer();
    if (const auto tap = tap_.lock()) tap->tap_ = nullptr;
    auto action = [shard = shard_, stream = std::exchange(stream_, nullptr),
                   lease = std::move(lease_)](std::int64_t now_ns) { shard->remove(stream, now_ns); };
    // What only relays does nothing by itself: the order is in force before its next packet would be, and
    // what it frees can wait for the thread's next turn. A call that ends need not wake the thread for each
    // leg.
    engine_->submit_closing(*shard_, make_command(std::move(action)), !outfit_.unused());
    engine_->closed(*this);
    if (peer != nullptr && peer.get() != this) peer->equip();
}

}  // namespace trunkline::engine
