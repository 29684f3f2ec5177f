#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trunkline/engine/clock.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/recording.hpp"

namespace trunkline::engine {

/// Writes all recordings to disk, on a thread of its own so that a slow disk holds up no packet. With a
/// driven clock there is no thread.
class RecordingWriter {
  public:
    RecordingWriter(const Clock& clock, Notifier& notifier);
    RecordingWriter(const RecordingWriter&) = delete;
    RecordingWriter& operator=(const RecordingWriter&) = delete;
    ~RecordingWriter() { close(); }

    /// Take a recording over; it is destroyed when it is over.
    void add(std::unique_ptr<Recording> recording);

    /// Control thread, with a driven clock: write what is due. Returns when more will be.
    std::int64_t advance();

    /// Wait until all recordings are over, then end the thread. Every one must have been ended before.
    void close();

    EventQueue& event_queue() { return event_queue_; }

  private:
    void run();
    bool collect();
    void take_added();
    void write_all();

    const Clock& clock_;
    EventQueue event_queue_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Recording>> added_;  ///< Under the mutex.
    bool closing_ = false;                           ///< Under the mutex.
    std::vector<std::unique_ptr<Recording>> active_;
    std::int64_t next_write_ns_ = 0;  ///< With a driven clock.
    std::thread thread_;
};

}  // namespace trunkline::engine
