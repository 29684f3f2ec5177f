#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/dsp/rate_bridge.hpp"
#include "trunkline/engine/outlet.hpp"
#include "trunkline/graph/timestamped_reader.hpp"
#include "trunkline/io/wav_file.hpp"
#include "trunkline/util/byte_ring.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// One recording in progress, between the engine thread that makes its frames and the thread that writes
/// them.
class Recording {
  public:
    static constexpr std::uint32_t rate_hz = 8000;
    static constexpr std::size_t frame_samples = 160;
    /// Four seconds of stereo, the longest stall of the disk that leaves no gap.
    static constexpr std::size_t ring_bytes = 128 << 10;

    Recording(std::uint64_t id, int descriptor, std::uint16_t channels)
        : id_(id), channels_(channels), file_(descriptor, channels, rate_hz), ring_(ring_bytes) {}

    std::uint16_t channels() const { return channels_; }

    /// Engine thread: hand over the frame with this number, interleaved.
    void push(std::uint64_t number, std::span<const std::int16_t> frame);

    /// Engine thread: no more frames will come. Its last touch; the writer destroys the recording.
    void end() { ended_.store(true, std::memory_order_release); }

    /// Engine thread: whether the file cannot be written any more.
    bool failed() const { return failed_.load(std::memory_order_relaxed); }

    /// Writer: write what has come; true when the recording is over and its event was emitted.
    bool write(std::int64_t now_ns, Outlet& outlet);

  private:
    int drain();
    int write_frame(std::uint64_t number, std::span<const std::uint8_t> bytes);
    void report(int error, Outlet& outlet);

    std::uint64_t id_;
    std::uint16_t channels_;
    io::WavFile file_;
    util::ByteRing ring_;
    std::atomic<bool> ended_ = false;
    std::atomic<bool> failed_ = false;
    std::uint64_t next_number_ = 0;  ///< Writer's: the frame that follows what is on disk.
    std::int64_t header_ns_ = 0;
    bool reported_ = false;
};

/// The engine thread's end of a recording: joins both directions of a stream to frames of one clock.
class Recorder final : public util::Node {
  public:
    /// How long the recording lags, to put packets in order.
    static constexpr std::uint32_t target_samples = 480;

    explicit Recorder(Recording* recording)
        : recording_(recording), received_(target_samples), sent_(target_samples) {}
    ~Recorder() override { finish(0); }

    void put_received(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) {
        received_.put(samples, rate_hz, now_ns);
    }
    void put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) {
        sent_.put(samples, rate_hz, now_ns);
    }

    /// Make the next 20 ms; false when the recording has failed and should be let go.
    bool tick(std::int64_t now_ns);

    /// Hand over what the jitter buffers still hold, and end.
    void finish(std::int64_t now_ns);

  private:
    struct Side {
        explicit Side(std::uint32_t target) : reader(target) {}
        void put(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) {
            samples = bridge.convert(samples, rate_hz, 8000);
            if (end_ns != 0 && now_ns - end_ns > 60'000'000) {
                timestamp += static_cast<std::uint32_t>((now_ns - end_ns) / 125'000);
            }
            reader.put(timestamp, samples, false);
            timestamp += static_cast<std::uint32_t>(samples.size());
            end_ns = now_ns;
        }
        graph::TimestampedReader reader;
        dsp::RateBridge bridge;
        std::uint32_t timestamp = 0;
        std::int64_t end_ns = 0;
    };
    Recording* recording_;  ///< Null after `finish`.
    Side received_;
    Side sent_;
    std::uint64_t number_ = 0;
};

}  // namespace trunkline::engine
