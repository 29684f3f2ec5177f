#pragma once

#include <cstdint>

#include "trunkline/io/udp_socket.hpp"

namespace trunkline::engine {

/// Something with a socket that a shard watches.
class Readable {
  public:
    /// Read what has come; true when there may be more.
    virtual bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) = 0;

    /// Packets of this socket are relayed at once, so each wait adds latency. Others wait for a tick anyway.
    bool low_latency = false;
    bool hung_up = false;     ///< The far end has closed its side; the end of the data is still to be read.
    bool unfinished = false;  ///< The shard's own: there is more to read.

  protected:
    ~Readable() = default;
};

}  // namespace trunkline::engine
