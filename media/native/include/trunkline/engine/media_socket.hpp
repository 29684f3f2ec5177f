#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/codec/format.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/srtp.hpp"
#include "trunkline/engine/stream_figures.hpp"
#include "trunkline/io/udp_socket.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// Room for a packet of our own: header, largest payload, and what protection appends.
using PacketRoom =
    std::array<std::uint8_t, rtp::header_bytes + codec::max_payload_bytes + io::protection_bytes>;

/// A way out in place of a stream's own socket: the one that all browsers share.
struct Outlet final : util::Node {
    std::shared_ptr<io::UdpSocket> socket;
    io::Address to;
};

/// A stream's way to the network: its RTP socket, protection of what goes over it, and the count of it.
class MediaSocket {
  public:
    MediaSocket(io::UdpSocket socket, StreamFigures& figures, EventQueue& event_queue);
    MediaSocket(const MediaSocket&) = delete;
    MediaSocket& operator=(const MediaSocket&) = delete;
    ~MediaSocket() {
        delete srtp_out_;
        delete outlet_;
    }

    /// Adopt the contexts of changed keys.
    void protect(SrtpChange& change);

    /// Send all through an outlet and to its address, or (null) through the own socket again.
    void send_through(Outlet* outlet);

    bool encrypted() const { return srtp_in_.active(); }

    int descriptor() const { return socket_.descriptor(); }
    io::Address local() const { return socket_.local(); }
    std::size_t receive(io::ReceiveBatch& batch) { return socket_.receive(batch); }

    /// Undo the protection of a received datagram, RTP or RTCP, in place. Returns what is left; nothing for
    /// one that must be dropped, which is counted then. Without encryption, all of it.
    std::span<std::uint8_t> open(std::span<std::uint8_t> datagram) {
        return encrypted() ? unprotect(datagram) : datagram;
    }

    /// Protect a packet, RTP or RTCP, in place, with `io::protection_bytes` of room behind it. Returns its
    /// new size; 0 for one that must not be sent.
    std::size_t seal(std::uint8_t* room, std::size_t size);

    /// Protect and send the packet in the first `size` bytes of a room with `io::protection_bytes` behind it.
    void send(std::uint8_t* room, std::size_t size, const io::Address& to);

    /// Protect a packet in the same kind of room, and put it into a batch for `flush`.
    void queue(io::SendBatch& batch, std::uint8_t* room, std::size_t size);

    /// Send the packets that were queued.
    void flush(io::SendBatch& batch, const io::Address& to);

    /// Protect and send an RTCP packet, through its own socket or (null) the one of RTP. Room as for `send`.
    void send_rtcp(std::uint8_t* room, std::size_t size, io::UdpSocket* socket, const io::Address& to);

    void close() { socket_.close(); }

  private:
    std::span<std::uint8_t> unprotect(std::span<std::uint8_t> datagram);
    io::UdpSocket& way() { return outlet_ != nullptr ? *outlet_->socket : socket_; }
    const io::Address& target(const io::Address& to) const { return outlet_ != nullptr ? outlet_->to : to; }

    io::UdpSocket socket_;
    StreamFigures& figures_;
    EventQueue& event_queue_;
    SrtpContext* srtp_out_ = nullptr;  ///< Null for plain RTP.
    SrtpReceiver srtp_in_;
    Outlet* outlet_ = nullptr;
};

}  // namespace trunkline::engine
