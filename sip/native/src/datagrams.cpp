#include "trunkline/signalling/datagrams.hpp"

#include <algorithm>
#include <cerrno>

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
    return recvmmsg(descriptor, headers_.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
}

Endpoint Datagrams::source(std::size_t place) const {
    return endpoint_of(sources_[place], headers_[place].msg_hdr.msg_namelen);
}

int send_datagram(int descriptor, std::string_view data, const Endpoint& remote) {
    const auto sent =
        sendto(descriptor, data.data(), data.size(), MSG_DONTWAIT, address_of(remote), remote.size);
    return sent < 0 ? errno : 0;
}

}  // namespace trunkline::signalling
