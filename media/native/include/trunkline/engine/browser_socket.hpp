#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/engine/browser_table.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/readable.hpp"
#include "trunkline/io/udp_socket.hpp"
#include "trunkline/util/counter.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

class Shard;

/// The UDP socket of all browsers' legs, on one shard's thread. RTP and RTCP go to the streams, of this
/// thread without a further socket, of others through their ports; what STUN and DTLS say goes to the control
/// thread. Streams send through the socket themselves.
class BrowserSocket final : public util::Node, public Readable {
  public:
    /// Each datagram for the control thread has this before it: 4 or 6 for the version of IP, the port, and
    /// the host in the first bytes of 16.
    static constexpr std::size_t header_bytes = 1 + 2 + 16;

    /// `upward` is one end of a pair of datagram sockets, and taken over.
    BrowserSocket(std::shared_ptr<io::UdpSocket> socket, int upward, Shard& shard);
    ~BrowserSocket() override;

    // Orders, run between packets.

    void learn(BrowserLeg& leg, const io::Address& source) { table_.learn(leg, source); }
    /// Let go of a leg, so that the control thread can destroy it.
    void forget(BrowserLeg* leg);
    /// Read no more, so that the control thread can destroy the socket.
    void shut();

    /// Read what has come and pass it on; true when there may be more.
    bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) override;

    /// Datagrams dropped: of sources that are not known, and what the control thread did not read in time.
    struct Figures {
        util::Counter foreign, invalid, unread;
    };
    const Figures& figures() const { return figures_; }
    int descriptor() const { return socket_->descriptor(); }

  private:
    void take(std::span<std::uint8_t> datagram, const io::Address& source, io::SendBatch& relayed,
              std::int64_t now_ns);
    void take_packet(BrowserLeg& leg, std::span<std::uint8_t> datagram, io::SendBatch& relayed,
                     std::int64_t now_ns);
    void pass_upward(std::span<std::uint8_t> datagram, const io::Address& source);

    std::shared_ptr<io::UdpSocket> socket_;
    int upward_;
    Shard& shard_;
    BrowserTable table_;
    Figures figures_;
};

}  // namespace trunkline::engine
