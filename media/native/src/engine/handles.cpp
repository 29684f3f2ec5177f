// The control thread's handles: every order becomes a command for the shard that owns the stream.

#include <algorithm>
#include <cstring>
#include <utility>

#include "trunkline/engine/engine.hpp"
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

void StreamHandle::connect(const MediaSettings& settings) {
    if (!open()) return;
    // With nothing to send yet, what was agreed matters to the first packet and is in force by then.
    shard_->submit(make_command([stream = stream_, settings](std::int64_t now_ns) {
                       stream->connect(settings, now_ns);
                   }),
                   has_output_);
}

bool StreamHandle::link(StreamHandle& other) {
    if (!open() || !other.open()) return true;
    if (shard_ != other.shard_) return false;
    shard_->submit(make_command([one = stream_, two = other.stream_](std::int64_t) { one->link(*two); }),
                   false);
    return true;
}

void StreamHandle::unlink() {
    if (!open()) return;
    shard_->submit(make_command([stream = stream_](std::int64_t) { stream->unlink(); }), false);
}

void StreamHandle::play(std::unique_ptr<graph::Clip> clip) {
    if (!open()) return;
    has_output_ = true;
    shard_->submit(make_command([stream = stream_, clip = std::move(clip)](std::int64_t now_ns) mutable {
        stream->play(clip.release(), now_ns);
    }));
}

void StreamHandle::stop_playback() {
    if (!open()) return;
    shard_->submit(make_command([stream = stream_](std::int64_t now_ns) { stream->stop_playback(now_ns); }));
}

void StreamHandle::send_dtmf(std::unique_ptr<DtmfText> text) {
    if (!open()) return;
    has_output_ = true;
    shard_->submit(make_command([stream = stream_, text = std::move(text)](std::int64_t now_ns) mutable {
        stream->send_dtmf(text.release(), now_ns);
    }));
}

void StreamHandle::set_media_timeout(std::int64_t timeout_ns) {
    if (!open()) return;
    shard_->submit(make_command([stream = stream_, timeout_ns](std::int64_t now_ns) {
                       stream->set_media_timeout(timeout_ns, now_ns);
                   }),
                   false);
}

int StreamHandle::start_recording(std::uint64_t recording_id, const std::string& path,
                                  const RecordingOptions& options) {
    if (!open()) return 0;
    int error = 0;
    auto recorder = engine_->make_recorder(recording_id, path, options, error);
    if (recorder == nullptr) return error;
    has_output_ = true;
    shard_->submit(
        make_command([stream = stream_, recorder = std::move(recorder)](std::int64_t now_ns) mutable {
            stream->attach_recorder(recorder.release(), now_ns);
        }));
    return 0;
}

void StreamHandle::stop_recording() {
    if (!open()) return;
    shard_->submit(
        make_command([stream = stream_](std::int64_t now_ns) { stream->detach_recorder(now_ns); }));
}

void StreamHandle::pause_recording(bool paused) {
    if (!open()) return;
    shard_->submit(make_command(
        [stream = stream_, paused](std::int64_t now_ns) { stream->pause_recorder(paused, now_ns); }));
}

std::shared_ptr<TapHandle> StreamHandle::open_tap(graph::AudioFormat format) {
    if (!open()) return nullptr;
    if (const auto before = tap_.lock()) before->close();
    has_output_ = true;
    const std::uint64_t id = engine_->next_id();
    auto tap = std::make_unique<Tap>(id, id_, format, monotonic_ns(), shard_->outlet());
    auto handle = std::make_shared<TapHandle>(shared_from_this(), id, tap.get(), format);
    tap_ = handle;
    shard_->submit(make_command([stream = stream_, tap = std::move(tap)](std::int64_t now_ns) mutable {
        stream->attach_tap(tap.release(), now_ns);
    }));
    return handle;
}

