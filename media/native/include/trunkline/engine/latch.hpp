#pragma once

#include <cstdint>

#include "trunkline/io/address.hpp"
#include "trunkline/rtp/packet.hpp"

namespace trunkline::engine {

/// Symmetric RTP (RFC 4961): where the far end really is, learnt from its first valid packets and then kept.
///
/// The signalled address is believed with its first packet. Any other source must send several packets in a
/// row first; one of another network than the signalled address also waits a moment for that, unless a NAT
/// must stand between. Once learnt, nobody takes the stream over: only a newly signalled address opens it
/// again, or, after the far end fell silent, the signalled address or a source in the same network as the
/// last, as a NAT that was restarted makes it.
class Latch {
  public:
    static constexpr std::int64_t silence_ns = 3'000'000'000;
    /// Time for which the signalled address has precedence over a source of another network.
    static constexpr std::int64_t precedence_ns = 200'000'000;
    /// Packets in a row that prove a source that was not signalled.
    static constexpr int proof_packets = 4;
    /// Likewise, where only the port is another than signalled (RFC 3550 A.1).
    static constexpr int proof_packets_same_host = 2;

    /// `own` is the address of our own socket, which nothing is sent to.
    explicit Latch(const io::Address& own = {}) : own_(own) {}

    /// The address signalled in SDP. The same as before changes nothing, nor does the wildcard address in
    /// between, which means hold in older offers (RFC 3264 8.4): nothing is sent meanwhile.
    void signal(const io::Address& remote);

    /// True if a valid packet from `source` belongs to the far end.
    bool accept(const io::Address& source, const rtp::Header& header, std::int64_t now_ns);

    bool latched() const { return latched_; }

    /// Number of times that a source was learnt.
    std::uint32_t moves() const { return moves_; }

    /// Known address of the far end; empty before anything was signalled.
    const io::Address& known() const { return latched_ ? source_ : signalled_; }

    /// Destination; not reachable when nothing may be sent.
    const io::Address& remote() const { return paused_ ? nowhere_ : known(); }

    const io::Address& signalled() const { return signalled_; }

    /// True if an address is one of our own two ports.
    bool is_own(const io::Address& address) const;

  private:
    /// A source that is not proved yet.
    struct Candidate {
        io::Address source;
        std::uint32_t ssrc = 0;
        std::uint16_t next_sequence = 0;
        int packets = 0;
        int rank = 0;
        std::int64_t first_ns = 0;
        std::int64_t last_ns = 0;
    };

    bool proves(const io::Address& source, const rtp::Header& header, std::int64_t now_ns);
    bool consider(const io::Address& source, const rtp::Header& header, std::int64_t now_ns);
    int rank_of(const io::Address& source) const;
    void learn(const io::Address& source, std::int64_t now_ns);

    io::Address own_;
    io::Address signalled_;
    io::Address source_;
    io::Address nowhere_;
    bool latched_ = false;
    bool paused_ = false;
    std::uint32_t moves_ = 0;
    std::int64_t last_ns_ = 0;
    Candidate candidate_;
};

}  // namespace trunkline::engine
