#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/engine/event_queue.hpp"
#include "trunkline/io/audio_file.hpp"
#include "trunkline/util/byte_ring.hpp"

namespace trunkline::engine {

/// Settings of a recording.
struct RecordingOptions {
    io::AudioLayout layout;             ///< Two channels: received left, sent right. One: their sum.
    bool pause_as_silence = false;      ///< Paused time is silence in the file, and left out otherwise.
    std::uint64_t max_duration_ms = 0;  ///< 0: no limit.
    std::uint64_t max_bytes = 0;        ///< 0: no limit.
};

/// Causes of a recording's end, beside error numbers, in `a` of its event.
inline constexpr std::uint32_t recording_hit_duration = 1U << 16;
inline constexpr std::uint32_t recording_hit_size = 2U << 16;

/// One recording in progress, between the engine thread that makes its frames and the thread that writes
/// them.
class Recording {
  public:
    static constexpr std::uint32_t frame_ms = 20;
    /// Samples of a frame, both channels at 16 kHz.
    static constexpr std::size_t max_frame_samples = 2 * 16 * frame_ms;

    /// Takes the descriptor of an empty file over.
    Recording(std::uint64_t id, int descriptor, const RecordingOptions& options);

    const RecordingOptions& options() const { return options_; }

    /// Samples of one channel in a frame.
    std::size_t frame_samples() const { return options_.layout.rate_hz / 1000 * frame_ms; }

    /// Engine thread: hand over the frame with this number, interleaved.
    void push(std::uint64_t number, std::span<const std::int16_t> frame);

    /// Engine thread: no more frames will come. Its last touch; the writer destroys the recording.
    void end() { ended_.store(true, std::memory_order_release); }

    /// Engine thread: whether the file takes no more.
    bool over() const { return over_.load(std::memory_order_relaxed); }

    /// Writer: write what has come; true when the recording is over and its event was emitted.
    bool write(std::int64_t now_ns, EventQueue& event_queue);

  private:
    std::uint32_t limit() const;
    int drain();
    int write_frame(std::uint64_t number, std::span<const std::uint8_t> bytes);
    void tell_gap(std::int64_t now_ns, EventQueue& event_queue);
    void finish(int error, EventQueue& event_queue);

    std::uint64_t id_;
    RecordingOptions options_;
    std::unique_ptr<io::AudioFile> file_;
    util::ByteRing ring_;
    std::atomic<bool> ended_ = false;
    std::atomic<bool> over_ = false;

    // The writer's own.
    std::uint64_t next_number_ = 0;  ///< The frame that follows what is on disk.
    std::uint32_t limit_ = 0;        ///< The limit that was reached.
    std::uint64_t gap_ms_ = 0;       ///< Silence in place of frames that the disk was too slow for.
    std::uint64_t told_gap_ms_ = 0;
    std::int64_t told_gap_ns_ = 0;
    std::int64_t updated_ns_ = 0;
    bool reported_ = false;
};

}  // namespace trunkline::engine
