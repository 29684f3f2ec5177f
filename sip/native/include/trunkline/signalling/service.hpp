#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "trunkline/signalling/datagrams.hpp"
#include "trunkline/signalling/engine.hpp"
#include "trunkline/signalling/source_guard.hpp"
#include "trunkline/wire/message.hpp"

namespace trunkline::signalling {

/// Something that was done while the loop stood still, or that waits for it.
struct Kept {
    enum class What : std::uint8_t {
        /// A datagram that the loop has to handle from its beginning.
        datagram,
        /// A datagram of an unknown source that the guard has let pass.
        admitted,
        /// A message that the engine has matched: `kind` and `id` say to what.
        message,
        /// What came with time: `kind` is that of an `Output`.
        output,
        /// Bytes that were sent, for a trace.
        sent,
    };

    What what = What::datagram;
    Kind kind = Kind::unread;
    Id id = 0;
    std::string bytes;
    /// Source of a datagram, or where bytes were sent.
    Flow flow;
    std::int64_t at_ns = 0;
    /// Of a source that nobody has been asked about.
    bool unjudged = false;
};

/// An engine that a loop drives, and that a thread drives in its place while the loop stands still.
///
/// The loop reads its sockets itself. The thread looks every `look_ns` whether it has: when datagrams or
/// timers have waited that long and the loop took none, it does what needs no user. It answers repetitions,
/// opens the transactions of known sources and sends their 100 at once, repeats. What the guard drops is
/// dropped here too. All else is kept for the loop, up to a limit, beyond which datagrams stay in their
/// sockets.
class Service {
  public:
    static constexpr std::int64_t look_ns = 50'000'000;
    /// Time for which a source counts as known after the loop has said so.
    static constexpr std::int64_t known_ns = 60'000'000'000;
    static constexpr std::size_t most_kept = 8192;
    static constexpr std::size_t most_kept_bytes = 8 * 1024 * 1024;
    static constexpr std::size_t most_known = 16384;
    /// Datagrams kept of sources that nobody has been asked about; further ones are dropped, so that forged
    /// sources leave room for others.
    static constexpr std::size_t most_unjudged = 1024;
    /// Batches of datagrams that one look reads from a socket: the loop may be waiting for the engine.
    static constexpr int batches_per_look = 32;

    Service(const Timers& timers, std::size_t most_servers, const wire::Limits& limits);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    /// The engine for one use by the loop.
    class Locked {
      public:
        explicit Locked(Service& service) : lock_(service.mutex_), engine_(service.engine_) {}
        Engine* operator->() { return &engine_; }
        Engine& operator*() { return engine_; }

      private:
        std::lock_guard<std::mutex> lock_;
        Engine& engine_;
    };
    Locked locked() { return Locked(*this); }

    /// Note that the loop serves: it reads its sockets and its clock. With a source, that it knows this one.
    /// True if something is kept, which came before what the loop is about to read.
    bool note_served(std::int64_t now_ns, const Endpoint* known);

    /// Have a guard judge what comes while the loop stands still, and know who answers our requests.
    void set_guard(std::shared_ptr<SourceGuard> guard);
    /// Tell the guard that a peer has answered a request of ours.
    void trust_sender(std::string_view data, const Endpoint& remote, std::int64_t now_ns);

    /// Keep what a trace wants to know.
    void set_tracing(bool tracing);

    /// False while another process still has calls on these sockets: the thread then leaves all to the loop.
    void set_opening(bool opening);

    // Sockets. They do not block, and belong to the caller.

    /// Serve a socket of datagrams as well, from now on; starts the thread. Returns its number.
    std::int32_t add_socket(int descriptor);
    /// Read a socket or leave it alone; it is sent on in either case.
    void set_reading(std::int32_t socket, bool reading);
    void remove_socket(std::int32_t socket);

    /// Becomes readable when something is kept.
    int wake_descriptor() const { return wake_; }
    bool has_kept() const;
    /// Take what was kept first, up to `most`, in its order; the descriptor stays readable while some is
    /// left.
    std::vector<Kept> take(std::size_t most);

    /// End the thread.
    void stop();

  private:
    struct Socket {
        int descriptor = -1;
        bool reading = true;
    };

    void run();
    void look(std::int64_t now_ns);
    bool has_datagrams() const;
    bool is_full() const { return kept_.size() >= most_kept || kept_bytes_ >= most_kept_bytes; }
    void read(std::int32_t number, const Socket& socket, std::int64_t now_ns);
    void handle(std::string_view data, const Flow& source, std::int64_t now_ns);
    bool match(std::string_view data, const Flow& source, std::int64_t now_ns);
    bool is_known(const Endpoint& endpoint, std::int64_t now_ns) const;
    bool send(const Flow& flow, std::string_view bytes, Id id, std::int64_t now_ns);
    void keep(Kept kept);
    void advance(std::int64_t now_ns);

    mutable std::mutex mutex_;
    Engine engine_;
    const wire::Limits limits_;
    wire::Message message_;
    /// Made with the first socket.
    std::unique_ptr<Datagrams> datagrams_;
    std::unordered_map<std::int32_t, Socket> sockets_;
    std::int32_t last_socket_ = -1;
    std::unordered_map<std::string, std::int64_t> known_;
    std::deque<Kept> kept_;
    std::size_t kept_bytes_ = 0, unjudged_ = 0;
    std::shared_ptr<SourceGuard> guard_;
    std::uint64_t served_ = 0, seen_ = 0;
    bool behind_ = false;
    bool tracing_ = false;
    bool opening_ = true;
    int wake_ = -1;

    std::condition_variable stopping_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace trunkline::signalling
