#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trunkline::codec {

/// Comfort noise as one packet describes it (RFC 3389 3).
struct NoiseParameters {
    static constexpr std::size_t max_order = 12;

    std::uint8_t level_dbov = 127;  ///< Below the overload point: 0 is a square wave of full scale.
    std::uint8_t order = 0;         ///< Reflection coefficients in use; without any, the noise is white.
    /// Quantised as they travel: 127 stands for 0, 0 and 254 for nearly -1 and 1.
    std::array<std::uint8_t, max_order> reflection{};

    bool operator==(const NoiseParameters&) const = default;
};

/// Read the payload of a comfort noise packet; nothing if it is empty. Coefficients beyond what is used here,
/// or from a reserved one on, are left out: a receiver may use a lower order (RFC 3389 3.2).
std::optional<NoiseParameters> parse_noise(std::span<const std::uint8_t> payload);

/// Write a payload; returns its size, 0 where `out` has no room.
std::size_t write_noise(const NoiseParameters& parameters, std::span<std::uint8_t> out);

/// Measures the noise of silent frames: level and spectrum, smoothed over about 100 ms.
class NoiseMeter {
  public:
    void observe(std::span<const std::int16_t> silence);

    /// Measured noise, with that many coefficients; 127 dB down before the first frame.
    NoiseParameters parameters(std::size_t order = 0) const;

    void reset();

  private:
    std::array<double, NoiseParameters::max_order + 1> correlation_{};
    bool begun_ = false;
};

/// Makes noise of a described level and spectrum; levels glide, so that updates are not heard as steps.
class NoiseGenerator {
  public:
    void set(const NoiseParameters& parameters);

    void generate(std::span<std::int16_t> out);

    /// Fall silent and begin anew.
    void reset();

  private:
    float white();

    std::array<float, NoiseParameters::max_order> reflection_{};
    std::array<float, NoiseParameters::max_order> delayed_{};
    std::size_t order_ = 0;
    float gain_ = 0;
    float target_ = 0;
    std::uint32_t seed_ = 0x2545F491;
};

}  // namespace trunkline::codec
