#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "trunkline/io/address.hpp"
#include "trunkline/util/counter.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

class Stream;

/// One browser's leg, as the thread of the browsers' socket knows it.
struct BrowserLeg final : util::Node {
    Stream* stream = nullptr;          ///< If it is of this thread; else
    io::Address port;                  ///< the address at which it receives, else empty.
    std::vector<io::Address> sources;  ///< Addresses that are its own.
    util::Counter packets;             ///< Of RTP and RTCP that came from the browser.
};

/// The protocols that share the browsers' socket, by the first byte of a datagram (RFC 7983).
enum class Muxed : std::uint8_t { stun, dtls, rtp, other };

/// What a datagram may be. One that is too short for its protocol, or without STUN's cookie, is `other`.
Muxed demultiplex(std::span<const std::uint8_t> datagram);

/// Whose a datagram is: by its source, which is known once a signed check has come from it.
class BrowserTable {
  public:
    /// Packets from this address are the leg's from now on, whosever they were.
    void learn(BrowserLeg& leg, const io::Address& source);

    /// Nothing is the leg's any more.
    void forget(const BrowserLeg& leg);

    /// The leg of a source; null for an unknown one.
    BrowserLeg* find(const io::Address& source) const;

    std::size_t size() const { return legs_.size(); }

  private:
    std::unordered_map<io::Address, BrowserLeg*, io::Address::Hash> legs_;
};

}  // namespace trunkline::engine
