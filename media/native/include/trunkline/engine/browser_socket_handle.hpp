#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>

#include "trunkline/engine/browser_socket.hpp"
#include "trunkline/engine/command.hpp"
#include "trunkline/engine/shard.hpp"
#include "trunkline/io/address.hpp"
#include "trunkline/io/udp_socket.hpp"

namespace trunkline::engine {

class BrowserLegHandle;
class Engine;
class StreamHandle;

/// The control thread's hold on the socket of all browsers. All methods are harmless after `release`.
class BrowserSocketHandle : public std::enable_shared_from_this<BrowserSocketHandle> {
  public:
    BrowserSocketHandle(std::shared_ptr<Engine> engine, Shard& shard, BrowserSocket* socket,
                        std::shared_ptr<io::UdpSocket> udp)
        : engine_(std::move(engine)), shard_(&shard), socket_(socket), udp_(std::move(udp)) {}
    BrowserSocketHandle(const BrowserSocketHandle&) = delete;
    BrowserSocketHandle& operator=(const BrowserSocketHandle&) = delete;
    ~BrowserSocketHandle() { release(); }

    bool open() const { return socket_ != nullptr; }

    /// Send a datagram of ICE or DTLS; false when the kernel would not take it.
    bool send(std::span<const std::uint8_t> datagram, const io::Address& to);

    /// Null once released.
    std::shared_ptr<BrowserLegHandle> open_leg();

    const BrowserSocket::Figures& figures() const { return socket_->figures(); }

    /// Let go of all legs and of the socket.
    void release();

  private:
    friend class BrowserLegHandle;

    std::shared_ptr<Engine> engine_;
    Shard* shard_;
    BrowserSocket* socket_;  ///< Null once released.
    std::shared_ptr<io::UdpSocket> udp_;
    std::unordered_set<BrowserLegHandle*> legs_;
};

/// The control thread's hold on one browser's leg. All methods are harmless after `close`.
class BrowserLegHandle {
  public:
    BrowserLegHandle(std::shared_ptr<BrowserSocketHandle> owner, BrowserLeg* leg)
        : owner_(std::move(owner)), leg_(leg) {}
    BrowserLegHandle(const BrowserLegHandle&) = delete;
    BrowserLegHandle& operator=(const BrowserLegHandle&) = delete;
    ~BrowserLegHandle() { close(); }

    /// RTP and RTCP packets that have come from the browser.
    std::uint64_t packets() const { return leg_ != nullptr ? leg_->packets.get() : 0; }

    /// A signed check has come from this address: packets from there are the browser's.
    void learn(const io::Address& source);

    /// Packets to the browser go to this address.
    void select(const io::Address& to);

    /// Join it to the stream that receives at this address of ours; false if there is none.
    bool connect(const io::Address& local);

    void close();

  private:
    void lead();
    void leave_stream();

    std::shared_ptr<BrowserSocketHandle> owner_;
    BrowserLeg* leg_;  ///< Null once closed.
    io::Address selected_;
    std::weak_ptr<StreamHandle> stream_;
};

}  // namespace trunkline::engine
