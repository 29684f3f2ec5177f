#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "trunkline/codec/format.hpp"
#include "trunkline/dsp/rate_bridge.hpp"
#include "trunkline/engine/audio_crossing.hpp"
#include "trunkline/engine/listener.hpp"

namespace trunkline::engine {

class StreamHandle;

/// What a stream receives and what it sends, on the way to another stream, which sends the sum of both and
/// may live on another thread.
///
/// Held by the first stream's `MonitorEar` and by the control thread, which keeps it until the second one has
/// let go.
class MonitorLine final : public AudioSource {
  public:
    /// At the rate that the second stream sends, 8000 or 16000.
    explicit MonitorLine(std::uint32_t rate_hz) : rate_hz_(rate_hz), received_(rate_hz), sent_(rate_hz) {}

    std::uint32_t rate_hz() const { return rate_hz_; }

    // On the thread of the stream that is heard.

    void put_received(const graph::AudioChunk& chunk, std::int64_t now_ns) {
        (void)received_.put(chunk, now_ns);
    }
    void put_sent(std::span<const std::int16_t> samples, std::int64_t now_ns) {
        (void)sent_.put({samples, graph::Origin::received}, now_ns);
    }

    // On the thread of the stream that sends it.

    /// The next audio; silence while there is none, nothing at another rate.
    bool pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t now_ns) override;

  private:
    std::uint32_t rate_hz_;
    AudioCrossing received_;
    AudioCrossing sent_;
};

/// Gives a line both directions of the stream that it is attached to. Of a far end that is muted it hears
/// silence.
class MonitorEar final : public Listener {
  public:
    explicit MonitorEar(std::shared_ptr<MonitorLine> line)
        : Listener(line->rate_hz(), Hears::unmuted, Side::both), line_(std::move(line)) {}

    void put(const graph::AudioChunk& chunk, std::int64_t now_ns) override {
        line_->put_received(chunk, now_ns);
    }
    void put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz,
                  std::int64_t now_ns) override {
        line_->put_sent(bridge_.convert(samples, rate_hz, line_->rate_hz()), now_ns);
    }

  private:
    std::shared_ptr<MonitorLine> line_;
    dsp::RateBridge bridge_;
};

/// The control thread's hold on one stream that hears another.
class MonitorHandle {
  public:
    /// `heard` has the ear, and `hearing` sends what the line has.
    MonitorHandle(std::shared_ptr<StreamHandle> heard, std::shared_ptr<StreamHandle> hearing, Listener* ear,
                  std::shared_ptr<MonitorLine> line)
        : heard_(std::move(heard)), hearing_(std::move(hearing)), ear_(ear), line_(std::move(line)) {}
    MonitorHandle(const MonitorHandle&) = delete;
    MonitorHandle& operator=(const MonitorHandle&) = delete;
    ~MonitorHandle() { close(); }

    /// Hear no more; harmless when done before, or when one of the streams is closed.
    void close();

  private:
    std::shared_ptr<StreamHandle> heard_;
    std::shared_ptr<StreamHandle> hearing_;
    Listener* ear_;
    std::shared_ptr<MonitorLine> line_;  ///< Null once closed.
};

}  // namespace trunkline::engine
