#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/dsp/rate_bridge.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/stream_figures.hpp"
#include "trunkline/graph/frame_buffer.hpp"
#include "trunkline/graph/playout_queue.hpp"
#include "trunkline/util/counter.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

class AgentSocket;

/// An agent's end of a stream: frames of what is received go out to the agent's socket, or to the control
/// thread while there is none; what the agent wrote waits in the playout queue.
class Tap final : public util::Node, private graph::PlayoutListener {
  public:
    static constexpr std::uint32_t frame_ms = 20;
    static constexpr std::size_t max_frame_samples = frame_ms * 16;
    /// Most audio that waits to be played.
    static constexpr std::uint32_t capacity_ms = 120'000;

    /// Made by the control thread. With a `sent_id` other than 0, each frame of what is received is followed
    /// by one, under that number, of what is sent.
    Tap(std::uint64_t id, std::uint64_t sent_id, std::uint64_t stream, graph::AudioFormat format,
        StreamFigures& figures, EventQueue& event_queue);
    ~Tap() override { util::NodeStack::destroy(spare_); }

    /// Rate of both directions, whatever the stream's is.
    std::uint32_t rate_hz() const { return format_.rate_hz; }

    /// Append received audio, in one unbroken run; complete frames leave at once.
    void put(std::span<const std::int16_t> samples, std::int64_t now_ns);

    /// Append sent audio, at most 60 ms at 8 or 16 kHz; only while `hears_sent`.
    void put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz);
    bool hears_sent() const { return sent_ != nullptr; }

    /// Fill `out`, at most 60 ms at 8 or 16 kHz, with what the agent's audio plays now; false when nothing
    /// does.
    bool pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t now_ns);

    /// Hand out frames to a socket of the same thread; null joins it to none.
    void join(AgentSocket* socket);

    /// Queue audio of the socket, in base64 or not; false if it is none, or holds a part of a sample. What
    /// does not fit is dropped and reported.
    bool write(std::span<const std::uint8_t> bytes, bool base64, std::int64_t now_ns);

    /// Bytes that the socket queued, and those it had no room for. May be read from any thread.
    std::uint64_t written_bytes() const { return written_bytes_.get(); }
    std::uint64_t refused_bytes() const { return refused_bytes_.get(); }

    graph::PlayoutQueue& playout() { return playout_; }
    const graph::PlayoutQueue& playout() const { return playout_; }

  private:
    /// Sent audio, until the tick of received audio.
    struct Sent {
        explicit Sent(std::uint32_t rate_hz) : buffer(rate_hz) {}
        dsp::RateBridge bridge;
        graph::FrameBuffer buffer;
    };

    /// Level to which an overflowing queue must fall before the next overflow is reported.
    static constexpr std::uint32_t overflow_over_ms = 110'000;
    /// Played items that are kept to be used again, so that steady audio needs no allocation.
    static constexpr std::size_t max_spare = 16;
    static constexpr std::uint32_t spare_bytes = 2048;

    void hand_out(std::uint64_t id, std::span<const std::int16_t> frame, std::int64_t now_ns);
    void encode(std::span<const std::int16_t> frame, std::uint8_t* out) const;
    std::unique_ptr<graph::PlayoutItem> take_item(std::uint32_t size_bytes);
    void queue(std::unique_ptr<graph::PlayoutItem> item, std::int64_t now_ns);
    void refuse(std::uint32_t size_bytes);

    void mark_reached(std::uint32_t mark, bool cleared) override;
    void playout_drained() override;
    void playout_level(bool full, std::uint64_t level_ms) override;
    void playout_underrun() override { figures_.underruns.add(1); }
    void spent(util::Node* node) override;

    std::uint64_t id_;
    std::uint64_t sent_id_;
    std::uint64_t stream_;
    graph::AudioFormat format_;
    StreamFigures& figures_;
    EventQueue& event_queue_;
    graph::PlayoutQueue playout_;
    dsp::RateBridge bridge_;  ///< From the queue's rate to what is sent.
    std::array<std::int16_t, max_frame_samples> frame_;
    std::size_t filled_ = 0;      ///< Samples of the frame that have come.
    std::unique_ptr<Sent> sent_;  ///< Null unless what is sent is wanted too.
    AgentSocket* socket_ = nullptr;
    util::Node* spare_ = nullptr;
    std::size_t spare_count_ = 0;
    bool overflowing_ = false;
    util::Counter written_bytes_;
    util::Counter refused_bytes_;
};

}  // namespace trunkline::engine
