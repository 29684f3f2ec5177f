#include "trunkline/io/udp_socket.hpp"

#include <netinet/ip.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace trunkline::io {

namespace {

/// Expedited forwarding, as networks treat voice (RFC 4594 4.1).
constexpr int voice_tos = 0xB8;

void mark_as_voice(int descriptor, int family) {
    // Without the right to mark, or a network that looks, audio still flows.
    if (family == AF_INET6) {
        (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_TCLASS, &voice_tos, sizeof voice_tos);
    } else {
        (void)setsockopt(descriptor, IPPROTO_IP, IP_TOS, &voice_tos, sizeof voice_tos);
    }
}

}  // namespace

ReceiveBatch::ReceiveBatch() {
    for (std::size_t n = 0; n < batch_datagrams; ++n) {
        vectors_[n] = {buffers_[n].data(), buffer_bytes};
        msghdr& header = messages_[n].msg_hdr;
        header.msg_name = sources_[n].raw();
        header.msg_namelen = Address::raw_capacity;
        header.msg_iov = &vectors_[n];
        header.msg_iovlen = 1;
    }
}

SendBatch::SendBatch() {
    for (std::size_t n = 0; n < batch_datagrams; ++n) {
        messages_[n].msg_hdr.msg_iov = &vectors_[n];
        messages_[n].msg_hdr.msg_iovlen = 1;
    }
}

void SendBatch::add(std::span<const std::uint8_t> datagram) {
    if (size_ == batch_datagrams) return;
    vectors_[size_++] = {const_cast<std::uint8_t*>(datagram.data()), datagram.size()};
    total_bytes_ += datagram.size();
}

UdpSocket::UdpSocket(UdpSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
}

UdpSocket::~UdpSocket() {
    close();
}

int UdpSocket::open(const Address& local) {
    close();
    const int descriptor = socket(local.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (descriptor < 0) return errno;
    if (bind(descriptor, local.raw(), local.raw_size()) != 0) {
        const int error = errno;
        ::close(descriptor);
        return error;
    }
    mark_as_voice(descriptor, local.family());
    descriptor_ = descriptor;
    return 0;
}

void UdpSocket::adopt(int descriptor) {
    close();
    descriptor_ = descriptor;
    mark_as_voice(descriptor, local().family());
}

Address UdpSocket::local() const {
    Address address;
    socklen_t size = Address::raw_capacity;
    if (descriptor_ < 0 || getsockname(descriptor_, address.raw(), &size) != 0) return {};
    return address;
}

std::size_t UdpSocket::receive(ReceiveBatch& batch) {
    const int count = recvmmsg(descriptor_, batch.messages_.data(), batch_datagrams, MSG_DONTWAIT, nullptr);
    if (count <= 0) return 0;
    for (int n = 0; n < count; ++n) {
        // The kernel wrote the size of each source; the next read must offer the full room again.
        batch.messages_[static_cast<std::size_t>(n)].msg_hdr.msg_namelen = Address::raw_capacity;
    }
    return static_cast<std::size_t>(count);
}

bool UdpSocket::send(std::span<const std::uint8_t> datagram, const Address& to) {
    return sendto(descriptor_, datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL, to.raw(),
                  to.raw_size()) >= 0;
}

std::size_t UdpSocket::send(SendBatch& batch, const Address& to) {
    const std::size_t size = std::exchange(batch.size_, 0);
    batch.total_bytes_ = 0;
    if (size == 1) {
        const iovec& only = batch.vectors_[0];
        return send({static_cast<const std::uint8_t*>(only.iov_base), only.iov_len}, to) ? 1 : 0;
    }
    for (std::size_t n = 0; n < size; ++n) {
        batch.messages_[n].msg_hdr.msg_name = const_cast<sockaddr*>(to.raw());
        batch.messages_[n].msg_hdr.msg_namelen = to.raw_size();
    }
    const int sent = sendmmsg(descriptor_, batch.messages_.data(), static_cast<unsigned>(size),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

void UdpSocket::close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace trunkline::io
