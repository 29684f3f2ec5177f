#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trunkline/dsp/halfband.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// A chunk of sound and the pause behind it.
struct Clip {
    std::span<const std::uint8_t>
        bytes;  ///< Linear samples, little-endian, owned by what `owner` stands for.
    std::shared_ptr<const void> owner;
    std::uint32_t rate_hz = 8000;  ///< 8000 or 16000.
    std::uint32_t pause_ms = 0;

    /// Of sound alone. At 16 kHz an even number, so that halves are whole.
    std::size_t sound_samples() const { return rate_hz == 8000 ? bytes.size() / 2 : bytes.size() / 4 * 2; }
    std::size_t size_samples() const { return sound_samples() + std::size_t{pause_ms} * rate_hz / 1000; }
};

/// Clips that are played one after the other, once or again and again, as one thing with one end.
///
/// Made and destroyed by the control thread; read at the rate the stream has at the time, 8 or 16 kHz.
class Playback final : public util::Node {
  public:
    /// A gain of one.
    static constexpr std::int32_t unity_gain = 4096;

    std::uint64_t id = 0;
    std::vector<Clip> clips;
    std::uint32_t plays = 1;  ///< How often all clips are played; 0 is without end.
    std::int32_t gain = unity_gain;
    std::uint32_t position_every_ms = 0;  ///< How often the position is told; 0 is never.
    bool ends_by_digit = false;
    bool ends_by_speech = false;

    /// Fill `out`, an even number of samples at 16 kHz. Returns how many were filled: fewer than asked only
    /// when it is over. One without end is over at the end of a round once others wait (`let_go`).
    std::size_t pull(std::span<std::int16_t> out, std::uint32_t rate_hz, bool let_go);

    /// Length of what was handed out so far.
    std::uint64_t played_ms() const { return played_ticks_ / ticks_per_ms; }

    bool over() const { return over_ && flush_left_ == 0; }

    /// True if the position is to be reported; the report then counts as done.
    bool position_due();

  private:
    static constexpr std::uint64_t ticks_per_ms = 16;

    bool find_clip(bool let_go);
    void next_clip(bool let_go);
    std::size_t take(std::span<std::int16_t> out, std::uint32_t rate_hz);
    std::size_t flush(std::span<std::int16_t> out, std::uint32_t rate_hz);
    void read(std::span<std::int16_t> out);
    std::size_t convert(std::span<const std::int16_t> in, std::span<std::int16_t> out);
    void amplify(std::span<std::int16_t> samples) const;

    std::size_t clip_ = 0;
    std::size_t offset_samples_ = 0;  ///< In the present clip.
    std::uint32_t rounds_ = 0;
    bool round_had_samples_ = false;
    bool over_ = false;
    std::uint64_t played_ticks_ = 0;
    std::uint64_t next_position_ms_ = 0;

    std::uint32_t rate_hz_ = 0;     ///< Of the reader, at the last pull.
    std::uint32_t flush_left_ = 0;  ///< Samples at 8 kHz that the converter still holds.
    std::uint32_t flush_rate_hz_ = 0;
    dsp::Upsampler upsampler_;
    dsp::Downsampler downsampler_;
};

}  // namespace trunkline::graph
