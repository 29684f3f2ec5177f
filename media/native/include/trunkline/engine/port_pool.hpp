#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "trunkline/engine/clock.hpp"

namespace trunkline::engine {

/// The even UDP ports of a range, each with the odd one above it left free for RTCP (RFC 3550 11).
///
/// A port that was given back rests before it is used again, so that late packets of one call do not reach
/// the next. The port that rested longest comes first.
class PortPool {
  public:
    /// Use the even ports of `[first, last]` whose odd neighbour lies in the range too.
    PortPool(std::uint16_t first, std::uint16_t last, std::int64_t quarantine_ns);

    /// Take a port; nothing when all are in use or resting.
    std::optional<std::uint16_t> take(std::int64_t now_ns);

    /// Return a port; harmless for one that was not taken.
    void give_back(std::uint16_t port, std::int64_t now_ns);

    std::size_t in_use() const { return in_use_; }
    std::size_t capacity() const { return capacity_; }

  private:
    struct Resting {
        std::uint16_t port;
        std::int64_t until_ns;
    };

    std::int64_t quarantine_ns_;
    std::size_t capacity_;
    std::size_t in_use_ = 0;
    std::deque<Resting> free_;  ///< In the order they become usable.
    std::uint32_t first_ = 0;
    std::vector<bool> taken_;  ///< By place in the range.
};

/// Gives a port back to its pool when it is destroyed. For a stream that is up, the command that closes its
/// sockets holds it, which the control thread destroys after it ran: only then can the port be bound again.
class PortLease {
  public:
    PortLease() = default;
    PortLease(PortPool& pool, const Clock& clock, std::uint16_t port)
        : pool_(&pool), clock_(&clock), port_(port) {}
    PortLease(PortLease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), clock_(other.clock_), port_(other.port_) {}
    PortLease& operator=(PortLease&&) = delete;
    ~PortLease();

    std::uint16_t port() const { return port_; }

  private:
    PortPool* pool_ = nullptr;
    const Clock* clock_ = nullptr;
    std::uint16_t port_ = 0;
};

}  // namespace trunkline::engine
