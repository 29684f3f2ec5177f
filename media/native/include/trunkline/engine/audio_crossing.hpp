#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/graph/audio_chunk.hpp"
#include "trunkline/graph/playout_buffer.hpp"
#include "trunkline/util/byte_ring.hpp"

namespace trunkline::engine {

/// Audio on its way from one thread and its clock to another: a bounded queue, and an elastic buffer behind
/// it.
class AudioCrossing {
  public:
    /// The rate is 8000 or 16000.
    explicit AudioCrossing(std::uint32_t rate_hz) : ring_(ring_bytes), buffer_(rate_hz) {}

    /// Writing thread: hand over a chunk; false when it does not fit, because the reading thread is stalled.
    bool put(const graph::AudioChunk& chunk, std::int64_t now_ns);

    /// Reading thread: the next frame by its clock, 10 to 60 ms.
    void pull(std::span<std::int16_t> frame);

  private:
    static constexpr std::size_t ring_bytes = 16 << 10;

    util::ByteRing ring_;
    graph::PlayoutBuffer buffer_;  ///< The reading thread's.
};

}  // namespace trunkline::engine
