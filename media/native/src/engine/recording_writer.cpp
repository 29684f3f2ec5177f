#include "trunkline/engine/recording_writer.hpp"

#include <chrono>
#include <utility>

#include "trunkline/engine/thread.hpp"

namespace trunkline::engine {

namespace {

constexpr std::chrono::milliseconds write_interval{100};

}  // namespace

RecordingWriter::RecordingWriter(Notifier& notifier) : outlet_(notifier) {
    thread_ = start_thread("tl-recorder", [this] { run(); });
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
    if (thread_.joinable()) thread_.join();
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
    for (auto& recording : added_) {
        active_.push_back(std::move(recording));
    }
    added_.clear();
    return !active_.empty() || !closing_;
}

void RecordingWriter::write_all() {
    const std::int64_t now_ns = monotonic_ns();
    std::erase_if(active_, [&](const auto& recording) { return recording->write(now_ns, outlet_); });
    outlet_.flush(now_ns);
}

}  // namespace trunkline::engine
