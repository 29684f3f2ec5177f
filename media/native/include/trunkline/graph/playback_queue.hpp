#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/graph/playback.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// Cause of a playback's end. The numbers are part of the contract with Python.
enum class PlaybackEnd : std::uint8_t { ended = 0, stopped = 1, digit = 2, speech = 3 };

/// Receiver of a playback queue's events.
class PlaybackListener {
  public:
    /// A playback came to its end or was cut off, the latter by `key` when a digit did it.
    virtual void playback_finished(std::uint64_t id, PlaybackEnd why, char key, std::uint64_t played_ms) = 0;

    /// Position of a playback.
    virtual void playback_position(std::uint64_t id, std::uint64_t played_ms) = 0;

    /// A node is no longer needed and goes back to the control thread.
    virtual void spent(util::Node* node) = 0;

  protected:
    ~PlaybackListener() = default;
};

/// Playbacks, one after the other. One without end goes on until another waits behind it.
///
/// Interrupted audio fades out within 5 ms.
class PlaybackQueue {
  public:
    /// Most playbacks that wait or play; what exceeds them is told as stopped.
    static constexpr std::uint32_t max_playbacks = 256;
    static constexpr std::uint32_t fade_ms = 5;

    explicit PlaybackQueue(PlaybackListener& listener) : listener_(listener) {}
    PlaybackQueue(const PlaybackQueue&) = delete;
    PlaybackQueue& operator=(const PlaybackQueue&) = delete;
    ~PlaybackQueue() { util::NodeStack::destroy(first_); }

    /// Queue a playback; takes ownership.
    void append(Playback* playback);

    /// Drop all playbacks; each is told as stopped.
    void stop();

    /// Halt where it is, until `resume`. What is appended meanwhile waits.
    void pause();
    void resume();

    /// The far end pressed a key or began to speak: a playback that ends by that ends, and with it those
    /// behind it up to the first that does not.
    void barge_in(PlaybackEnd why, char key = '\0');

    /// True if speech of the far end would end what plays.
    bool wants_speech() const { return first_ != nullptr && first_->ends_by_speech; }

    /// True if the next pull has audible audio.
    bool playing() const { return fade_left_ != 0 || (first_ != nullptr && !paused_); }

    bool empty() const { return first_ == nullptr && fade_left_ == 0; }

    /// Fill `out` at 8000 or 16000 Hz with what plays next, padded with silence.
    void pull(std::span<std::int16_t> out, std::uint32_t rate_hz);

  private:
    static constexpr std::uint32_t max_fade_samples = fade_ms * 16;

    std::size_t render(std::span<std::int16_t> out);
    void fade_out();
    std::size_t play_fade(std::span<std::int16_t> out);
    void rise(std::span<std::int16_t> out);
    void drop_first(PlaybackEnd why, char key);

    PlaybackListener& listener_;
    Playback* first_ = nullptr;
    Playback* last_ = nullptr;
    std::uint32_t count_ = 0;
    bool paused_ = false;
    std::uint32_t rate_hz_ = 0;  ///< Of the last pull; 0 before the first.
    std::array<std::int16_t, max_fade_samples> fade_{};
    std::uint32_t fade_left_ = 0;  ///< Samples at the front of `fade_` that come next.
    std::uint32_t rise_left_ = 0;  ///< Samples of the rise after a pause that are to come.
};

}  // namespace trunkline::graph
