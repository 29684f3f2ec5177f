#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// Sounds that are added to other audio: a few tracks, each a queue of playbacks of its own.
///
/// Made by the control thread for the first sound, and of no use once all tracks are empty.
class TrackMixer final : public util::Node {
  public:
    static constexpr std::size_t max_tracks = 4;

    explicit TrackMixer(PlaybackListener& listener)
        : tracks_{PlaybackQueue(listener), PlaybackQueue(listener), PlaybackQueue(listener),
                  PlaybackQueue(listener)} {}

    /// Queue a playback on a track, which must exist; takes ownership.
    void play(std::size_t track, Playback* playback) { tracks_[track].append(playback); }

    /// Drop the playbacks of a track.
    void stop(std::size_t track) { tracks_[track].stop(); }

    /// Drop those of all.
    void stop_all();

    bool empty() const;

    /// Add what the tracks play next, at 8000 or 16000 Hz; at most 60 ms. False when none plays.
    bool add_to(std::span<std::int16_t> samples, std::uint32_t rate_hz);

  private:
    std::array<PlaybackQueue, max_tracks> tracks_;
};

}  // namespace trunkline::graph
