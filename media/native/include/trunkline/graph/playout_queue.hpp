#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/dsp/g711.hpp"
#include "trunkline/graph/prebuffer_estimator.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// Encoding of an agent's audio.
enum class Encoding : std::uint8_t { l16, mulaw, alaw };

/// Encoding and rate of an agent's audio.
struct AudioFormat {
    Encoding encoding = Encoding::l16;
    std::uint32_t rate_hz = 8000;  ///< 8000 or 16000.

    std::uint32_t sample_bytes() const { return encoding == Encoding::l16 ? 2 : 1; }
    /// Each byte of silence.
    std::uint8_t silence() const {
        return encoding == Encoding::l16
                   ? std::uint8_t{0}
                   : dsp::silence(encoding == Encoding::mulaw ? dsp::Law::mu : dsp::Law::a);
    }
    std::uint32_t bytes_per_ms() const { return rate_hz / 1000 * sample_bytes(); }
};

/// An entry of a playout queue: audio as it was received, or a mark between two chunks of audio.
struct PlayoutItem final : util::Node {
    bool is_mark = false;
    std::uint32_t mark = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t capacity_bytes = 0;
    std::unique_ptr<std::uint8_t[]> bytes;
};

/// Receiver of a playout queue's events.
class PlayoutListener {
  public:
    /// The last sample before a mark was handed out, or (`cleared`) dropped.
    virtual void mark_reached(std::uint32_t mark, bool cleared) = 0;

    /// The last queued sample was handed out or dropped.
    virtual void playout_drained() = 0;

    /// So much waits that whoever writes should pause (`full`), or so little that it may go on.
    virtual void playout_level(bool full, std::uint64_t level_ms) = 0;

    /// Playing audio ran dry and goes on soon after.
    virtual void playout_underrun() = 0;

    /// A node is no longer needed and goes back to the control thread.
    virtual void spent(util::Node* node) = 0;

  protected:
    ~PlayoutListener() = default;
};

/// Audio an agent has sent and the caller has not heard yet.
///
/// An utterance plays after the prebuffer that the agent's arrivals warrant, 10 to 60 ms, or 100 ms if it ran
/// dry just before; at once when 60 or 100 ms are queued and nothing lagged of late. Where the agent sends
/// silence for a pause, that is shortened or prolonged by packets, so that what follows it plays as if the
/// present prebuffer had preceded it. Audio is decoded as it is played, so a minute may arrive at once.
class PlayoutQueue {
  public:
    /// Prebuffer after an underrun.
    static constexpr std::int64_t grown_prebuffer_ns = 100'000'000;
    /// Audio that follows within this of running dry was meant to be one chunk with it.
    static constexpr std::int64_t underrun_ns = 500'000'000;
    /// An utterance of which so much waited at once does not come by a clock: its arrivals show no jitter.
    static constexpr std::uint32_t ahead_ms = 500;
    /// Silence that makes a pause, and the largest sample that is silence.
    static constexpr std::int64_t pause_ns = 100'000'000;
    static constexpr int quiet_peak = 32;
    /// An agent that has sent without a gap for so long, and is silent no longer than that, may have stalled.
    static constexpr std::int64_t run_ns = 10'000'000'000;
    static constexpr std::int64_t longest_stall_ns = 5'000'000'000;
    /// Then what it owes has come within the first, and is owed for the second.
    static constexpr std::int64_t backlog_ns = 1'000'000'000;
    static constexpr std::int64_t owed_ns = 200'000'000;
    static constexpr std::uint32_t fade_ms = 5;

    PlayoutQueue(AudioFormat format, PlayoutListener& listener) : format_(format), listener_(listener) {}
    PlayoutQueue(const PlayoutQueue&) = delete;
    PlayoutQueue& operator=(const PlayoutQueue&) = delete;
    ~PlayoutQueue() { util::NodeStack::destroy(first_); }

    /// Queue audio or a mark; takes ownership. A mark with nothing before it is reached at once.
    void append(PlayoutItem* item, std::int64_t now_ns);

    /// Tell when at least `full_ms` wait, and after that when no more than `low_ms` do; 0 and 0 tells
    /// nothing.
    void watch_level(std::uint32_t full_ms, std::uint32_t low_ms);

