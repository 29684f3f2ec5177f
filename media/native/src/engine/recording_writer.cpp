#include "trunkline/engine/recording_writer.hpp"

#include <chrono>
#include <utility>

#include "trunkline/engine/thread.hpp"
#include "trunkline/engine/timer_wheel.hpp"

namespace trunkline::engine {

namespace {

constexpr std::chrono::milliseconds write_interval{100};
constexpr std::int64_t write_interval_ns = std::chrono::nanoseconds(write_interval).count();

}  // namespace

RecordingWriter::RecordingWriter(const Clock& clock, Notifier& notifier)
    : clock_(clock), event_queue_(notifier) {
    if (!clock_.driven()) thread_ = start_thread("tl-recorder", [this] { run(); });
}

void RecordingWriter::add(std::unique_ptr<Recording> recording) {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(recording));
    changed_.notify_one();
}

void RecordingWriter::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        changed_.notify_one();
    }
    if (thread_.joinable()) {
        thread_.join();
    } else {
        for (take_added(); !active_.empty();)
            write_all();
    }
}

std::int64_t RecordingWriter::advance() {
    {
        const std::lock_guard lock(mutex_);
        take_added();
    }
    if (active_.empty()) return TimerWheel::never_ns;
    const std::int64_t now_ns = clock_.now_ns();
    if (now_ns >= next_write_ns_) {
        write_all();
        next_write_ns_ = now_ns + write_interval_ns;
    }
    return next_write_ns_;
}

void RecordingWriter::run() {
    while (collect()) {
        write_all();
    }
}

/// Wait for the next round; false when there is nothing left to do and no more will come.
bool RecordingWriter::collect() {
    std::unique_lock lock(mutex_);
    if (active_.empty()) {
        changed_.wait(lock, [this] { return closing_ || !added_.empty(); });
    } else {
        changed_.wait_for(lock, write_interval, [this] { return closing_; });
    }
    take_added();
    return !active_.empty() || !closing_;
}

void RecordingWriter::take_added() {
    for (auto& recording : added_) {
        active_.push_back(std::move(recording));
    }
    added_.clear();
}

void RecordingWriter::write_all() {
    const std::int64_t now_ns = clock_.now_ns();
    std::erase_if(active_, [&](const auto& recording) { return recording->write(now_ns, event_queue_); });
    event_queue_.flush(now_ns);
}

}  // namespace trunkline::engine
