#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::dsp {

/// Detectors look at 10 ms of audio at 8 kHz at a time.
inline constexpr std::uint32_t detector_rate_hz = 8000;
inline constexpr std::uint32_t detector_frame_ms = 10;
inline constexpr std::size_t detector_frame_samples = detector_rate_hz / 1000 * detector_frame_ms;

using DetectorFrame = std::span<const std::int16_t, detector_frame_samples>;

/// Cuts audio of any length into frames.
class FrameCutter {
  public:
    /// Call `take(DetectorFrame)` with every frame that is complete.
    template <typename Take>
    void put(std::span<const std::int16_t> samples, Take take) {
        while (!samples.empty()) {
            const std::size_t taken = std::min(samples.size(), frame_.size() - size_);
            std::copy_n(samples.begin(), taken, frame_.begin() + static_cast<std::ptrdiff_t>(size_));
            size_ += taken;
            samples = samples.subspan(taken);
            if (size_ < frame_.size()) return;
            size_ = 0;
            take(DetectorFrame(frame_));
        }
    }

  private:
    std::array<std::int16_t, detector_frame_samples> frame_{};
    std::size_t size_ = 0;
};

/// Level of a mean square of samples, in dB below full scale; a full-scale sine has -3.
inline float level_db(float mean_square) {
    return 10.0F * std::log10(mean_square + 1e-3F) - 90.3F;
}

}  // namespace trunkline::dsp
