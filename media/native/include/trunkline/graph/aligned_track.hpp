#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace trunkline::graph {

/// One side of a recording: puts audio to where it belongs on a clock that other sides share.
///
/// A file need not be read while it is written, so unlike a jitter buffer this one takes its time: audio lies
/// here for `lag_ms`, packets that come late are joined to those before them, and the packets with the least
/// delay say where a run belongs. A sender whose clock differs is followed in its pauses.
class AlignedTrack {
  public:
    /// Longest time between input and output of audio.
    static constexpr std::int64_t lag_ms = 300;
    /// Longest chunk taken in at once.
    static constexpr std::size_t max_piece_ms = 60;

    /// Meaning of silence between two chunks.
    enum class Run : std::uint8_t {
        unbroken,  ///< They were delayed: the source leaves nothing out.
        broken,    ///< Nothing was sent meanwhile, unless it varies as much as this source usually does.
    };

    /// Memory is allocated here and never again.
    AlignedTrack(std::uint32_t rate_hz, Run run);

    /// Append audio whose last sample passed at `at`, counted in samples since the recording began.
    void put(std::span<const std::int16_t> samples, std::int64_t at);

    /// Take the next samples; silence where there are none.
    void pull(std::span<std::int16_t> out);

    /// Leave out the next samples.
    void skip(std::int64_t samples);

    /// Samples taken so far.
    std::int64_t pulled() const { return read_; }

    /// Samples that did not fit: their sender ran ahead of time.
    std::uint64_t dropped_samples() const { return dropped_samples_; }

  private:
    std::int64_t of_ms(std::int64_t ms) const { return ms * rate_hz_ / 1000; }
    std::int64_t tolerance() const;
    bool quiet(std::span<const std::int16_t> samples) const;
    void begin_stretch(std::int64_t room);
    void settle(std::int64_t lateness);
    void note(std::int64_t lateness, std::size_t samples);
    std::span<const std::int16_t> correct(std::span<const std::int16_t> samples);
    void open_gap(std::int64_t samples);
    std::span<const std::int16_t> close_gap(std::span<const std::int16_t> samples, std::size_t dropped);
    void append(std::span<const std::int16_t> samples);
    void begin_window();
    std::int16_t& at(std::int64_t position) {
        return ring_[static_cast<std::size_t>(position) & (capacity_ - 1)];
    }

    std::uint32_t rate_hz_;
    Run run_;
    std::size_t capacity_;
    std::unique_ptr<std::int16_t[]> ring_;  ///< Zero wherever nothing waits.
    std::int64_t read_ = 0;
    std::int64_t write_ = 0;
    std::int64_t stretch_begin_ = 0;  ///< Of the sound that is being written.
    std::int64_t stretch_room_ = 0;   ///< Of quiet before it.
    std::int64_t quiet_samples_ = 0;  ///< Written since something was heard.
    bool heard_ = false;              ///< True if anything was heard.
    bool started_ = false;

    // Delay of chunks, against a place right behind the ones before.
    std::int64_t least_late_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t most_late_ = std::numeric_limits<std::int64_t>::min();
    std::int64_t noted_samples_ = 0;  ///< In this window.
    std::int64_t spread_ = 0;         ///< Between the earliest and the latest, usually.
    std::int64_t off_ = 0;            ///< What is to be corrected in the next pause; 0 when nothing is.
    std::uint64_t dropped_samples_ = 0;
};

}  // namespace trunkline::graph
