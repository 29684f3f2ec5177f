#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/io/address.hpp"

namespace trunkline::io {

/// Largest batch of datagrams read or written with one system call.
inline constexpr std::size_t batch_datagrams = 32;
/// Room behind every packet for what protection appends (the tag of SRTP, the index of SRTCP).
inline constexpr std::size_t protection_bytes = 64;

/// Buffers for one batch of received datagrams; made once per thread and reused for every socket.
class ReceiveBatch {
  public:
    /// No RTP packet of ours is longer; what is longer is cut and dropped.
    static constexpr std::size_t buffer_bytes = 2048;

    ReceiveBatch();
    ReceiveBatch(const ReceiveBatch&) = delete;
    ReceiveBatch& operator=(const ReceiveBatch&) = delete;

    /// The nth datagram of the last read; `protection_bytes` of room lie behind it.
    std::span<std::uint8_t> datagram(std::size_t n) { return {buffers_[n].data(), messages_[n].msg_len}; }
    const Address& source(std::size_t n) const { return sources_[n]; }
    bool truncated(std::size_t n) const { return (messages_[n].msg_hdr.msg_flags & MSG_TRUNC) != 0; }

  private:
    friend class UdpSocket;

    std::array<std::array<std::uint8_t, buffer_bytes + protection_bytes>, batch_datagrams> buffers_;
    std::array<Address, batch_datagrams> sources_;
    std::array<iovec, batch_datagrams> vectors_;
    std::array<mmsghdr, batch_datagrams> messages_{};
};

/// Datagrams for one destination, sent with one system call. The bytes are not copied.
class SendBatch {
  public:
    SendBatch();
    SendBatch(const SendBatch&) = delete;
    SendBatch& operator=(const SendBatch&) = delete;

    void add(std::span<const std::uint8_t> datagram);
    std::size_t size() const { return size_; }
    std::size_t total_bytes() const { return total_bytes_; }

  private:
    friend class UdpSocket;

    std::size_t size_ = 0;
    std::size_t total_bytes_ = 0;
    std::array<iovec, batch_datagrams> vectors_;
    std::array<mmsghdr, batch_datagrams> messages_{};
};

/// A non-blocking UDP socket.
class UdpSocket {
  public:
    UdpSocket() = default;
    UdpSocket(UdpSocket&& other) noexcept;
    UdpSocket& operator=(UdpSocket&& other) noexcept;
    ~UdpSocket();

    /// Open and bind. Returns 0, or the error number; EADDRINUSE when the port is taken.
    int open(const Address& local);

    /// Take over a bound socket, closing what was open.
    void adopt(int descriptor);

    int descriptor() const { return descriptor_; }

    /// The address it is bound to; empty while it is closed.
    Address local() const;

    /// Read up to a batch; returns how many datagrams came.
    std::size_t receive(ReceiveBatch& batch);

    /// Send one datagram; false when the kernel would not take it.
    bool send(std::span<const std::uint8_t> datagram, const Address& to);

    /// Send and empty a batch; returns how many datagrams the kernel took.
    std::size_t send(SendBatch& batch, const Address& to);

    void close();

  private:
    int descriptor_ = -1;
};

}  // namespace trunkline::io
