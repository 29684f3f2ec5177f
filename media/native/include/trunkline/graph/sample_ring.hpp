#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

namespace trunkline::graph {

/// Half a second of decoded audio, addressed by RTP timestamp.
///
/// Packets of any length and order find their place; what never came is known sample by sample. One
/// timestamp, the read position, divides what is past from what is kept.
class SampleRing {
  public:
    /// At 8 kHz this is 512 ms.
    static constexpr std::uint32_t capacity_samples = 4096;

    /// What became of a packet.
    enum class Stored : std::uint8_t {
        stored,   ///< At least part of it is kept.
        late,     ///< All of it lies before the read position.
        too_far,  ///< It does not fit; the reader must move first.
    };

    SampleRing() { reset(0); }

    /// Drop everything and read next from `timestamp`.
    void reset(std::uint32_t timestamp);

    /// Put samples where their timestamp says.
    Stored write(std::uint32_t timestamp, std::span<const std::int16_t> samples);

    /// Take the next samples; missing ones are zero. Returns how many were there.
    std::uint32_t read(std::span<std::int16_t> out);

    /// Drop the next samples.
    void skip(std::uint32_t samples);

    /// Samples that can be read without meeting a gap.
    std::uint32_t contiguous();

    /// Distance from the read position to the end of the newest audio; zero or less when there is none.
    std::int32_t ahead() const { return static_cast<std::int32_t>(end_ - position_); }

    /// Timestamp of the next sample read.
    std::uint32_t position() const { return position_; }

  private:
    void settle();

    static constexpr std::uint32_t mask = capacity_samples - 1;
    /// Marks a place no sample was written to. Audio is clamped one short of it.
    static constexpr std::int16_t absent = std::numeric_limits<std::int16_t>::min();

    std::array<std::int16_t, capacity_samples> samples_;
    std::uint32_t position_ = 0;
    std::uint32_t end_ = 0;
    std::uint32_t gap_ = 0;  ///< No sample before this one is missing.
};

}  // namespace trunkline::graph
