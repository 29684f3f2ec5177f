#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "trunkline/engine/agent_socket_handle.hpp"
#include "trunkline/engine/browser_socket_handle.hpp"
#include "trunkline/engine/clock.hpp"
#include "trunkline/engine/conference_handle.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/port_pool.hpp"
#include "trunkline/engine/recording_writer.hpp"
#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/stream_handle.hpp"
#include "trunkline/engine/tap_handle.hpp"

namespace trunkline::engine {

/// Options of an engine.
struct EngineOptions {
    std::string listen = "127.0.0.1";  ///< IP literal its sockets are bound to.
    std::uint16_t port_min = 20000;
    std::uint16_t port_max = 29999;
    std::size_t threads = 1;
    std::int64_t quarantine_ns = 4'000'000'000;
    bool driven = false;      ///< No threads and no clock of its own: see `Engine::advance`.
    bool continuous = false;  ///< Streams that may send always do: see `MediaSettings::continuous`.
};

/// Figures of a whole engine.
struct EngineFigures {
    std::size_t streams = 0;
    std::size_t ports_in_use = 0;
    std::size_t ports_total = 0;
    std::uint64_t packets_in = 0;
    std::uint64_t packets_out = 0;
    std::uint64_t events_dropped = 0;
    std::uint64_t frames_dropped = 0;
    std::uint64_t underruns = 0;
};

/// Received packets that an engine's streams dropped since it was created, closed streams among them.
struct EngineDrops {
    std::uint64_t foreign = 0, invalid = 0, unwanted = 0, unauthentic = 0, duplicates = 0, late = 0;

    /// Add those of a stream, or of the browsers' socket.
    void add(const StreamSnapshot& stream);
    void add(const BrowserSocket::Figures& socket);
};

/// The media engine as the control thread sees it. All methods must be called from one thread at a time.
class Engine : public std::enable_shared_from_this<Engine> {
  public:
    /// Start the threads. Throws `std::invalid_argument` for options that cannot work and `std::system_error`
    /// when the system refuses.
    static std::shared_ptr<Engine> create(const EngineOptions& options);
    ~Engine();

    /// Open a stream on the shard of `near`, or on the one with fewest. Null when no port is left; throws
    /// `std::system_error` for any other refusal.
    std::shared_ptr<StreamHandle> open_stream(const StreamHandle* near);

    /// Open a conference at 8000 or 16000 Hz on the shard with fewest streams; its members may be of any.
    std::shared_ptr<ConferenceHandle> open_conference(std::uint32_t rate_hz);

    /// Take over the connected socket of a WebSocket to an agent, with what was read behind the handshake, on
    /// the shard of `near`, or on the one with fewest streams. `tls` is null for a connection without it.
    std::shared_ptr<AgentSocketHandle> open_agent_socket(const StreamHandle* near, int descriptor,
                                                         std::unique_ptr<tls::Client> tls,
                                                         std::span<const std::uint8_t> read,
                                                         const AgentSocketSettings& settings);

    /// Take over the bound socket of all browsers, and one end of a pair of datagram sockets, at whose other
    /// end come what browsers say by STUN and DTLS; see `BrowserSocket`. Throws `std::system_error` when the
    /// system refuses.
    std::shared_ptr<BrowserSocketHandle> open_browser_socket(int descriptor, int upward);

    /// The open stream that receives on a port; null if there is none.
    std::shared_ptr<StreamHandle> stream_at(std::uint16_t udp_port) const;

    /// Of a driven engine: move its clock and do what is due by then. Returns when more will be; that is the
    /// present while there was anything to do, and it must be asked again, as must engines that it sent to.
    std::int64_t advance(std::int64_t now_ns);

    /// Becomes readable when `next_event` or `front_frame` has something.
    int descriptor() const { return notifier_.descriptor(); }

    /// Call before reading events and frames after a wake-up.
    void acknowledge();

    /// Take the next event of any thread; false when there is none.
    bool next_event(Event& event);

    /// The next frame of any tap, valid until `release_frame`; nothing when there is none.
    std::optional<util::ByteRing::Record> front_frame();
    void release_frame();

    /// Take the messages of agents that have come, in order; the caller destroys them.
    util::Node* take_messages();

    /// Create a file and what feeds it; null with an error number when that fails. Whoever gets the recorder
    /// puts in audio and ticks it on an engine thread; the end of the recording is an event with this id.
    std::unique_ptr<Recorder> make_recorder(std::uint64_t recording_id, const std::string& path,
                                            const RecordingOptions& options, int& error);

    EngineFigures figures() const;
    EngineDrops drops() const;

    /// An id that was not used before, for whatever needs one.
    std::uint64_t next_id() { return ++last_id_; }

    /// Close all streams and conferences; no more can be opened.
    void shut();

    /// The same, then end all threads; recordings are completed, which may take the disk some time. After
    /// `shut`, handles may be let go by another thread meanwhile.
    void close();

  private:
    friend class AgentSocketHandle;
    friend class BrowserSocketHandle;
    friend class ConferenceHandle;
    friend class StreamHandle;

    explicit Engine(const EngineOptions& options);

    struct ShardSlot {
        std::unique_ptr<Shard> shard;
        std::size_t streams = 0;
        bool closing = false;  ///< Streams may wait for its next turn to be shut.
    };

    ShardSlot& slot_of(const Shard& shard);
    ShardSlot& emptiest();
    int open_socket(io::UdpSocket& socket, std::uint16_t& udp_port);
    void submit_closing(const Shard& shard, Command* command, bool at_once);
    void hasten_closings();
    void closed(StreamHandle& handle);
    void closed(ConferenceHandle& handle);
    void closed(AgentSocketHandle& handle);
    void closed(BrowserSocketHandle& handle);
    void destroy_spent();
    /// True if few ports are left, so that those of closed streams are needed at once.
    bool short_of_ports() const { return 4 * ports_.in_use() >= 3 * ports_.capacity(); }

    EngineOptions options_;
    Clock clock_;
    Notifier notifier_;
    PortPool ports_;
    std::unique_ptr<RecordingWriter> writer_;
    std::vector<ShardSlot> shards_;
    std::unordered_set<StreamHandle*> handles_;  ///< Of open streams.
    std::unordered_set<ConferenceHandle*> conferences_;
    std::unordered_set<AgentSocketHandle*> agent_sockets_;
    std::unordered_set<BrowserSocketHandle*> browser_sockets_;
    std::size_t frame_shard_ = 0;  ///< Whose frames are being read.
    std::uint64_t last_id_ = 0;
    std::uint64_t closed_packets_in_ = 0;  ///< Of streams that are gone.
    std::uint64_t closed_packets_out_ = 0;
    std::uint64_t closed_underruns_ = 0;
    EngineDrops closed_drops_;
    bool closed_ = false;
};

}  // namespace trunkline::engine
