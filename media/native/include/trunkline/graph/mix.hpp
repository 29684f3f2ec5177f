#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::graph {

/// The sum of many voices, from which each hears all others: what a voice put in is taken out again for it.
///
/// Sums are wide enough for every voice at full scale; only what is handed out is limited to 16 bits.
class Mix {
  public:
    /// Longest frame: 20 ms at 16 kHz.
    static constexpr std::size_t max_frame_samples = 320;
    /// Most voices whose sum cannot overflow, with a wide margin.
    static constexpr std::size_t max_voices = 1024;

    /// Begin a frame of silence.
    void begin(std::size_t frame_samples);

    /// Add a voice for everybody.
    void add(std::span<const std::int16_t> voice);

    /// The sum of all.
    void all(std::span<std::int16_t> out) const;

    /// The sum without one voice that was added, and with others for this listener alone. Empty `own` takes
    /// nothing out.
    void others(std::span<const std::int16_t> own, std::span<const std::span<const std::int16_t>> besides,
                std::span<std::int16_t> out) const;

  private:
    std::array<std::int32_t, max_frame_samples> sum_{};
    std::size_t frame_samples_ = 0;
};

/// Mean square of the samples.
float power_of(std::span<const std::int16_t> samples);

/// A mean square as decibels below full scale, 0 to 127: 127 is silence.
std::uint32_t level_dbov(float power);

}  // namespace trunkline::graph
