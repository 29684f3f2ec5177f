#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "trunkline/engine/clock.hpp"
#include "trunkline/engine/command.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/readable.hpp"
#include "trunkline/engine/stream.hpp"
#include "trunkline/engine/timer_wheel.hpp"
#include "trunkline/io/udp_socket.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// One engine thread with the streams it owns: waits for packets and ticks, and runs orders between them.
/// With a driven clock there is no thread: the control thread has it take its turns.
class Shard {
  public:
    Shard(std::size_t number, const Clock& clock, Notifier& notifier);
    Shard(const Shard&) = delete;
    Shard& operator=(const Shard&) = delete;
    ~Shard();

    /// Control thread: have a command run, in the order of submission. With `wake` false it runs with the
    /// next packet, tick or idle turn (a quarter of a second at most): soon enough where a clock is running
    /// anyway, or where only a packet can show the difference. Waking a sleeping thread costs more than the
    /// command.
    void submit(Command* command, bool wake = true);

    /// Control thread: have what was submitted without waking run at once.
    void wake();

    /// Control thread: wake up for what comes on a descriptor. Returns 0 or the error number. For a stream
    /// `add` must follow; what a stream has besides its own socket is let go with `forget` before it closes.
    /// `events` are those of epoll, edge-triggered.
    int watch(int descriptor, Readable& reader, std::uint32_t events = EPOLLIN);

    /// Engine thread: have this one read in the present turn or the next, though nothing new has come.
    void read_on(Readable& reader);

    /// Engine thread: read nothing more for this one.
    void forget(Readable& reader);

    /// Engine thread: the same, of a descriptor that others may keep open.
    void unwatch(int descriptor, Readable& reader);

    /// Control thread, with a driven clock: do what is due. Returns when more will be; that is the present
    /// while there was anything to do, for what it led to may be due as well.
    std::int64_t advance();

    /// Control thread: end the thread; all streams are shut first.
    void stop();

    /// Commands: take over a stream, or let it go. `remove` gives it back to the control thread.
    void add(Stream* stream);
    void remove(Stream* stream, std::int64_t now_ns);

    EventQueue& event_queue() { return event_queue_; }
    TimerWheel& wheel() { return wheel_; }

  private:
    static constexpr std::size_t max_events = 256;
    /// Reads of one socket in a row before the others get their turn.
    static constexpr int max_reads = 4;

    void run();
    std::int64_t turn(int patience_ms);
    void pace(std::int64_t now_ns);
    std::int64_t next_due_ns();
    int patience_ms(std::int64_t now_ns);
    void receive(Readable& reader, std::int64_t now_ns);
    void receive_unfinished(std::int64_t now_ns);
    void run_commands(std::int64_t now_ns);
    void check_streams(std::int64_t now_ns);
    void shut_all();

    const Clock& clock_;
    EventQueue event_queue_;
    TimerWheel wheel_;
    util::NodeStack commands_;
    std::atomic<bool> wake_pending_ = false;
    std::vector<Stream*> streams_;
    std::vector<Readable*> unfinished_;  ///< Sockets that had more than `max_reads` batches.
    std::array<epoll_event, max_events> ready_;
    std::size_t ready_count_ = 0;
    std::int64_t next_check_ns_ = 0;
    std::int64_t window_end_ns_ = 0;   ///< Of the present measurement of how much there is to read.
    std::size_t ready_in_window_ = 0;  ///< Sockets that were ready in it.
    bool paced_ = false;
    std::int64_t low_latency_until_ns_ = 0;  ///< Something was read that waits are heard of.
    bool stopping_ = false;
    int epoll_ = -1;
    int wake_ = -1;
    io::ReceiveBatch received_;
    io::SendBatch relayed_;
    std::thread thread_;
};

}  // namespace trunkline::engine
