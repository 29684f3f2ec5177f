#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trunkline::dsp {

/// Hides losses in linear speech by repeating its last pitch period, after the idea of G.711 Appendix I: the
/// repetition fades away within 50 ms, and the speech that follows is faded in over it. Adds no delay.
class Concealer {
  public:
    static constexpr std::uint32_t max_rate_hz = 16000;

    /// For samples at `rate_hz`, 8000 or 16000.
    explicit Concealer(std::uint32_t rate_hz);

    /// Record received samples; the first ones after a loss are blended with its concealment.
    void received(std::span<std::int16_t> samples);

    /// Fill `out` with what may follow the samples so far.
    void conceal(std::span<std::int16_t> out);

    /// Forget what went through.
    void reset();

  private:
    static constexpr std::size_t max_pitch_samples = max_rate_hz * 15 / 1000;
    static constexpr std::size_t window_samples = max_rate_hz * 20 / 1000;
    static constexpr std::size_t max_history_samples = window_samples + max_pitch_samples;

    void begin();
    std::size_t find_pitch() const;
    double likeness(std::size_t lag, std::size_t step) const;
    float next_synthetic();
    void remember(std::span<const std::int16_t> samples);

    std::size_t scale_;            ///< Samples per sample of 8 kHz.
    std::size_t history_samples_;  ///< Used of `history_`, the newest last.
    std::array<std::int16_t, max_history_samples> history_{};
    std::array<float, max_pitch_samples> cycle_{};
    std::array<float, max_pitch_samples / 4> mirror_{};  ///< The last samples before the loss, newest first.
    std::size_t pitch_ = 0;
    std::size_t at_ = 0;    ///< Within the cycle.
    std::size_t lost_ = 0;  ///< Samples since the loss began; 0 while there is none.
};

}  // namespace trunkline::dsp
