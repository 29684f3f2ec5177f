// RTCP of a stream: what comes on its port, and what is due.

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

void Stream::take_rtcp(std::span<std::uint8_t>, const io::Address&, std::int64_t) {
    figures_.rtcp_in.add(1);
}

void Stream::check_rtcp(std::int64_t) {}

}  // namespace trunkline::engine