StreamSnapshot StreamHandle::snapshot() const {
    if (!open()) return last_;
    const StreamFigures& figures = stream_->figures();
    StreamSnapshot snapshot;
    snapshot.packets_in = figures.packets_in.get();
    snapshot.bytes_in = figures.bytes_in.get();
    snapshot.packets_out = figures.packets_out.get();
    snapshot.bytes_out = figures.bytes_out.get();
    snapshot.lost = figures.lost.get();
    snapshot.duplicates = figures.duplicates.get();
    snapshot.late = figures.late.get();
    snapshot.dropped_foreign = figures.dropped_foreign.get();
    snapshot.dropped_invalid = figures.dropped_invalid.get();
    snapshot.dropped_unwanted = figures.dropped_unwanted.get();
    snapshot.send_errors = figures.send_errors.get();
    snapshot.rtcp_in = figures.rtcp_in.get();
    snapshot.jitter_us = figures.jitter_us.get();
    snapshot.ssrc_in = figures.ssrc_in.get();
    snapshot.ssrc_out = stream_->ssrc();
    return snapshot;
}

void StreamHandle::close() {
    if (!open()) return;
    last_ = snapshot();
    if (const auto tap = tap_.lock()) tap->tap_ = nullptr;
    auto action = [shard = shard_, stream = std::exchange(stream_, nullptr),
                   lease = PortLease(engine_->ports_, udp_port_)](std::int64_t now_ns) {
        shard->remove(stream, now_ns);
    };
    shard_->submit(make_command(std::move(action)));
    engine_->closed(*this);
}

std::size_t TapHandle::write(const std::uint8_t* bytes, std::size_t size) {
    if (!open() || size == 0) return 0;
    const std::size_t unit = format_.sample_bytes();
    const std::uint64_t capacity_bytes = std::uint64_t{capacity_ms} * format_.bytes_per_ms();
    const std::uint64_t room = capacity_bytes - std::min(queued_bytes(), capacity_bytes);
    const std::size_t carried = has_odd_byte_ ? 1 : 0;
    const std::size_t whole = (carried + size) / unit * unit;
    const std::size_t kept = std::min<std::uint64_t>(whole, room / unit * unit);
    if (kept != 0) {
        auto item = std::make_unique<graph::PlayoutItem>();
        item->size_bytes = static_cast<std::uint32_t>(kept);
        item->bytes = std::make_unique_for_overwrite<std::uint8_t[]>(kept);
        if (carried != 0) item->bytes[0] = odd_byte_;
        std::memcpy(item->bytes.get() + carried, bytes, kept - carried);
        written_bytes_ += kept;
        append(std::move(item), false);
    }
    // Half a sample waits for its other half.
    has_odd_byte_ = carried + size > whole;
    if (has_odd_byte_) odd_byte_ = bytes[size - 1];
    return whole - kept;
}

void TapHandle::mark(std::uint32_t mark) {
    if (!open()) return;
    auto item = std::make_unique<graph::PlayoutItem>();
    item->is_mark = true;
    item->mark = mark;
    // With nothing before it, it is told at once.
    append(std::move(item), queued_bytes() == 0);
}

void TapHandle::clear() {
    if (!open()) return;
    cleared_bytes_ = written_bytes_;
    has_odd_byte_ = false;
    stream_->shard_->submit(make_command([tap = tap_](std::int64_t) { tap->playout().clear(); }));
}

std::uint32_t TapHandle::queued_ms() const {
    return open() ? static_cast<std::uint32_t>(queued_bytes() / format_.bytes_per_ms()) : 0;
}

void TapHandle::close() {
    if (!open()) return;
    tap_ = nullptr;
    stream_->shard_->submit(
        make_command([stream = stream_->stream_](std::int64_t now_ns) { stream->detach_tap(now_ns); }));
}

/// The stream's clock is running, so that audio is picked up within 20 ms without a wake-up.
void TapHandle::append(std::unique_ptr<graph::PlayoutItem> item, bool wake) {
    auto action = [tap = tap_, item = std::move(item)](std::int64_t now_ns) mutable {
        tap->playout().append(item.release(), now_ns);
    };
    stream_->shard_->submit(make_command(std::move(action)), wake);
}

std::uint64_t TapHandle::queued_bytes() const {
    return written_bytes_ - std::max(tap_->playout().consumed_bytes(), cleared_bytes_);
}

bool TapHandle::open() const {
    return tap_ != nullptr && stream_->open();
}

}  // namespace trunkline::engine