    /// Drop everything queued, and end a pause; what plays fades out within 5 ms.
    void clear();

    /// Hand out nothing, and keep what is queued, until the pause is over; what plays fades out within 5 ms.
    void pause(bool active);

    /// Fill `out`, samples at the rate of the format, with what plays now. Returns false, and leaves `out`
    /// alone, when nothing does.
    bool pull(std::span<std::int16_t> out, std::int64_t now_ns);

    /// True if the next pull will return audio, or find that nothing has followed.
    bool playing() const { return (state_ == State::playing && !paused_) || fade_left_ != 0; }

    /// Bytes of audio that wait.
    std::uint64_t queued_bytes() const { return queued_bytes_; }

    /// Bytes of audio played or dropped so far. May be read from any thread.
    std::uint64_t consumed_bytes() const { return consumed_bytes_.load(std::memory_order_relaxed); }

    /// Prebuffer of the next utterance. May be read from any thread.
    std::uint32_t prebuffer_ms() const { return prebuffer_ms_.load(std::memory_order_relaxed); }

  private:
    enum class State : std::uint8_t { idle, filling, playing };

    std::int64_t queued_ns() const;
    void note_arrival(std::int64_t now_ns);
    std::int64_t lead_ns(std::int64_t now_ns) const;
    void look_for_backlog(std::int64_t now_ns);
    void begin_filling(std::int64_t now_ns);
    void begin_playing(std::int64_t now_ns);
    bool adjust(std::size_t samples);
    bool is_quiet(std::size_t samples) const;
    void skip(std::size_t samples);
    void fade_out();
    void note_level(std::span<const std::int16_t> out);
    bool ready(std::int64_t now_ns) const;
    std::size_t take(std::span<std::int16_t> out);
    void decode(const std::uint8_t* from, std::span<std::int16_t> out) const;
    void drop_spent();
    void pop_first();
    void consume(std::uint64_t bytes);
    void check_level();
    void run_dry(std::int64_t now_ns);
    std::size_t play_fade(std::span<std::int16_t> out);
    bool pull_fade(std::span<std::int16_t> out);

    AudioFormat format_;
    PlayoutListener& listener_;
    PlayoutItem* first_ = nullptr;
    PlayoutItem* last_ = nullptr;
    std::uint32_t offset_bytes_ = 0;  ///< Consumed of the first item.
    std::uint64_t queued_bytes_ = 0;
    std::atomic<std::uint64_t> consumed_bytes_ = 0;
    State state_ = State::idle;
    PrebufferEstimator prebuffer_;
    std::atomic<std::uint32_t> prebuffer_ms_ = PrebufferEstimator::full_ns / 1'000'000;
    std::int64_t wanted_ns_ = 0;         ///< Prebuffer of this utterance.
    std::int64_t enough_ns_ = 0;         ///< Audio that need not wait so long.
    std::int64_t filling_since_ns_ = 0;  ///< Arrival of the utterance's beginning.
    std::int64_t delay_ns_ = 0;          ///< From then until it played, as far as it was not made up for.
    std::int64_t arrived_ns_ = 0;        ///< When audio came last.
    std::int64_t pulled_ns_ = 0;         ///< When audio was pulled last, and how much.
    std::int64_t pull_ns_ = 1;
    std::int64_t quiet_ns_ = 0;  ///< Silence handed out last.
    std::int64_t dry_ns_ = 0;
    std::int64_t run_since_ns_ = 0;  ///< Beginning of what has come without a gap, stalls but for.
    std::int64_t stalled_ns_ = 0;    ///< Delay by what may have been a stall; 0 when there was none.
    std::int64_t owed_since_ns_ = 0;
    bool ahead_ = false;
    bool paused_ = false;
    bool has_played_ = false;
    std::uint64_t full_bytes_ = 0;  ///< 0 while nobody watches the level.
    std::uint64_t low_bytes_ = 0;
    bool full_ = false;
    std::array<std::int16_t, fade_ms * 16> fade_{};
    std::uint32_t fade_left_ = 0;
};

}  // namespace trunkline::graph
