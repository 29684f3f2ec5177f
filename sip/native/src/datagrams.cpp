#include "trunkline/signalling/datagrams.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trunkline/signalling/endpoint.hpp"

namespace trunkline::signalling {

Datagrams::Datagrams() : bytes_(std::make_unique_for_overwrite<char[]>(most_at_once * most_bytes)) {
    for (std::size_t place = 0; place < most_at_once; ++place)
        places_[place] = {bytes_.get() + place * most_bytes, most_bytes};
}

int Datagrams::receive(int descriptor, std::size_t most) {
    most = std::min(most, most_at_once);
    for (std::size_t place = 0; place < most; ++place) {
        headers_[place] = {};
        headers_[place].msg_hdr.msg_iov = &places_[place];
        headers_[place].msg_hdr.msg_iovlen = 1;
        headers_[place].msg_hdr.msg_name = &sources_[place];
        headers_[place].msg_hdr.msg_namelen = sizeof(sources_[place]);
    }
    if (most > 0) {
        headers_[0].msg_hdr.msg_control = stamp_.data();
        headers_[0].msg_hdr.msg_controllen = stamp_.size();
    }
    return recvmmsg(descriptor, headers_.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
}

Endpoint Datagrams::source(std::size_t place) const {
    return endpoint_of(sources_[place], headers_[place].msg_hdr.msg_namelen);
}

std::optional<std::int64_t> Datagrams::arrived_at_ns() const {
    constexpr std::int64_t ns_per_s = 1'000'000'000;
    const msghdr& header = headers_[0].msg_hdr;
    if (header.msg_controllen < sizeof(cmsghdr)) return std::nullopt;
    const cmsghdr* const found = CMSG_FIRSTHDR(&header);
    if (found == nullptr || found->cmsg_level != SOL_SOCKET || found->cmsg_type != SO_TIMESTAMPNS)
        return std::nullopt;
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(found), sizeof(stamp));
    return stamp.tv_sec * ns_per_s + stamp.tv_nsec;
}

bool is_keep_alive(std::string_view data) {
    return data.find_first_not_of(std::string_view("\r\n\0 ", 4)) == std::string_view::npos;
}

int send_datagram(int descriptor, std::string_view data, const Endpoint& remote) {
    // A socket that gets ICMP errors (IP_RECVERR) returns that of an earlier datagram, to whomever, and sends
    // nothing; the call also takes the error away.
    constexpr int most_attempts = 4;
    int refused = 0;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        const auto sent =
            sendto(descriptor, data.data(), data.size(), MSG_DONTWAIT, address_of(remote), remote.size);
        if (sent >= 0) return 0;
        refused = errno;
        if (refused == EAGAIN || refused == EWOULDBLOCK || refused == EBADF) break;
    }
    return refused;
}

}  // namespace trunkline::signalling
