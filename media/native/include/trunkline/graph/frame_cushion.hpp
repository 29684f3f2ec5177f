#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::graph {

/// Audio on its way from one beat to another of the same clock: put in by pieces of 10 to 60 ms, taken out in
/// frames of any other length, silence where none came.
///
/// Nothing is handed out until a frame more than a piece is there, so that neither the order of the two beats
/// nor their different lengths are heard.
class FrameCushion {
  public:
    static constexpr std::uint32_t max_ms = 160;

    explicit FrameCushion(std::uint32_t rate_hz) : rate_hz_(rate_hz) {}

    /// Append a piece; of what has waited too long to have room, the oldest goes.
    void put(std::span<const std::int16_t> piece);

    /// Fill a frame, with silence what is missing.
    void take(std::span<std::int16_t> frame);

  private:
    static constexpr std::size_t max_samples = max_ms * 16;

    void drop(std::size_t samples);

    std::uint32_t rate_hz_;
    std::array<std::int16_t, max_samples> samples_{};
    std::size_t size_ = 0;
    std::size_t piece_ = 0;  ///< Length of the last one.
    bool flowing_ = false;
};

}  // namespace trunkline::graph
