#pragma once

#include <cstdint>
#include <span>

#include "trunkline/graph/audio_chunk.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// A consumer of what a stream receives (a detector, a mixer's input): linear samples on the sender's clock,
/// in one unbroken run, silence and concealed audio included. On wish also of what it sends.
///
/// Made and destroyed by the control thread, called by the stream's engine thread; nothing in it allocates,
/// locks or throws.
class Listener : public util::Node {
  public:
    /// Mute hides a far end from people, not from detectors of its digits.
    enum class Hears : std::uint8_t { unmuted, all };
    /// Directions of a stream.
    enum class Side : std::uint8_t { received, both };

    explicit Listener(std::uint32_t rate_hz, Hears hears = Hears::unmuted, Side side = Side::received)
        : rate_hz_(rate_hz), hears_(hears), side_(side) {}

    /// Rate it is fed at, 8000 or 16000, whatever codec the stream changes to.
    std::uint32_t rate_hz() const { return rate_hz_; }
    Hears hears() const { return hears_; }
    /// True if it is fed with what the stream sends, too.
    bool hears_sent() const { return side_ == Side::both; }

    /// Process received audio, at most 60 ms.
    virtual void put(const graph::AudioChunk& chunk, std::int64_t now_ns) = 0;

    /// Process sent audio, at most 60 ms at 8000 or 16000 Hz, with gaps where nothing is sent.
    virtual void put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) {
        (void)samples, (void)rate_hz, (void)now_ns;
    }

    /// A tick of 20 ms.
    virtual void tick(std::int64_t now_ns) { (void)now_ns; }

  private:
    friend class Stream;

    std::uint32_t rate_hz_;
    Hears hears_;
    Side side_;
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
