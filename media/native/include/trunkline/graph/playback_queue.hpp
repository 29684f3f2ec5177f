#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// One piece of audio to play: linear samples at 8 kHz, little-endian, owned by whoever `owner` stands for.
struct Clip final : util::Node {
    std::uint64_t id = 0;
    bool loop = false;
    std::span<const std::uint8_t> bytes;
    std::shared_ptr<const void> owner;

    std::size_t size_samples() const { return bytes.size() / 2; }
};

/// What a playback queue tells.
class PlaybackListener {
  public:
    /// A clip came to its end, or was cut off.
    virtual void playback_finished(std::uint64_t id, bool interrupted) = 0;

    /// A node is no longer needed and goes back to the control thread.
    virtual void spent(util::Node* node) = 0;

  protected:
    ~PlaybackListener() = default;
};

/// Clips that are played one after the other. A looping clip goes on until another waits behind it.
class PlaybackQueue {
  public:
    explicit PlaybackQueue(PlaybackListener& listener) : listener_(listener) {}
    PlaybackQueue(const PlaybackQueue&) = delete;
    PlaybackQueue& operator=(const PlaybackQueue&) = delete;
    ~PlaybackQueue() { util::NodeStack::destroy(first_); }

    /// Queue a clip; takes ownership.
    void append(Clip* clip);

    /// Drop all clips; each is reported as interrupted.
    void stop();

    bool empty() const { return first_ == nullptr; }

    /// Fill `out` with what plays next, padded with silence after the last clip.
    void pull(std::span<std::int16_t> out);

  private:
    void drop_first(bool interrupted);

    PlaybackListener& listener_;
    Clip* first_ = nullptr;
    Clip* last_ = nullptr;
    std::size_t position_samples_ = 0;  ///< In the first clip.
};

}  // namespace trunkline::graph
