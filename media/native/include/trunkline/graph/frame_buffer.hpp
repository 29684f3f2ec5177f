#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::graph {

/// Buffer between two ticks of the same clock: written in chunks of 10 to 60 ms, read in frames of any other
/// length, with silence for missing audio.
///
/// Reading starts with a chunk and a frame in the buffer, so that neither the order of the two ticks nor
/// their lengths cause gaps.
class FrameBuffer {
  public:
    static constexpr std::uint32_t max_ms = 160;

    explicit FrameBuffer(std::uint32_t rate_hz) : rate_hz_(rate_hz) {}

    /// Append a chunk; the oldest audio is dropped when there is no room.
    void put(std::span<const std::int16_t> chunk);

    /// Fill a frame; missing audio is silence.
    void take(std::span<std::int16_t> frame);

  private:
    static constexpr std::size_t max_samples = max_ms * 16;

    void drop(std::size_t samples);

    std::uint32_t rate_hz_;
    std::array<std::int16_t, max_samples> samples_{};
    std::size_t size_ = 0;
    std::size_t chunk_ = 0;  ///< Length of the last chunk.
    bool flowing_ = false;
};

}  // namespace trunkline::graph
