#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trunkline/engine/outlet.hpp"
#include "trunkline/engine/recording.hpp"

namespace trunkline::engine {

/// The thread that writes all recordings to disk, so that a slow disk holds up no packet.
class RecordingWriter {
  public:
    explicit RecordingWriter(Notifier& notifier);
    RecordingWriter(const RecordingWriter&) = delete;
    RecordingWriter& operator=(const RecordingWriter&) = delete;
    ~RecordingWriter() { close(); }

    /// Take a recording over; it is destroyed when it is over.
    void add(std::unique_ptr<Recording> recording);

    /// Wait until all recordings are over, then end the thread. Every one must have been ended before.
    void close();

    Outlet& outlet() { return outlet_; }

  private:
    void run();
    bool collect();
    void write_all();

    Outlet outlet_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Recording>> added_;  ///< Under the mutex.
    bool closing_ = false;                           ///< Under the mutex.
    std::vector<std::unique_ptr<Recording>> active_;
    std::thread thread_;
};

}  // namespace trunkline::engine
