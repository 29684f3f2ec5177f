#pragma once

#include <cstdint>
#include <span>

#include "trunkline/dsp/halfband.hpp"
#include "trunkline/engine/outlet.hpp"
#include "trunkline/graph/eager_reader.hpp"
#include "trunkline/graph/playout_queue.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// An agent's end of a stream: frames of what is received go out to the control thread, what the agent
/// wrote waits in the playout queue.
class Tap final : public util::Node, private graph::PlayoutListener {
  public:
    static constexpr std::uint32_t frame_ms = 20;

    Tap(std::uint64_t id, std::uint64_t stream, graph::AudioFormat format, std::int64_t now_ns,
        Outlet& outlet)
        : id_(id),
          stream_(stream),
          format_(format),
          outlet_(outlet),
          reader_(now_ns),
          playout_(format, *this) {}

    /// Take in received audio; frames that are complete leave at once.
    void put(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool restarted, bool marker,
             std::int64_t now_ns);

    /// Hand out the frames that are due without new audio.
    void tick(std::int64_t now_ns);

    graph::PlayoutQueue& playout() { return playout_; }
    const graph::PlayoutQueue& playout() const { return playout_; }
    const graph::EagerReader& reader() const { return reader_; }

  private:
    void hand_out(std::span<const std::int16_t> frame, std::int64_t now_ns);

    void mark_reached(std::uint32_t mark, bool cleared) override;
    void playout_drained() override;
    void spent(util::Node* node) override { outlet_.discard(node); }

    std::uint64_t id_;
    std::uint64_t stream_;
    graph::AudioFormat format_;
    Outlet& outlet_;
    graph::EagerReader reader_;
    graph::PlayoutQueue playout_;
    dsp::Upsampler upsampler_;
};

}  // namespace trunkline::engine
