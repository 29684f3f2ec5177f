#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace trunkline::dsp {

/// Slowest and fastest rate of sound that is converted.
inline constexpr std::uint32_t min_rate_hz = 4000;
inline constexpr std::uint32_t max_rate_hz = 192000;

/// True if that conversion is within the range, and built in.
bool can_resample(std::uint32_t from_hz, std::uint32_t to_hz);

/// Bring a whole sound to another rate, aligned in time with the original. For files: it allocates, and takes
/// about a microsecond for a millisecond of sound. Nothing where `can_resample` says no.
std::vector<std::int16_t> resample(std::span<const std::int16_t> in, std::uint32_t from_hz,
                                   std::uint32_t to_hz);

/// The same conversion of a sound that comes in pieces, and of others after it.
class Resampler {
  public:
    /// Throws `std::invalid_argument` where `can_resample` says no.
    Resampler(std::uint32_t from_hz, std::uint32_t to_hz);
    Resampler(Resampler&&) noexcept;
    Resampler& operator=(Resampler&&) noexcept;
    ~Resampler();

    /// Begin another sound.
    void begin();

    /// Convert the next samples of the sound, and append to `out` what no later sample changes.
    void feed(std::span<const std::int16_t> in, std::vector<std::int16_t>& out);

    /// Samples on either side of one that decide what becomes of it.
    std::size_t reach() const;

  private:
    struct Filter;
    std::uint32_t from_hz_;
    std::uint32_t to_hz_;
    std::unique_ptr<Filter> filter_;  ///< Null for equal rates.
};

}  // namespace trunkline::dsp
