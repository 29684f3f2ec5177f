#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trunkline/engine/conference.hpp"
#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/stream_handle.hpp"

namespace trunkline::engine {

class Engine;

/// Participation of a member, as set by the control thread.
struct Participation {
    bool listen_only = false;
    bool muted = false;
    /// Heard by the members with these streams only; nothing when by everybody.
    std::optional<std::vector<std::uint64_t>> whisper_to;
};

/// The control thread's hold on a conference. All methods are harmless after `close`.
class ConferenceHandle {
  public:
    /// The rate is 8000 or 16000.
    ConferenceHandle(std::shared_ptr<Engine> engine, Shard& shard, Conference* conference, std::uint64_t id,
                     std::uint32_t rate_hz);
    ConferenceHandle(const ConferenceHandle&) = delete;
    ConferenceHandle& operator=(const ConferenceHandle&) = delete;
    ~ConferenceHandle() { close(); }

    std::uint64_t id() const { return id_; }
    bool open() const { return conference_ != nullptr; }

    /// Add a stream of any shard: it sends the audio of the others from here on. False when the conference
    /// is full. Throws `std::invalid_argument` for a stream that is a member already, or a whisper to
    /// somebody who is not.
    bool add(const std::shared_ptr<StreamHandle>& stream, const Participation& participation);
    /// Throws `std::invalid_argument` for a stream that is no member, or a whisper to somebody who is not.
    void change(std::uint64_t stream, const Participation& participation);
    /// Harmless when the stream is no member.
    void remove(std::uint64_t stream);

    /// Level of each member, in decibels below full scale; 127 when silent.
    std::vector<std::pair<std::uint64_t, std::uint32_t>> levels() const;

    void play(std::unique_ptr<graph::Playback> playback);
    void pause_playback();
    void resume_playback();
    void stop_playback();
    /// Record what everybody may hear; its end is an event for `recording_id`. Returns 0 or the error number.
    int start_recording(std::uint64_t recording_id, const std::string& path, const RecordingOptions& options);
    void pause_recording(bool paused);
    void stop_recording();
    void close();

  private:
    struct Member {
        std::size_t slot;
        std::shared_ptr<ConferenceLine> line;
        std::weak_ptr<StreamHandle> stream;
        Listener* ear;
    };

    template <typename Action>
    void order(Action action, bool wake = true) {
        if (!open()) return;
        shard_->submit(make_command([conference = conference_, action = std::move(action)](
                                        std::int64_t now_ns) mutable { action(*conference, now_ns); }),
                       wake);
    }

    ConferenceRole role_of(const Participation& participation) const;
    void forget_closed();
    std::optional<std::size_t> free_slot() const;

    std::shared_ptr<Engine> engine_;
    Shard* shard_;
    Conference* conference_;  ///< Null once closed.
    std::uint64_t id_;
    std::uint32_t rate_hz_;
    std::unordered_map<std::uint64_t, Member> members_;
};

}  // namespace trunkline::engine
