#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// Encoding of an agent's audio.
enum class Encoding : std::uint8_t { l16, mulaw, alaw };

/// Encoding and rate of an agent's audio.
struct AudioFormat {
    Encoding encoding = Encoding::l16;
    std::uint32_t rate_hz = 8000;  ///< 8000 or 16000.

    std::uint32_t sample_bytes() const { return encoding == Encoding::l16 ? 2 : 1; }
    std::uint32_t bytes_per_ms() const { return rate_hz / 1000 * sample_bytes(); }
};

/// An entry of a playout queue: audio as it was received, or a mark between two chunks of audio.
struct PlayoutItem final : util::Node {
    bool is_mark = false;
    std::uint32_t mark = 0;
    std::uint32_t size_bytes = 0;
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
/// After a pause it plays once 60 ms are queued, 100 ms if it ran dry just before; less is played when no
/// more comes for as long. Audio is decoded as it is played, so a minute may arrive at once.
class PlayoutQueue {
  public:
    static constexpr std::uint32_t prebuffer_ms = 60;
    static constexpr std::uint32_t grown_prebuffer_ms = 100;
    /// Audio that follows within this of running dry was meant to be one chunk with it.
    static constexpr std::int64_t underrun_ns = 500'000'000;
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

    /// Drop everything queued; what plays fades out within 5 ms.
    void clear();

    /// Fill `out`, samples at the rate of the format, with what plays now. Returns false, and leaves `out`
    /// alone, when nothing does.
    bool pull(std::span<std::int16_t> out, std::int64_t now_ns);

    /// True if the next pull will return audio, without having to look at the clock.
    bool playing() const { return state_ == State::playing || fade_left_ != 0; }

    /// Bytes of audio played or dropped so far. May be read from any thread.
    std::uint64_t consumed_bytes() const { return consumed_bytes_.load(std::memory_order_relaxed); }

  private:
    enum class State : std::uint8_t { idle, filling, playing };

    bool ready(std::int64_t now_ns) const;
    std::size_t take(std::span<std::int16_t> out);
    void decode(const std::uint8_t* from, std::span<std::int16_t> out) const;
    void drop_spent();
    void pop_first();
    void consume(std::uint64_t bytes);
    void check_level();
    void run_dry(std::int64_t now_ns);
    std::size_t play_fade(std::span<std::int16_t> out);

    AudioFormat format_;
    PlayoutListener& listener_;
    PlayoutItem* first_ = nullptr;
    PlayoutItem* last_ = nullptr;
    std::uint32_t offset_bytes_ = 0;  ///< Consumed of the first item.
    std::uint64_t queued_bytes_ = 0;
    std::atomic<std::uint64_t> consumed_bytes_ = 0;
    State state_ = State::idle;
    std::uint32_t wanted_ms_ = prebuffer_ms;
    std::int64_t filling_since_ns_ = 0;
    std::int64_t dry_ns_ = 0;
    bool has_played_ = false;
    std::uint64_t full_bytes_ = 0;  ///< 0 while nobody watches the level.
    std::uint64_t low_bytes_ = 0;
    bool full_ = false;
    std::array<std::int16_t, fade_ms * 16> fade_{};
    std::uint32_t fade_left_ = 0;
};

}  // namespace trunkline::graph
