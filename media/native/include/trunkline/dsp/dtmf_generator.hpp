#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace trunkline::dsp {

/// Makes the dual tones of telephone keys (ITU-T Q.23), at -8 dBm0 for the higher and -10 dBm0 for the lower
/// frequency, with edges of 2 ms.
///
/// Plays a text of digits, or one key that is held until it is known how long.
class DtmfGenerator {
  public:
    /// Begin to play `digits`; `w` pauses half a second, `W` a second, other characters that are no key are
    /// skipped. The text must stay valid while `busy`.
    void start(std::string_view digits, std::uint32_t duration_ms, std::uint32_t gap_ms,
               std::uint32_t rate_hz);

    /// Hold a key down; what was played before is forgotten.
    void hold(char key, std::uint32_t rate_hz);

    /// Release the held key once it has sounded so long in all. A pause follows that keeps it apart from the
    /// next key.
    void release_after(std::uint32_t duration_ms);

    /// Go on after an interruption that a far end may have heard. A key that was heard as one before it is
    /// over, since the rest would be heard as another; one that was not sounds from its beginning.
    void resume();

    void stop() { *this = {}; }

    /// True if a key or a gap of the text is still to come.
    bool busy() const { return left_ != 0; }

    /// True if a tone comes next, and no gap.
    bool sounding() const { return busy() && step_[0] != 0; }

    /// Fill `out` with what comes next, silence behind the end. Returns whether there is any tone in it.
    bool pull(std::span<std::int16_t> out);

  private:
    static constexpr std::uint32_t endless = std::numeric_limits<std::uint32_t>::max();

    void next_key();
    void press(char key, std::uint32_t samples);
    void rest(std::uint32_t samples);
    std::int16_t next_sample();

    std::string_view digits_;
    std::uint32_t rate_hz_ = 8000;
    std::uint32_t press_samples_ = 0;
    std::uint32_t gap_samples_ = 0;
    bool gap_next_ = false;
    std::uint32_t played_ = 0;        ///< Samples of the present tone or gap.
    std::uint32_t left_ = 0;          ///< The same, to come.
    std::uint32_t step_[2] = {0, 0};  ///< Turns per sample in units of 2^-32; 0 in a gap.
    std::uint32_t phase_[2] = {0, 0};
};

}  // namespace trunkline::dsp
