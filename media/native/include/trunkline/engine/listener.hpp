#pragma once

#include <cstdint>
#include <span>

#include "trunkline/graph/audio_chunk.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// A consumer of what a stream receives (a detector, a mixer's input): linear samples on the sender's clock,
/// in one unbroken run, silence and concealed audio included.
///
/// Made and destroyed by the control thread, called by the stream's engine thread; nothing in it allocates,
/// locks or throws.
class Listener : public util::Node {
  public:
    /// Mute hides a far end from people, not from detectors of its digits.
    enum class Hears : std::uint8_t { unmuted, all };

    explicit Listener(std::uint32_t rate_hz, Hears hears = Hears::unmuted)
        : rate_hz_(rate_hz), hears_(hears) {}

    /// Rate it is fed at, 8000 or 16000, whatever codec the stream changes to.
    std::uint32_t rate_hz() const { return rate_hz_; }
    Hears hears() const { return hears_; }

    /// Process received audio, at most 60 ms.
    virtual void put(const graph::AudioChunk& chunk, std::int64_t now_ns) = 0;

    /// A tick of 20 ms.
    virtual void tick(std::int64_t now_ns) { (void)now_ns; }

  private:
    friend class Stream;

    std::uint32_t rate_hz_;
    Hears hears_;
    Listener* next_listener_ = nullptr;
};

/// Audio for a stream to send besides its own (a mixer's output), pulled at the stream's send clock.
class AudioSource {
  public:
    /// Fill `out`, samples at `rate_hz` (8000 or 16000); false when there is nothing to send.
    virtual bool pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t now_ns) = 0;

  protected:
    ~AudioSource() = default;
};

}  // namespace trunkline::engine
