#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/dsp/halfband.hpp"
#include "trunkline/engine/audio_crossing.hpp"
#include "trunkline/engine/listener.hpp"
#include "trunkline/graph/mix.hpp"
#include "trunkline/util/byte_ring.hpp"
#include "trunkline/util/counter.hpp"

namespace trunkline::engine {

/// Connection of a stream and its conference: audio goes over in two bounded queues,
/// because the two may live on different threads.
///
/// Held by the stream's listener and by the conference; destroyed by the control thread, after both let go.
class ConferenceLine final : public AudioSource {
  public:
    explicit ConferenceLine(std::uint32_t rate_hz);

    std::uint32_t rate_hz() const { return rate_hz_; }

    // On the stream's thread.

    /// Hand over what the stream received.
    void put(const graph::AudioChunk& chunk, std::int64_t now_ns);

    /// The next audio of the conference; silence while there is none.
    bool pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t now_ns) override;

    // On the conference's thread.

    /// The next frame of what the stream received, by the conference's clock.
    void read(std::span<std::int16_t> frame);

    /// Hand over a frame of what the stream shall send.
    void write(std::span<const std::int16_t> frame);

    // On any thread.

    /// The stream has let go of the line: nothing will be read or written there again.
    void hang_up() { hung_up_.store(true, std::memory_order_release); }
    bool hung_up() const { return hung_up_.load(std::memory_order_acquire); }

    /// Level of the member, in decibels below full scale; 127 when silent.
    util::Figure<std::uint32_t> level_dbov;
    /// Frames that did not fit, to either side: a thread was stalled.
    util::Counter dropped;

  private:
    static constexpr std::size_t to_stream_bytes = 8 << 10;
    /// Room for the longest packet at 16 kHz, and what may wait beyond it.
    static constexpr std::size_t waiting_samples = 2048;

    void fetch(std::size_t wanted);
    void take(std::span<std::int16_t> out);

    std::uint32_t rate_hz_;
    AudioCrossing to_conference_;
    util::ByteRing to_stream_;
    std::atomic<bool> hung_up_ = false;

    // The stream's.
    std::array<std::int16_t, waiting_samples> waiting_;
    std::size_t waiting_count_ = 0;
    bool running_ = false;  ///< The last pull was served in full.
    std::int16_t last_sample_ = 0;
    dsp::Upsampler upsampler_;
    dsp::Downsampler downsampler_;
};

/// Gives a conference what a stream receives. The stream owns it; when it goes, the member has left.
class ConferenceEar final : public Listener {
  public:
    explicit ConferenceEar(std::shared_ptr<ConferenceLine> line)
        : Listener(line->rate_hz()), line_(std::move(line)) {}
    ~ConferenceEar() override { line_->hang_up(); }

    void put(const graph::AudioChunk& chunk, std::int64_t now_ns) override { line_->put(chunk, now_ns); }

  private:
    std::shared_ptr<ConferenceLine> line_;
};

}  // namespace trunkline::engine
