#include "trunkline/engine/browser_table.hpp"

#include <algorithm>

namespace trunkline::engine {

namespace {

constexpr std::size_t stun_header_bytes = 20;
constexpr std::size_t dtls_header_bytes = 13;
constexpr std::size_t shortest_rtp_bytes = 8;  // An RTCP packet without a report.
constexpr std::uint8_t stun_cookie[] = {0x21, 0x12, 0xA4, 0x42};

}  // namespace

Muxed demultiplex(std::span<const std::uint8_t> datagram) {
    if (datagram.size() < shortest_rtp_bytes) return Muxed::other;
    const std::uint8_t first = datagram[0];
    if (first >= 128 && first < 192) return Muxed::rtp;
    if (first >= 20 && first < 64) return datagram.size() < dtls_header_bytes ? Muxed::other : Muxed::dtls;
    const bool stun = first < 4 && datagram.size() >= stun_header_bytes &&
                      std::equal(std::begin(stun_cookie), std::end(stun_cookie), datagram.begin() + 4);
    return stun ? Muxed::stun : Muxed::other;
}

void BrowserTable::learn(BrowserLeg& leg, const io::Address& source) {
    BrowserLeg*& known = legs_[source];
    if (known == &leg) return;
    if (known != nullptr) std::erase(known->sources, source);
    known = &leg;
    leg.sources.push_back(source);
}

void BrowserTable::forget(const BrowserLeg& leg) {
    for (const io::Address& source : leg.sources) {
        const auto found = legs_.find(source);
        if (found != legs_.end() && found->second == &leg) legs_.erase(found);
    }
}

BrowserLeg* BrowserTable::find(const io::Address& source) const {
    const auto found = legs_.find(source);
    return found == legs_.end() ? nullptr : found->second;
}

}  // namespace trunkline::engine
