#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "trunkline/engine/outlet.hpp"
#include "trunkline/engine/port_pool.hpp"
#include "trunkline/engine/recording_writer.hpp"
#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/stream.hpp"
#include "trunkline/graph/playback_queue.hpp"
#include "trunkline/graph/playout_queue.hpp"

namespace trunkline::engine {

class Engine;

/// How an engine is set up.
struct EngineOptions {
    std::string listen = "127.0.0.1";  ///< IP literal its sockets are bound to.
    std::uint16_t port_min = 20000;
    std::uint16_t port_max = 29999;
    std::size_t threads = 1;
    std::int64_t quarantine_ns = 4'000'000'000;
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
};

/// A copy of a stream's figures at one moment.
struct StreamSnapshot {
    std::uint64_t packets_in = 0, bytes_in = 0, packets_out = 0, bytes_out = 0;
    std::uint64_t lost = 0, duplicates = 0, late = 0;
    std::uint64_t dropped_foreign = 0, dropped_invalid = 0, dropped_unwanted = 0;
    std::uint64_t send_errors = 0, rtcp_in = 0;
    std::uint32_t jitter_us = 0, ssrc_in = 0, ssrc_out = 0;
};

/// The control thread's hold on an agent tap.
class TapHandle {
  public:
    /// Most audio that waits to be played.
    static constexpr std::uint32_t capacity_ms = 120'000;
    /// Most marks that wait.
    static constexpr std::uint32_t max_marks = 1000;

    TapHandle(std::shared_ptr<class StreamHandle> stream, std::uint64_t id, Tap* tap,
              graph::AudioFormat format)
        : stream_(std::move(stream)), id_(id), tap_(tap), format_(format) {}
    TapHandle(const TapHandle&) = delete;
    TapHandle& operator=(const TapHandle&) = delete;
    ~TapHandle() { close(); }

    std::uint64_t id() const { return id_; }

    /// Append audio to the playout queue. Returns how many bytes there was no room for.
    std::size_t write(const std::uint8_t* bytes, std::size_t size);

    /// Append a mark.
    void mark(std::uint32_t mark);

    /// Drop what is queued.
    void clear();

    /// Milliseconds of audio that wait to be played.
    std::uint32_t queued_ms() const;

    /// Detach from the stream; harmless when done before.
    void close();

  private:
    friend class StreamHandle;

    void append(std::unique_ptr<graph::PlayoutItem> item, bool wake);
    std::uint64_t queued_bytes() const;
    bool open() const;

    std::shared_ptr<StreamHandle> stream_;
    std::uint64_t id_;
    Tap* tap_;  ///< Null once closed.
    graph::AudioFormat format_;
    std::uint64_t written_bytes_ = 0;
    std::uint64_t cleared_bytes_ = 0;  ///< What was written when the queue was last cleared.
    bool has_odd_byte_ = false;
    std::uint8_t odd_byte_ = 0;  ///< First half of a sample whose other half is still to come.
};

/// The control thread's hold on a stream. All methods are harmless after `close`.
class StreamHandle : public std::enable_shared_from_this<StreamHandle> {
  public:
    StreamHandle(std::shared_ptr<Engine> engine, Shard& shard, Stream* stream, std::uint16_t udp_port);
    StreamHandle(const StreamHandle&) = delete;
    StreamHandle& operator=(const StreamHandle&) = delete;
    ~StreamHandle() { close(); }

    std::uint64_t id() const { return id_; }
    std::uint16_t udp_port() const { return udp_port_; }
    bool open() const { return stream_ != nullptr; }

    void connect(const MediaSettings& settings);
    /// Returns false when the other stream lives on another shard.
    bool link(StreamHandle& other);
    void unlink();
    void play(std::unique_ptr<graph::Clip> clip);
    void stop_playback();
    void send_dtmf(std::unique_ptr<DtmfText> text);
    void set_media_timeout(std::int64_t timeout_ns);
    /// Record to a file; its end is an event with `recording_id` for the stream. Returns 0 or the error
    /// number.
    int start_recording(std::uint64_t recording_id, const std::string& path, const RecordingOptions& options);
    void pause_recording(bool paused);
    void stop_recording();
    std::shared_ptr<TapHandle> open_tap(graph::AudioFormat format);
    StreamSnapshot snapshot() const;
    void close();

  private:
    friend class TapHandle;
    friend class Engine;

    std::shared_ptr<Engine> engine_;
    bool has_output_ = false;  ///< Something was ordered that makes the stream run a clock of its own.
    Shard* shard_;
    Stream* stream_;  ///< Null once closed.
    std::uint64_t id_;
    std::uint16_t udp_port_;
    std::weak_ptr<TapHandle> tap_;
    StreamSnapshot last_;
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

    /// Becomes readable when `next_event` or `front_frame` has something.
    int descriptor() const { return notifier_.descriptor(); }

    /// Call before reading events and frames after a wake-up.
    void acknowledge();

    /// Take the next event of any thread; false when there is none.
    bool next_event(Event& event);

    /// The next frame of any tap, valid until `release_frame`; nothing when there is none.
    std::optional<util::ByteRing::Record> front_frame();
    void release_frame();

    /// Create a file and what feeds it; null with an error number when that fails. Whoever gets the recorder
    /// puts in audio and ticks it on an engine thread; the end of the recording is an event with this id.
    std::unique_ptr<Recorder> make_recorder(std::uint64_t recording_id, const std::string& path,
                                            const RecordingOptions& options, int& error);

    EngineFigures figures() const;

    /// An id that was not used before, for whatever needs one.
    std::uint64_t next_id() { return ++last_id_; }

    /// End all threads; recordings are completed. Streams are closed.
    void close();

  private:
    friend class StreamHandle;

    explicit Engine(const EngineOptions& options);

    struct ShardSlot {
        std::unique_ptr<Shard> shard;
        std::size_t streams = 0;
    };

    ShardSlot& slot_of(const Shard& shard);
    ShardSlot& emptiest();
    int open_socket(io::UdpSocket& socket, std::uint16_t& udp_port);
    void closed(StreamHandle& handle);
    void destroy_spent();

    EngineOptions options_;
    Notifier notifier_;
    PortPool ports_;
    std::unique_ptr<RecordingWriter> writer_;
    std::vector<ShardSlot> shards_;
    std::unordered_set<StreamHandle*> handles_;  ///< Of open streams.
    std::size_t frame_shard_ = 0;                ///< Whose frames are being read.
    std::uint64_t last_id_ = 0;
    std::uint64_t closed_packets_in_ = 0;  ///< Of streams that are gone.
    std::uint64_t closed_packets_out_ = 0;
    bool closed_ = false;
};

}  // namespace trunkline::engine
