#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/graph/audio_chunk.hpp"
#include "trunkline/graph/jitter_estimator.hpp"

namespace trunkline::graph {

/// Counters of a playout buffer.
struct ClockedFigures {
    std::uint64_t concealed_samples = 0;   ///< Made up because the buffer ran dry.
    std::uint64_t inserted_samples = 0;    ///< By stretching, for a sender that is slow or a delay that grew.
    std::uint64_t removed_samples = 0;     ///< By shortening, for the opposite.
    std::uint64_t overflowed_samples = 0;  ///< Dropped because far too much came at once.
    std::uint32_t depth_ms = 0;            ///< What waits in the buffer.
};

/// Second stage of receiving: an elastic buffer between the sender's clock and a consumer's own (a recorder,
/// a mixer).
///
/// It holds as much as the variation of the arrivals warrants. It grows at once when it runs dry, hiding that
/// with the last sound, and shrinks slowly. That, and what the two clocks drift, is made up for by leaving
/// out or repeating samples: where it is quiet if possible, else whole periods of the voice.
class PlayoutBuffer {
  public:
    /// Most that waits; what is beyond is dropped.
    static constexpr std::uint32_t max_depth_ms = 400;

    /// The rate is 8000 or 16000.
    explicit PlayoutBuffer(std::uint32_t rate_hz);

    /// Append audio of the first stage.
    void put(std::span<const std::int16_t> samples, Origin origin, std::int64_t now_ns);

    /// Hand out the next chunk of the unbroken stream, 10 to 60 ms, by the consumer's clock. Returns how many
    /// of its samples were put; the others are made up.
    std::uint32_t pull(std::span<std::int16_t> out);

    /// Samples that wait.
    std::uint32_t depth_samples() const { return static_cast<std::uint32_t>(tail_ - head_); }

    std::uint32_t rate_hz() const { return rate_hz_; }

    /// Figures so far.
    ClockedFigures figures() const;

  private:
    static constexpr std::size_t capacity_samples = 8192;
    static constexpr std::size_t max_period_samples = 240;

    std::size_t samples_in_ms(std::size_t ms) const { return ms * rate_hz_ / 1000; }
    double target_samples() const;
    void put_some(std::span<const std::int16_t> samples);
    void make_room(std::size_t samples);
    void drop_overflow();
    void measure(bool begins, std::int64_t now_ns);
    void correct();
    void correct_by_period(double excess, bool urgent);
    bool is_quiet(std::size_t samples) const;
    void note_level(std::span<const std::int16_t> frame);
    void shorten(std::size_t by, std::size_t overlap);
    void stretch(std::size_t by, std::size_t overlap);
    void begin_concealment();
    std::int16_t next_concealed();
    void conceal(std::size_t samples);

    std::uint32_t rate_hz_;
    std::int64_t sample_ns_;
    JitterEstimator spread_;
    bool started_ = false;
    bool gathering_ = true;         ///< Before the first sound, until enough waits.
    std::int64_t media_ns_ = 0;     ///< Length of all that was put.
    double delay_samples_ = 0;      ///< From the quickest arrival until it is pulled, smoothed.
    std::size_t frame_samples_;     ///< Of the last pull.
    std::size_t since_change_ = 0;  ///< Samples pulled since the last correction was tried.
    float level_ = 0;               ///< Of the far end when it speaks: a slowly falling peak.
    std::size_t head_ = 0;          ///< What lies before it was handed out; the end of that is the history.
    std::size_t tail_ = 0;
    std::array<std::int16_t, capacity_samples> samples_{};

    std::size_t concealed_run_ = 0;  ///< Samples made up since the last were put.
    std::size_t period_samples_ = 0;
    std::size_t phase_ = 0;
    std::int32_t step_ = 0;                                  ///< From the period to the sound it goes on for.
    std::array<std::int16_t, max_period_samples> period_{};  ///< What is repeated while the buffer is dry.
    ClockedFigures figures_;
};

}  // namespace trunkline::graph
