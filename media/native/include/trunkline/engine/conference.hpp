#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/dsp/halfband.hpp"
#include "trunkline/engine/conference_line.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/recorder.hpp"
#include "trunkline/engine/timer_wheel.hpp"
#include "trunkline/graph/mix.hpp"
#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// Speaking rights of a conference member. Every member hears the others.
struct ConferenceRole {
    static constexpr std::size_t max_members = 128;
    using Slots = std::bitset<max_members>;

    bool heard = true;      ///< Not muted and not a mere listener.
    bool whispers = false;  ///< Heard by the members in `whisper_to` only.
    Slots whisper_to;
};

/// A member as the conference's thread knows it.
struct ConferenceMember final : util::Node {
    std::uint64_t stream = 0;
    std::size_t slot = 0;  ///< Its bit in `ConferenceRole::whisper_to`.
    ConferenceRole role;
    std::shared_ptr<ConferenceLine> line;

    // Of the present frame.
    std::array<std::int16_t, graph::Mix::max_frame_samples> frame{};
    bool silent = true;
    float power = 0;  ///< Smoothed over some 100 ms.
};

/// Joins the audio of many streams: each hears all others, by a clock of 20 ms.
///
/// Lives on one shard's thread; its members may live on any. Made and destroyed by the control thread.
class Conference final : public util::Node, private graph::PlaybackListener, private Ticker {
  public:
    static constexpr std::uint32_t frame_ms = 20;
    static constexpr std::size_t max_members = ConferenceRole::max_members;

    Conference(std::uint64_t id, std::uint32_t rate_hz, EventQueue& event_queue, TimerWheel& wheel);
    ~Conference() override;

    // Orders, run on the shard's thread.

    void add(ConferenceMember* member, std::int64_t now_ns);
    void change(std::uint64_t stream, const ConferenceRole& role);
    /// Remove a member; harmless when it has left by itself.
    void remove(std::uint64_t stream, std::int64_t now_ns);
    void play(graph::Playback* playback, std::int64_t now_ns);
    void pause_playback() { playback_.pause(); }
    void resume_playback() { playback_.resume(); }
    void stop_playback() { playback_.stop(); }
    void attach_recorder(Recorder* recorder, std::int64_t now_ns);
    void pause_recorder(bool paused, std::int64_t now_ns);
    void detach_recorder(std::int64_t now_ns);
    /// Release everything, and itself.
    void shut(std::int64_t now_ns);

  private:
    void tick(std::int64_t now_ns) override;
    void run_clock(std::int64_t now_ns);
    void listen();
    void measure(ConferenceMember& member);
    void speak();
    void record(std::int64_t now_ns);
    void follow_talker();
    void release(std::size_t index);
    std::size_t find(std::uint64_t stream) const;
    static bool in_sum(const ConferenceMember& member) { return !member.silent && !member.role.whispers; }

    void playback_finished(std::uint64_t id, graph::PlaybackEnd why, char key,
                           std::uint64_t played_ms) override;
    void playback_position(std::uint64_t id, std::uint64_t played_ms) override;
    void spent(util::Node* node) override { event_queue_.discard(node); }

    std::uint64_t id_;
    std::uint32_t rate_hz_;
    std::size_t frame_samples_;
    EventQueue& event_queue_;
    TimerWheel& wheel_;
    graph::Mix mix_;
    graph::PlaybackQueue playback_;
    Recorder* recorder_ = nullptr;
    dsp::Upsampler recorder_upsampler_;
    dsp::Downsampler recorder_downsampler_;

    std::array<ConferenceMember*, max_members> members_{};
    std::size_t member_count_ = 0;
    std::array<const ConferenceMember*, max_members> whisperers_{};  ///< Of the present frame.
    std::size_t whisperer_count_ = 0;

    std::uint64_t talker_ = 0;     ///< The stream told last; 0 for nobody.
    std::uint64_t candidate_ = 0;  ///< Who is loudest for the last `candidate_beats_`.
    std::uint32_t candidate_beats_ = 0;
};

}  // namespace trunkline::engine
