#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "source_guard.hpp"
#include "trunkline/signalling/datagrams.hpp"

namespace trunkline::signalling {

/// Reads a socket that does not block, many datagrams at a time with one system call, and hands over those
/// that its guard lets pass. They are judged one by one, after what was done with those before.
class DatagramReader {
  public:
    /// Without a guard every source is known.
    explicit DatagramReader(const PythonSourceGuard* guard)
        : guard_(guard == nullptr ? nullptr : guard->shared()) {}

    /// Receive up to `most` datagrams; their number, 0 when none waits or the system reports an error, which
    /// is of an earlier datagram.
    std::size_t receive(int socket, std::size_t most);

    /// The next that passes: its bytes, its source, and whether that is known; None when all are done.
    /// `is_trusted` asks the application about a host.
    nb::object next(const nb::object& is_trusted, double now_s);

    /// Number of those received last that the guard has dropped so far.
    std::size_t dropped() const { return dropped_; }
    /// When the system got the first of those received last, in seconds of its wall clock, or None.
    nb::object arrived_at_s() const;

    static void define(nb::module_& module);

  private:
    SourceGuard::Answer judge(std::string_view data, const Endpoint& source, const nb::object& is_trusted,
                              std::int64_t now_ns);

    std::shared_ptr<SourceGuard> guard_;
    Datagrams batch_;
    std::size_t count_ = 0, place_ = 0, dropped_ = 0;
};

/// Send one datagram without waiting; 0, or the errno of the refusal.
int send_datagram_to(int socket, const nb::bytes& data, const std::string& host, std::uint16_t port);

}  // namespace trunkline::signalling
