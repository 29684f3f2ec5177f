#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "trunkline/engine/tap.hpp"
#include "trunkline/graph/playout_queue.hpp"

namespace trunkline::engine {

class StreamHandle;

/// The control thread's hold on an agent tap.
class TapHandle {
  public:
    /// Most marks that wait.
    static constexpr std::uint32_t max_marks = 1000;

    TapHandle(std::shared_ptr<StreamHandle> stream, std::uint64_t id, std::uint64_t sent_id, Tap* tap,
              graph::AudioFormat format)
        : stream_(std::move(stream)), id_(id), sent_id_(sent_id), tap_(tap), format_(format) {}
    TapHandle(const TapHandle&) = delete;
    TapHandle& operator=(const TapHandle&) = delete;
    ~TapHandle() { close(); }

    std::uint64_t id() const { return id_; }
    /// Number of the frames of what is sent; 0 when they are not wanted.
    std::uint64_t sent_id() const { return sent_id_; }

    /// Append audio to the playout queue. Returns how many bytes there was no room for.
    std::size_t write(const std::uint8_t* bytes, std::size_t size);

    /// Append a mark.
    void mark(std::uint32_t mark);

    /// Drop what is queued, and end a pause.
    void clear();

    /// Play nothing, and keep what is queued, until the pause is over.
    void pause(bool active);

    /// Milliseconds of audio that wait to be played.
    std::uint32_t queued_ms() const;

    /// Milliseconds of audio that were played or dropped.
    std::uint64_t played_ms() const;

    /// Milliseconds of audio that the agent's socket had no room for.
    std::uint64_t refused_ms() const;

    /// Prebuffer of the agent's next utterance.
    std::uint32_t prebuffer_ms() const;

    /// Tell with events when at least `full_ms` wait, and after that when no more than `low_ms` do.
    void watch_level(std::uint32_t full_ms, std::uint32_t low_ms);

    /// Detach from the stream; harmless when done before.
    void close();

  private:
    friend class AgentSocketHandle;
    friend class StreamHandle;

    void append(std::unique_ptr<graph::PlayoutItem> item, bool wake);
    std::uint64_t written_bytes() const;
    std::uint64_t queued_bytes() const;
    bool open() const;

    std::shared_ptr<StreamHandle> stream_;
    std::uint64_t id_;
    std::uint64_t sent_id_;
    Tap* tap_;  ///< Null once closed.
    graph::AudioFormat format_;
    std::uint64_t written_bytes_ = 0;  ///< By `write`; the agent's socket queues more by itself.
    std::uint64_t cleared_bytes_ = 0;  ///< What was written when the queue was last cleared.
    bool has_odd_byte_ = false;
    std::uint8_t odd_byte_ = 0;  ///< First half of a sample whose other half is still to come.
};

}  // namespace trunkline::engine
