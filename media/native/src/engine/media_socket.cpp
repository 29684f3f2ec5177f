#include "trunkline/engine/media_socket.hpp"

#include <utility>

namespace trunkline::engine {

namespace {

/// The type of a packet stands in the part that is never encrypted (RFC 5761 4).
SrtpKind kind_of(std::span<const std::uint8_t> datagram) {
    return rtp::is_rtcp(datagram) ? SrtpKind::rtcp : SrtpKind::rtp;
}

}  // namespace

static_assert(SrtpContext::max_growth_bytes <= io::protection_bytes);

MediaSocket::MediaSocket(io::UdpSocket socket, StreamFigures& figures, EventQueue& event_queue)
    : socket_(std::move(socket)), figures_(figures), event_queue_(event_queue) {}

void MediaSocket::protect(SrtpChange& change) {
    if (change.sent_changed) {
        if (srtp_out_ != nullptr) event_queue_.discard(srtp_out_);
        srtp_out_ = change.sent.release();
    }
    if (change.received_changed) srtp_in_.use(change.received.release(), event_queue_);
}

void MediaSocket::send_through(Outlet* outlet) {
    if (outlet_ != nullptr) event_queue_.discard(outlet_);
    outlet_ = outlet;
}

void MediaSocket::send(std::uint8_t* room, std::size_t size, const io::Address& to) {
    const std::span<const std::uint8_t> datagram(room, seal(room, size));
    if (datagram.empty() || !way().send(datagram, target(to))) {
        figures_.send_errors.add(1);
        return;
    }
    figures_.packets_out.add(1);
    figures_.bytes_out.add(datagram.size());
}

void MediaSocket::queue(io::SendBatch& batch, std::uint8_t* room, std::size_t size) {
    const std::size_t sealed_bytes = seal(room, size);
    if (sealed_bytes == 0) {
        figures_.send_errors.add(1);
        return;
    }
    batch.add({room, sealed_bytes});
}

void MediaSocket::flush(io::SendBatch& batch, const io::Address& to) {
    const std::size_t count = batch.size();
    if (count == 0) return;
    const std::size_t bytes = batch.total_bytes();
    const std::size_t sent = way().send(batch, target(to));
    figures_.packets_out.add(sent);
    // A batch the kernel took in part is rare enough to count its bytes whole or not at all.
    if (sent == count) figures_.bytes_out.add(bytes);
    if (sent < count) figures_.send_errors.add(count - sent);
}

void MediaSocket::send_rtcp(std::uint8_t* room, std::size_t size, io::UdpSocket* socket,
                            const io::Address& to) {
    const std::span<const std::uint8_t> datagram(room, seal(room, size));
    const bool sent = !datagram.empty() &&
                      (socket != nullptr ? socket->send(datagram, to) : way().send(datagram, target(to)));
    (sent ? figures_.rtcp_out : figures_.send_errors).add(1);
}

std::size_t MediaSocket::seal(std::uint8_t* room, std::size_t size) {
    if (srtp_out_ == nullptr) return size;
    return srtp_out_->protect(kind_of({room, size}), {room, size + io::protection_bytes}, size);
}

std::span<std::uint8_t> MediaSocket::unprotect(std::span<std::uint8_t> datagram) {
    const SrtpOpened opened = srtp_in_.open(kind_of(datagram), datagram, event_queue_);
    if (opened.verdict == SrtpVerdict::authentic) return datagram.first(opened.size_bytes);
    (opened.verdict == SrtpVerdict::repeated ? figures_.duplicates : figures_.dropped_unauthentic).add(1);
    return {};
}

}  // namespace trunkline::engine
