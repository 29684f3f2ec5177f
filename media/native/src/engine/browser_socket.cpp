#include "trunkline/engine/browser_socket.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

std::array<std::uint8_t, BrowserSocket::header_bytes> header_of(const io::Address& source) {
    std::array<std::uint8_t, BrowserSocket::header_bytes> header{};
    const bool v6 = source.family() == AF_INET6;
    header[0] = v6 ? 6 : 4;
    header[1] = static_cast<std::uint8_t>(source.udp_port() >> 8);
    header[2] = static_cast<std::uint8_t>(source.udp_port());
    const auto host = source.host_bytes();
    std::memcpy(&header[3], host.data(), host.size());
    return header;
}

}  // namespace

BrowserSocket::BrowserSocket(std::shared_ptr<io::UdpSocket> socket, int upward, Shard& shard)
    : socket_(std::move(socket)), upward_(upward), shard_(shard) {}

BrowserSocket::~BrowserSocket() {
    ::close(upward_);
}

void BrowserSocket::forget(BrowserLeg* leg) {
    table_.forget(*leg);
    if (leg->stream != nullptr) leg->stream->join(nullptr);
    shard_.event_queue().discard(leg);
}

void BrowserSocket::shut() {
    shard_.unwatch(descriptor(), *this);
}

bool BrowserSocket::receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) {
    const std::size_t count = socket_->receive(batch);
    if (count != 0) low_latency = false;
    for (std::size_t n = 0; n < count; ++n) {
        if (batch.truncated(n)) {
            figures_.invalid.add(1);
        } else {
            take(batch.datagram(n), batch.source(n), relayed, now_ns);
        }
    }
    return count == io::batch_datagrams;
}

void BrowserSocket::take(std::span<std::uint8_t> datagram, const io::Address& source, io::SendBatch& relayed,
                         std::int64_t now_ns) {
    const Muxed kind = demultiplex(datagram);
    if (kind == Muxed::stun) return pass_upward(datagram, source);
    if (kind == Muxed::other) return figures_.invalid.add(1);
    BrowserLeg* leg = table_.find(source);
    if (leg == nullptr) return figures_.foreign.add(1);
    if (kind == Muxed::dtls) return pass_upward(datagram, source);
    take_packet(*leg, datagram, relayed, now_ns);
}

void BrowserSocket::take_packet(BrowserLeg& leg, std::span<std::uint8_t> datagram, io::SendBatch& relayed,
                                std::int64_t now_ns) {
    leg.packets.add(1);
    if (leg.stream != nullptr) {
        low_latency |= leg.stream->low_latency;
        leg.stream->take_from_browser(datagram, relayed, now_ns);
    } else if (!leg.port.empty()) {
        (void)socket_->send(datagram, leg.port);
    }
}

/// Hand a datagram to the control thread; one that finds no room is lost, as on any network.
void BrowserSocket::pass_upward(std::span<std::uint8_t> datagram, const io::Address& source) {
    auto header = header_of(source);
    std::array<iovec, 2> parts{{{header.data(), header.size()}, {datagram.data(), datagram.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    if (sendmsg(upward_, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) figures_.unread.add(1);
}

}  // namespace trunkline::engine
