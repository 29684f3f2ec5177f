// The control thread's hold on streams: every order becomes a command for the shard that owns the stream.

#include "trunkline/engine/stream_handle.hpp"

#include <utility>

#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/tap_handle.hpp"
#include "trunkline/engine/thread.hpp"

namespace trunkline::engine {

namespace {

/// Gives a port back to its pool when it is destroyed. Held by the command that closes the socket, which the
/// control thread destroys after it ran: only then can the port be bound again.
class PortLease {
  public:
    PortLease(PortPool& pool, std::uint16_t port) : pool_(&pool), port_(port) {}
    PortLease(PortLease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), port_(other.port_) {}
    PortLease& operator=(PortLease&&) = delete;
    ~PortLease() {
        if (pool_ != nullptr) pool_->give_back(port_, monotonic_ns());
    }

  private:
    PortPool* pool_;
    std::uint16_t port_;
};

}  // namespace

StreamHandle::StreamHandle(std::shared_ptr<Engine> engine, Shard& shard, Stream* stream,
                           std::uint16_t udp_port)
    : engine_(std::move(engine)), shard_(&shard), stream_(stream), id_(stream->id()), udp_port_(udp_port) {}

void StreamHandle::connect(MediaSettings settings) {
    if (!open()) return;
    if (settings.rtcp_remote) open_rtcp_port();
    const StreamFigures& figures = stream_->figures();
    std::optional<std::uint32_t> ssrc_in;
    if (figures.packets_in.get() > 0) ssrc_in = figures.ssrc_in.get();
    SrtpChange srtp =
        srtp_.update(settings.srtp_send, settings.srtp_receive, figures.ssrc_out.get(), ssrc_in);
    settings.srtp_send.reset();
    settings.srtp_receive.reset();
    // With nothing to send yet, what was agreed matters to the first packet and is in force by then.
    order([settings, srtp = std::move(srtp)](
              Stream& stream, std::int64_t now_ns) mutable { stream.connect(settings, srtp, now_ns); },
          has_output_);
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
    shard_->submit(make_command([one = stream_, two = other.stream_](std::int64_t) { one->link(*two); }),
                   false);
    return true;
}

void StreamHandle::unlink() {
    order([](Stream& stream, std::int64_t) { stream.unlink(); }, false);
}

void StreamHandle::play(std::unique_ptr<graph::Playback> playback) {
    has_output_ = true;
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

void StreamHandle::send_dtmf(std::unique_ptr<DtmfText> text) {
    has_output_ = true;
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
    order([listener = std::move(listener)](Stream& stream, std::int64_t now_ns) mutable {
        stream.attach_listener(listener.release(), now_ns);
    });
    return attached;
}

void StreamHandle::detach_listener(Listener* listener) {
    order([listener](Stream& stream, std::int64_t now_ns) { stream.detach_listener(listener, now_ns); });
}

int StreamHandle::start_recording(std::uint64_t recording_id, const std::string& path,
                                  std::uint16_t channels) {
    if (!open()) return 0;
    has_output_ = true;
    const int descriptor = io::WavFile::create(path);
    if (descriptor < 0) return -descriptor;
    auto recording = std::make_unique<Recording>(recording_id, descriptor, channels);
    auto recorder = std::make_unique<Recorder>(recording.get());
    engine_->writer_->add(std::move(recording));
    order([recorder = std::move(recorder)](Stream& stream, std::int64_t now_ns) mutable {
        stream.attach_recorder(recorder.release(), now_ns);
    });
    return 0;
}

void StreamHandle::stop_recording() {
    order([](Stream& stream, std::int64_t now_ns) { stream.detach_recorder(now_ns); });
}

std::shared_ptr<TapHandle> StreamHandle::open_tap(graph::AudioFormat format) {
    if (!open()) return nullptr;
    if (const auto before = tap_.lock()) before->close();
    has_output_ = true;
    const std::uint64_t id = engine_->next_id();
    auto tap = std::make_unique<Tap>(id, id_, format, monotonic_ns(), shard_->outlet());
    auto handle = std::make_shared<TapHandle>(shared_from_this(), id, tap.get(), format);
    tap_ = handle;
    order([tap = std::move(tap)](Stream& stream, std::int64_t now_ns) mutable {
        stream.attach_tap(tap.release(), now_ns);
    });
    return handle;
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
    if (const auto tap = tap_.lock()) tap->tap_ = nullptr;
    auto action = [shard = shard_, stream = std::exchange(stream_, nullptr),
                   lease = PortLease(engine_->ports_, udp_port_)](std::int64_t now_ns) {
        shard->remove(stream, now_ns);
    };
    shard_->submit(make_command(std::move(action)));
    engine_->closed(*this);
}

}  // namespace trunkline::engine
