// The control thread's hold on browsers' legs: every order becomes a command for the shard that owns what it
// is about, the socket or the stream.

#include "trunkline/engine/browser_socket_handle.hpp"

#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::engine {

bool BrowserSocketHandle::send(std::span<const std::uint8_t> datagram, const io::Address& to) {
    return open() && udp_->send(datagram, to);
}

std::shared_ptr<BrowserLegHandle> BrowserSocketHandle::open_leg() {
    if (!open()) return nullptr;
    auto handle = std::make_shared<BrowserLegHandle>(shared_from_this(), new BrowserLeg);
    legs_.insert(handle.get());
    return handle;
}

void BrowserSocketHandle::release() {
    if (!open()) return;
    while (!legs_.empty()) {
        (*legs_.begin())->close();
    }
    engine_->closed(*this);
    auto action = [shard = shard_, socket = std::exchange(socket_, nullptr)](std::int64_t) {
        socket->shut();
        shard->event_queue().discard_soon(socket);
    };
    shard_->submit(make_command(std::move(action)));
    udp_.reset();
}

void BrowserLegHandle::learn(const io::Address& source) {
    if (leg_ == nullptr) return;
    owner_->shard_->submit(make_command(
        [socket = owner_->socket_, leg = leg_, source](std::int64_t) { socket->learn(*leg, source); }));
}

void BrowserLegHandle::select(const io::Address& to) {
    if (leg_ == nullptr) return;
    selected_ = to;
    lead();
}

bool BrowserLegHandle::connect(const io::Address& local) {
    if (leg_ == nullptr) return false;
    const auto stream = owner_->engine_->stream_at(local.udp_port());
    if (stream == nullptr) return false;
    if (stream == stream_.lock()) return true;
    leave_stream();
    stream_ = stream;
    Stream* const joined = stream->shard_ == owner_->shard_ ? stream->stream_ : nullptr;
    owner_->shard_->submit(make_command([leg = leg_, joined, local](std::int64_t) {
        if (leg->stream != nullptr) leg->stream->join(nullptr);
        if (joined != nullptr) joined->join(leg);
        // Of a stream that was closed, another may have the port.
        leg->port = joined != nullptr ? io::Address() : local;
    }));
    lead();
    return true;
}

void BrowserLegHandle::close() {
    if (leg_ == nullptr) return;
    leave_stream();
    owner_->legs_.erase(this);
    owner_->shard_->submit(make_command([socket = owner_->socket_, leg = std::exchange(leg_, nullptr)](
                                            std::int64_t) { socket->forget(leg); }));
}

/// Have the stream send to the browser.
void BrowserLegHandle::lead() {
    const auto stream = stream_.lock();
    if (stream == nullptr || !selected_.reachable()) return;
    auto outlet = std::make_unique<Outlet>();
    outlet->socket = owner_->udp_;
    outlet->to = selected_;
    stream->order([outlet = std::move(outlet)](Stream& sending, std::int64_t) mutable {
        sending.send_through(outlet.release());
    });
}

/// Have the stream send through its own socket, as before it was joined.
void BrowserLegHandle::leave_stream() {
    if (const auto stream = stream_.lock(); stream != nullptr) {
        stream->order([](Stream& sending, std::int64_t) { sending.send_through(nullptr); });
    }
    stream_.reset();
}

}  // namespace trunkline::engine
