#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace trunkline::websocket {

/// Limit on what is read from a socket and on the work it makes: after much of either, reading pauses
/// briefly. The kernel keeps what is not read, and the far end's writes block on it.
class ReadBudget {
  public:
    /// About 400 times real time at 16 kHz: a far end that sends more is paused, without loss.
    static constexpr std::int64_t burst_bytes = 1 << 20;
    static constexpr std::int64_t burst_ns = 50'000'000;
    /// Cost of any frame beside its bytes: the smallest take as much work as those of 20 ms.
    static constexpr std::int64_t frame_bytes = 4096;
    /// Cost of a record of TLS, some microseconds of work, however few bytes are in it.
    static constexpr std::int64_t record_bytes = 256;
    /// Frames that wait when a pause begins: more is abuse.
    static constexpr std::int64_t abuse_bytes = 16 << 20;
    static constexpr std::int64_t max_pause_ns = 1'000'000'000;
    /// Work takes at most this share of the time.
    static constexpr std::int64_t long_share = 4;

    /// Count a frame.
    void read(std::size_t size_bytes, std::int64_t now_ns);

    /// Count work on a frame beside reading it, as that of so many bytes.
    void work(std::size_t size_bytes, std::int64_t now_ns);

    /// Count records.
    void records(std::size_t count, std::int64_t now_ns);

    /// Count time spent on a message.
    void spent(std::int64_t spent_ns, std::int64_t now_ns);

    bool paused() const { return paused_; }

    /// End a pause that is over; true if it is.
    bool resume(std::int64_t now_ns);

    /// Pause no more.
    void stop();

  private:
    static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::min();

    void take(std::int64_t bytes, std::int64_t now_ns);
    void refill(std::int64_t now_ns);

    std::int64_t left_bytes_ = burst_bytes;
    std::int64_t since_ns_ = never_ns;  ///< When it was full last, or paused.
    std::int64_t resume_ns_ = 0;
    bool paused_ = false;
    bool stopped_ = false;
};

}  // namespace trunkline::websocket
