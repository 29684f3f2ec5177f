#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "trunkline/util/byte_ring.hpp"
#include "trunkline/util/counter.hpp"
#include "trunkline/util/node.hpp"
#include "trunkline/util/spsc_ring.hpp"

namespace trunkline::engine {

/// Kind of an event; the meaning of `a`, `b` and `c` stands beside each.
enum class EventKind : std::uint32_t {
    first_packet = 1,        ///< Nothing.
    dtmf_received = 2,       ///< a: key as a character, b: duration in ms.
    dtmf_sent = 3,           ///< a: token of the text sent.
    mark_reached = 5,        ///< a: 1 when cleared, b: mark.
    playout_drained = 6,     ///< Nothing.
    media_timeout = 7,       ///< a: 1 while no audio was due, b: silence in ms.
    recording_finished = 8,  ///< a: error number, limit (recording.hpp) or 0, b: duration in ms, c: bytes.
    playout_level = 9,       ///< a: 1 when so much waits that a writer should pause, b: ms that wait.
    playout_overflow = 10,   ///< b: ms of audio from an agent's socket that the queue had no room for.
    recording_gap = 30,      ///< b: ms of silence so far in place of audio the disk was too slow for.
    speech_started = 40,     ///< Nothing.
    speech_stopped = 41,     ///< b: length of the speech in ms.
    machine_verdict = 42,    ///< a: dsp::Answer and, eight bits up, dsp::AnswerReason, b: ms it took.
    greeting_ended = 43,     ///< a: dsp::GreetingEnd, b: ms since the classification began.
    tone_detected = 44,      ///< a: dsp::ToneKind, b: ms it lasted, c: frequency in Hz.
    active_talker = 50,      ///< Of a conference. b: stream of who talks, 0 when nobody does.
    conference_left = 51,    ///< Of a conference. b: stream that was closed while it was a member.
    /// a: why (graph::PlaybackEnd) and, eight bits up, the key; b: playback id, c: ms played.
    playback_finished = 60,
    playback_position = 61,  ///< b: playback id, c: ms played.
};

/// One thing that happened on a stream.
struct Event {
    std::uint64_t stream = 0;
    EventKind kind{};
    std::uint32_t a = 0;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
};

/// The one eventfd that wakes the control thread.
class Notifier {
  public:
    Notifier();
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;
    ~Notifier();

    int descriptor() const { return descriptor_; }

    /// Make the descriptor readable, unless it already is.
    void signal();

    /// Make it unreadable again; call before looking at the queues.
    void acknowledge();

  private:
    int descriptor_;
    std::atomic<bool> signalled_ = false;
};

/// Everything one engine thread hands to the control thread: events, frames of taps, nodes to destroy.
/// All bounded; what does not fit is counted and dropped.
class EventQueue {
  public:
    static constexpr std::size_t event_capacity = 8192;
    static constexpr std::size_t frame_capacity_bytes = 4 << 20;
    /// Frames wait for others this long at most before the control thread is woken.
    static constexpr std::int64_t flush_interval_ns = 5'000'000;

    explicit EventQueue(Notifier& notifier);

    /// Queue an event; the control thread is woken with the next `flush`.
    void emit(const Event& event);

    /// Room for a frame of a tap, or nothing when the control thread has fallen behind.
    std::uint8_t* reserve_frame(std::size_t size_bytes);
    void commit_frame(std::uint64_t tap, std::size_t size_bytes, std::int64_t now_ns);

    /// Return a node to the control thread, which destroys it.
    void discard(util::Node* node) { spent_.push(node); }

    /// Likewise one that holds what others wait for, such as a port: the control thread is woken.
    void discard_soon(util::Node* node) {
        discard(node);
        flush_due_ns_ = 0;
    }

    /// Queue a message that is a node; the control thread, which destroys it, is woken with the next `flush`.
    void post(util::Node* message) {
        messages_.push(message);
        flush_due_ns_ = 0;
    }

    /// When `flush` must be called at the latest.
    std::int64_t flush_due_ns() const { return flush_due_ns_; }

    /// Wake the control thread if there is something for it that must not wait.
    void flush(std::int64_t now_ns);

    util::SpscRing<Event>& events() { return events_; }
    util::ByteRing& frames() { return frames_; }
    util::NodeStack& messages() { return messages_; }
    util::NodeStack& spent() { return spent_; }
    std::uint64_t events_dropped() const { return events_dropped_.get(); }
    std::uint64_t frames_dropped() const { return frames_dropped_.get(); }

  private:
    static constexpr std::int64_t nothing_due_ns = std::numeric_limits<std::int64_t>::max();

    Notifier& notifier_;
    util::SpscRing<Event> events_;
    util::ByteRing frames_;
    util::NodeStack messages_;
    util::NodeStack spent_;
    util::Counter events_dropped_;
    util::Counter frames_dropped_;
    std::int64_t flush_due_ns_ = nothing_due_ns;
};

}  // namespace trunkline::engine
