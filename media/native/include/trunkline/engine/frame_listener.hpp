#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/listener.hpp"

namespace trunkline::engine {

class StreamHandle;

/// Hands what a stream receives to the control thread, in frames of 16-bit samples, and changes nothing of
/// what is sent. Of a far end that is muted it hears silence.
class FrameListener final : public Listener {
  public:
    static constexpr std::uint32_t frame_ms = 100;
    static constexpr std::size_t max_frame_samples = frame_ms * 16;

    FrameListener(std::uint64_t id, std::uint32_t rate_hz, EventQueue& event_queue)
        : Listener(rate_hz), id_(id), event_queue_(event_queue) {}

    void put(const graph::AudioChunk& chunk, std::int64_t now_ns) override;

  private:
    std::uint64_t id_;
    EventQueue& event_queue_;
    std::array<std::int16_t, max_frame_samples> frame_;
    std::size_t filled_ = 0;  ///< Samples of the frame that have come.
};

/// The control thread's hold on a listener to frames.
class FrameListenerHandle {
  public:
    FrameListenerHandle(std::shared_ptr<StreamHandle> stream, std::uint64_t id, Listener* listener)
        : stream_(std::move(stream)), id_(id), listener_(listener) {}
    FrameListenerHandle(const FrameListenerHandle&) = delete;
    FrameListenerHandle& operator=(const FrameListenerHandle&) = delete;
    ~FrameListenerHandle() { close(); }

    /// Number of its frames.
    std::uint64_t id() const { return id_; }

    /// Detach from the stream; harmless when done before, or when the stream is closed.
    void close();

  private:
    std::shared_ptr<StreamHandle> stream_;
    std::uint64_t id_;
    Listener* listener_;  ///< Null once closed.
};

}  // namespace trunkline::engine
