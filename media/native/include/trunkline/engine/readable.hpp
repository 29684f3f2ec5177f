#pragma once

#include <cstdint>

#include "trunkline/io/udp_socket.hpp"

namespace trunkline::engine {

/// Something with a socket that a shard watches.
class Readable {
  public:
    /// Read what has come; true when there may be more.
    virtual bool receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) = 0;

    /// What is read goes out again at once, so that each wait is heard. What is not waits for a beat anyway.
    bool hurried = false;
    bool unfinished = false;  ///< The shard's own: there is more to read.

  protected:
    ~Readable() = default;
};

}  // namespace trunkline::engine
