#pragma once

#include <cstdint>
#include <span>

#include "trunkline/dsp/rate_bridge.hpp"
#include "trunkline/engine/recording.hpp"
#include "trunkline/graph/aligned_track.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// The engine thread's end of a recording: joins two sides of a conversation to frames of one clock.
///
/// Whoever has audio may own one: a stream puts in what it receives and sends, a conference its mix. Audio
/// counts as having passed when it was put in; one packet's last sample at that moment.
class Recorder final : public util::Node {
  public:
    explicit Recorder(Recording* recording);
    ~Recorder() override { end(); }

    /// Rate of the audio that is put in, 8000 or 16000.
    std::uint32_t rate_hz() const { return rate_hz_; }

    /// Append audio, at most 60 ms.
    void put_received(std::span<const std::int16_t> samples, std::int64_t now_ns) {
        put(received_, samples, now_ns);
    }
    void put_sent(std::span<const std::int16_t> samples, std::int64_t now_ns) { put(sent_, samples, now_ns); }
    /// The same at 8 or 16 kHz, whatever the rate is.
    void put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz, std::int64_t now_ns) {
        put_sent(bridge_.convert(samples, rate_hz, rate_hz_), now_ns);
    }

    /// Hand over the frames that are due, every 20 ms; false when the file takes no more and the recorder
    /// should be let go.
    bool tick(std::int64_t now_ns);

    /// Keep what passes from here on out of the file, or take it in again.
    void pause(bool paused, std::int64_t now_ns);

    /// Hand over what passed so far, and end.
    void finish(std::int64_t now_ns);

  private:
    void put(graph::AlignedTrack& side, std::span<const std::int16_t> samples, std::int64_t now_ns);
    std::int64_t position(std::int64_t now_ns);
    void note_pauses(std::int64_t frame);
    bool was_paused(std::int64_t frame) const { return (pauses_ >> (frame % 64) & 1) != 0; }
    void hand_over(std::int64_t until);
    void hand_over_frame();
    void end();

    Recording* recording_;  ///< Null after the end.
    std::uint32_t rate_hz_;
    std::int64_t frame_samples_;
    graph::AlignedTrack received_;
    graph::AlignedTrack sent_;
    dsp::RateBridge bridge_;
    std::int64_t start_ns_ = -1;     ///< When time began, with the first order or audio.
    std::uint64_t number_ = 0;       ///< Of the next frame in the file.
    std::uint64_t pauses_ = 0;       ///< Of the last 64 frames of time, which were paused.
    std::int64_t noted_frame_ = -1;  ///< The newest of them.
    bool paused_ = false;
};

}  // namespace trunkline::engine
