#include "trunkline/engine/shard.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "trunkline/engine/thread.hpp"

namespace trunkline::engine {

namespace {

constexpr std::int64_t check_interval_ns = 250'000'000;
/// Waking up costs more than reading a packet. When sockets become ready faster than this, they are read on a
/// grid, many at a time, which delays a packet by half of the grid on average.
constexpr std::int64_t pace_ns = 312'500;
/// The grid while nothing is relayed, which is that of the ticks: audio for agents, recordings and
/// conferences leaves with the next tick, and is read just before it.
constexpr std::int64_t calm_pace_ns = TimerWheel::slot_ns;
constexpr std::int64_t low_latency_ns = 250'000'000;
constexpr std::int64_t pace_window_ns = 8'000'000;
constexpr std::size_t paced_ready = 24;
/// Streams one shard has room for before its table must grow; far above what one core can carry.
constexpr std::size_t reserved_streams = 8192;

/// Edge-triggered: each wake-up reads a socket empty, and the kernel need not look at it again.
int watch_edges(int epoll, int descriptor, Readable* owner, std::uint32_t events = EPOLLIN) {
    epoll_event event{};
    event.events = events | EPOLLET;
    event.data.ptr = owner;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
}

}  // namespace

Shard::Shard(std::size_t number, const Clock& clock, Notifier& notifier)
    : clock_(clock), event_queue_(notifier) {
    streams_.reserve(reserved_streams);
    // A stream has two sockets at most, and one to its agent.
    unfinished_.reserve(3 * reserved_streams);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (epoll_ < 0 || wake_ < 0 || watch_edges(epoll_, wake_, nullptr) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll");
    }
    if (clock_.driven()) return;
    thread_ = start_thread(("tl-media-" + std::to_string(number)).c_str(), [this] { run(); });
}

Shard::~Shard() {
    stop();
    ::close(wake_);
    ::close(epoll_);
}

void Shard::submit(Command* command, bool wake) {
    commands_.push(command);
    if (wake) this->wake();
}

void Shard::wake() {
    if (wake_pending_.exchange(true, std::memory_order_acq_rel)) return;
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
}

void Shard::stop() {
    if (thread_.joinable()) {
        submit(make_command([this](std::int64_t) { stopping_ = true; }));
        thread_.join();
    } else if (!std::exchange(stopping_, true)) {
        shut_all();
    }
}

int Shard::watch(int descriptor, Readable& reader, std::uint32_t events) {
    return watch_edges(epoll_, descriptor, &reader, events);
}

void Shard::read_on(Readable& reader) {
    if (std::exchange(reader.unfinished, true)) return;
    unfinished_.push_back(&reader);
}

void Shard::forget(Readable& reader) {
    if (reader.unfinished) std::erase(unfinished_, &reader);
    for (std::size_t n = 0; n < ready_count_; ++n) {
        if (ready_[n].data.ptr == &reader) ready_[n].data.ptr = nullptr;
    }
}

void Shard::unwatch(int descriptor, Readable& reader) {
    (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
    forget(reader);
}

void Shard::add(Stream* stream) {
    stream->index = streams_.size();
    streams_.push_back(stream);
}

void Shard::remove(Stream* stream, std::int64_t now_ns) {
    streams_[stream->index] = streams_.back();
    streams_[stream->index]->index = stream->index;
    streams_.pop_back();
    forget(*stream);
    forget(stream->rtcp());
    stream->shut(now_ns);
    event_queue_.discard_soon(stream);
}

void Shard::run() {
    while (!stopping_)
        pace(turn(patience_ms(clock_.now_ns())));
    shut_all();
}

std::int64_t Shard::advance() {
    const std::int64_t now_ns = clock_.now_ns();
    const bool due = !commands_.empty() || next_due_ns() <= now_ns;
    turn(0);
    return due || ready_count_ != 0 ? now_ns : next_due_ns();
}

/// Wait for packets and ticks, so long at most, and do what they ask for. Returns the time at which it did.
std::int64_t Shard::turn(int patience_ms) {
    const int count = epoll_wait(epoll_, ready_.data(), max_events, patience_ms);
    ready_count_ = static_cast<std::size_t>(std::max(count, 0));
    const std::int64_t now_ns = clock_.now_ns();
    // First, so that an order given before a packet came is in force when it is read.
    run_commands(now_ns);
    for (std::size_t n = 0; n < ready_count_; ++n) {
        // The wake-up descriptor is never read: edge-triggered, each write to it is an event.
        auto* reader = static_cast<Readable*>(ready_[n].data.ptr);
        if (reader == nullptr) continue;
        if ((ready_[n].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) reader->hung_up = true;
        if (reader->low_latency) low_latency_until_ns_ = now_ns + low_latency_ns;
        receive(*reader, now_ns);
    }
    receive_unfinished(now_ns);
    wheel_.advance(now_ns);
    check_streams(now_ns);
    event_queue_.flush(now_ns);
    return now_ns;
}

/// Let packets gather before the next turn when there are many.
void Shard::pace(std::int64_t now_ns) {
    ready_in_window_ += ready_count_;
    if (now_ns >= window_end_ns_) {
        paced_ = ready_in_window_ >= paced_ready;
        ready_in_window_ = 0;
        window_end_ns_ = now_ns + pace_window_ns;
    }
    // A full batch tells that more sockets are ready than were asked for.
    if (!paced_ || !unfinished_.empty() || stopping_ || ready_count_ == max_events) return;
    const std::int64_t grid_ns = now_ns < low_latency_until_ns_ ? pace_ns : calm_pace_ns;
    sleep_until((monotonic_ns() / grid_ns + 1) * grid_ns);
}

/// When there is something to do though no packet comes.
std::int64_t Shard::next_due_ns() {
    if (!unfinished_.empty()) return 0;
    // The check without a stream too: a command that was submitted without a wake-up may bring the first one,
    // and take it away again, with a port that others wait for.
    return std::min({wheel_.next_due_ns(), event_queue_.flush_due_ns(), next_check_ns_});
}

/// Longest sleep, in milliseconds as epoll counts them.
int Shard::patience_ms(std::int64_t now_ns) {
    const std::int64_t left_ns = std::max<std::int64_t>(next_due_ns() - now_ns, 0);
    return static_cast<int>((left_ns + 999'999) / 1'000'000);
}

void Shard::receive(Readable& reader, std::int64_t now_ns) {
    for (int reads = 0; reads < max_reads; ++reads) {
        if (!reader.receive(received_, relayed_, now_ns)) return;
    }
    if (reader.unfinished) return;
    reader.unfinished = true;
    unfinished_.push_back(&reader);
}

/// Another turn for the sockets that had more to read than their share.
void Shard::receive_unfinished(std::int64_t now_ns) {
    if (unfinished_.empty()) return;
    std::size_t kept = 0;
    for (Readable* reader : unfinished_) {
        reader->unfinished = reader->receive(received_, relayed_, now_ns);
        if (reader->unfinished) unfinished_[kept++] = reader;
    }
    unfinished_.resize(kept);
}

void Shard::run_commands(std::int64_t now_ns) {
    // Before looking, also when there is nothing: a command that was taken with the last ones may have
    // announced itself after that, and no later one would write to the descriptor while this stands.
    if (wake_pending_.load(std::memory_order_relaxed))
        wake_pending_.exchange(false, std::memory_order_acq_rel);
    if (commands_.empty()) return;
    for (util::Node* node = commands_.take_oldest_first(); node != nullptr;) {
        util::Node* following = node->next_node;
        static_cast<Command*>(node)->run(now_ns);
        event_queue_.discard(node);
        node = following;
    }
}

void Shard::check_streams(std::int64_t now_ns) {
    if (now_ns < next_check_ns_) return;
    next_check_ns_ = now_ns + check_interval_ns;
    for (Stream* stream : streams_) {
        stream->check(now_ns);
    }
}

void Shard::shut_all() {
    ready_count_ = 0;
    const std::int64_t now_ns = clock_.now_ns();
    run_commands(now_ns);
    while (!streams_.empty()) {
        remove(streams_.back(), now_ns);
    }
    event_queue_.flush(now_ns);
}

}  // namespace trunkline::engine
