#include "trunkline/engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "trunkline/engine/random.hpp"

namespace trunkline::engine {

namespace {

/// A sender with random numbers to begin with (RFC 3550 5.1). The sequence begins in the lower half, because
/// a receiver of SRTP that misses the first packets could not tell that it rolled over (RFC 3711 3.3.1).
rtp::Sender make_sender() {
    const auto first_sequence = static_cast<std::uint16_t>(random_value<std::uint16_t>() & 0x7fff);
    return {random_value<std::uint32_t>(), first_sequence, random_value<std::uint32_t>(), 8000};
}

}  // namespace

void EngineDrops::add(const StreamSnapshot& stream) {
    foreign += stream.dropped_foreign;
    invalid += stream.dropped_invalid;
    unwanted += stream.dropped_unwanted;
    unauthentic += stream.dropped_unauthentic;
    duplicates += stream.duplicates;
    late += stream.late;
}

void EngineDrops::add(const BrowserSocket::Figures& socket) {
    foreign += socket.foreign.get();
    invalid += socket.invalid.get();
    unwanted += socket.unread.get();
}

std::shared_ptr<Engine> Engine::create(const EngineOptions& options) {
    // Before there are calls: the library tests itself for long enough to be heard.
    srtp_ready();
    if (!io::Address::parse(options.listen, 0)) {
        throw std::invalid_argument("the listen address must be an IP literal");
    }
    if (options.threads < 1 || options.threads > 256) {
        throw std::invalid_argument("the number of threads must be 1 to 256");
    }
    if (options.port_min < 1024 || options.port_max <= options.port_min) {
        throw std::invalid_argument("the port range must lie above 1023 and hold two ports");
    }
    return std::shared_ptr<Engine>(new Engine(options));
}

Engine::Engine(const EngineOptions& options)
    : options_(options),
      clock_(options.driven),
      ports_(options.port_min, options.port_max, options.quarantine_ns) {
    writer_ = std::make_unique<RecordingWriter>(clock_, notifier_);
    for (std::size_t n = 0; n < options.threads; ++n) {
        shards_.push_back({std::make_unique<Shard>(n, clock_, notifier_), 0});
    }
}

Engine::~Engine() {
    close();
}

std::shared_ptr<StreamHandle> Engine::open_stream(const StreamHandle* near) {
    if (closed_) throw std::logic_error("the engine is closed");
    destroy_spent();
    if (short_of_ports()) hasten_closings();
    io::UdpSocket socket;
    std::uint16_t udp_port = 0;
    if (const int error = open_socket(socket, udp_port); error != 0) {
        if (error == EADDRNOTAVAIL && udp_port == 0) return nullptr;
        throw std::system_error(error, std::generic_category(), "cannot open an RTP socket");
    }
    // From here on the port comes back by itself, whatever is refused.
    PortLease lease(ports_, clock_, udp_port);
    ShardSlot& slot = near != nullptr && near->open() ? slot_of(*near->shard_) : emptiest();
    Shard& shard = *slot.shard;
    auto made = std::make_unique<Stream>(next_id(), std::move(socket), make_sender(), shard.event_queue(),
                                         shard.wheel(), clock_.now_ns());
    if (const int error = shard.watch(made->descriptor(), *made); error != 0) {
        throw std::system_error(error, std::generic_category(), "cannot watch an RTP socket");
    }
    Stream* stream = made.release();
    shard.submit(make_command([&shard, stream](std::int64_t) { shard.add(stream); }), false);
    auto handle = std::make_shared<StreamHandle>(shared_from_this(), shard, stream, std::move(lease));
    handles_.insert(handle.get());
    ++slot.streams;
    return handle;
}

std::shared_ptr<ConferenceHandle> Engine::open_conference(std::uint32_t rate_hz) {
    if (closed_) throw std::logic_error("the engine is closed");
    if (rate_hz != 8000 && rate_hz != 16000) throw std::invalid_argument("the rate must be 8000 or 16000");
    Shard& shard = *emptiest().shard;
    const std::uint64_t id = next_id();
    auto made = std::make_unique<Conference>(id, rate_hz, shard.event_queue(), shard.wheel());
    auto handle = std::make_shared<ConferenceHandle>(shared_from_this(), shard, made.get(), id, rate_hz);
    // From here on it is the shard's, which lets go of it when it is shut.
    (void)made.release();
    conferences_.insert(handle.get());
    return handle;
}

std::shared_ptr<AgentSocketHandle> Engine::open_agent_socket(const StreamHandle* near, int descriptor,
                                                             std::unique_ptr<tls::Client> tls,
                                                             std::span<const std::uint8_t> read,
                                                             const AgentSocketSettings& settings) {
    if (closed_) throw std::logic_error("the engine is closed");
    Shard& shard = near != nullptr && near->open() ? *near->shard_ : *emptiest().shard;
    const std::uint64_t id = next_id();
    auto made = std::make_unique<AgentSocket>(id, descriptor, std::move(tls), settings, shard);
    auto handle = std::make_shared<AgentSocketHandle>(shared_from_this(), shard, made.get(), id);
    // From here on it is the shard's, which lets go of it when the handle is released.
    (void)made.release();
    agent_sockets_.insert(handle.get());
    handle->order([read = std::vector(read.begin(), read.end())](AgentSocket& socket, std::int64_t now_ns) {
        socket.open(read, now_ns);
    });
    return handle;
}

std::shared_ptr<BrowserSocketHandle> Engine::open_browser_socket(int descriptor, int upward) {
    auto udp = std::make_shared<io::UdpSocket>();
    udp->adopt(descriptor);
    Shard& shard = *shards_.front().shard;
    auto made = std::make_unique<BrowserSocket>(udp, upward, shard);
    if (closed_) throw std::logic_error("the engine is closed");
    if (const int error = shard.watch(descriptor, *made); error != 0) {
        throw std::system_error(error, std::generic_category(), "cannot watch the socket of browsers");
    }
    auto handle = std::make_shared<BrowserSocketHandle>(shared_from_this(), shard, made.release(), udp);
    browser_sockets_.insert(handle.get());
    return handle;
}

std::shared_ptr<StreamHandle> Engine::stream_at(std::uint16_t udp_port) const {
    const auto found = std::find_if(handles_.begin(), handles_.end(), [&](const StreamHandle* handle) {
        return handle->udp_port() == udp_port;
    });
    return found == handles_.end() ? nullptr : (*found)->shared_from_this();
}

/// Bind the next free port. Returns 0 or an error number; EADDRNOTAVAIL with port 0 when none is left.
int Engine::open_socket(io::UdpSocket& socket, std::uint16_t& udp_port) {
    // Each port once: what another process holds of our range rests, and is tried again with the others.
    for (std::size_t tried = 0; tried < ports_.capacity(); ++tried) {
        const std::int64_t now_ns = clock_.now_ns();
        const auto port = ports_.take(now_ns);
        if (!port) break;
        const int error = socket.open(*io::Address::parse(options_.listen, *port));
        if (error == 0) {
            udp_port = *port;
            return 0;
        }
        ports_.give_back(*port, now_ns);
        if (error != EADDRINUSE) {
            udp_port = *port;
            return error;
        }
    }
    udp_port = 0;
    return EADDRNOTAVAIL;
}

std::int64_t Engine::advance(std::int64_t now_ns) {
    if (!options_.driven) throw std::logic_error("the engine has threads of its own");
    clock_.advance(now_ns);
    std::int64_t due_ns = writer_->advance();
    for (ShardSlot& slot : shards_)
        due_ns = std::min(due_ns, slot.shard->advance());
    return due_ns;
}

void Engine::acknowledge() {
    notifier_.acknowledge();
    destroy_spent();
}

bool Engine::next_event(Event& event) {
    for (ShardSlot& slot : shards_) {
        if (slot.shard->event_queue().events().pop(event)) return true;
    }
    return writer_->event_queue().events().pop(event);
}

std::optional<util::ByteRing::Record> Engine::front_frame() {
    for (frame_shard_ = 0; frame_shard_ < shards_.size(); ++frame_shard_) {
        if (auto record = shards_[frame_shard_].shard->event_queue().frames().front()) return record;
    }
    return std::nullopt;
}

void Engine::release_frame() {
    shards_[frame_shard_].shard->event_queue().frames().release();
}

util::Node* Engine::take_messages() {
    util::Node* first = nullptr;
    for (ShardSlot& slot : shards_) {
        util::NodeStack& messages = slot.shard->event_queue().messages();
        if (messages.empty()) continue;
        // Of different threads, no order matters.
        util::Node* taken = messages.take_oldest_first();
        util::Node** end = &first;
        while (*end != nullptr)
            end = &(*end)->next_node;
        *end = taken;
    }
    return first;
}

std::unique_ptr<Recorder> Engine::make_recorder(std::uint64_t recording_id, const std::string& path,
                                                const RecordingOptions& options, int& error) {
    const int descriptor = io::create_file(path);
    if (descriptor < 0) {
        error = -descriptor;
        return nullptr;
    }
    auto recording = std::make_unique<Recording>(recording_id, descriptor, options);
    auto recorder = std::make_unique<Recorder>(recording.get());
    writer_->add(std::move(recording));
    return recorder;
}

EngineFigures Engine::figures() const {
    EngineFigures figures;
    figures.streams = handles_.size();
    figures.ports_in_use = handles_.size();
    figures.ports_total = ports_.capacity();
    figures.packets_in = closed_packets_in_;
    figures.packets_out = closed_packets_out_;
    figures.underruns = closed_underruns_;
    for (const StreamHandle* handle : handles_) {
        figures.packets_in += handle->stream_->figures().packets_in.get();
        figures.packets_out += handle->stream_->figures().packets_out.get();
        figures.underruns += handle->stream_->figures().underruns.get();
    }
    for (const ShardSlot& slot : shards_) {
        figures.events_dropped += slot.shard->event_queue().events_dropped();
        figures.frames_dropped += slot.shard->event_queue().frames_dropped();
    }
    figures.events_dropped += writer_->event_queue().events_dropped();
    return figures;
}

EngineDrops Engine::drops() const {
    EngineDrops drops = closed_drops_;
    for (const StreamHandle* handle : handles_) {
        drops.add(handle->snapshot());
    }
    for (const BrowserSocketHandle* handle : browser_sockets_) {
        drops.add(handle->figures());
    }
    return drops;
}

void Engine::shut() {
    closed_ = true;
    while (!agent_sockets_.empty()) {
        (*agent_sockets_.begin())->release();
    }
    while (!browser_sockets_.empty()) {
        (*browser_sockets_.begin())->release();
    }
    while (!conferences_.empty()) {
        (*conferences_.begin())->close();
    }
    while (!handles_.empty()) {
        (*handles_.begin())->close();
    }
}

void Engine::close() {
    shut();
    for (ShardSlot& slot : shards_) {
        slot.shard->stop();
    }
    // Every recording was ended by its shard; now the files are completed.
    writer_->close();
    destroy_spent();
}

Engine::ShardSlot& Engine::slot_of(const Shard& shard) {
    return *std::find_if(shards_.begin(), shards_.end(),
                         [&](const ShardSlot& slot) { return slot.shard.get() == &shard; });
}

Engine::ShardSlot& Engine::emptiest() {
    return *std::min_element(
        shards_.begin(), shards_.end(),
        [](const ShardSlot& one, const ShardSlot& other) { return one.streams < other.streams; });
}

/// Close a stream on its shard: at once, or with its next turn when nothing waits for that.
void Engine::submit_closing(const Shard& shard, Command* command, bool at_once) {
    ShardSlot& slot = slot_of(shard);
    const bool wake = at_once || short_of_ports();
    slot.shard->submit(command, wake);
    slot.closing = !wake;
}

/// Wake the shards that have closed streams to shut with their next turn: their ports are wanted.
void Engine::hasten_closings() {
    for (ShardSlot& slot : shards_) {
        if (std::exchange(slot.closing, false)) slot.shard->wake();
    }
}

void Engine::closed(StreamHandle& handle) {
    --slot_of(*handle.shard_).streams;
    handles_.erase(&handle);
    closed_packets_in_ += handle.last_.packets_in;
    closed_packets_out_ += handle.last_.packets_out;
    closed_underruns_ += handle.last_.underruns;
    closed_drops_.add(handle.last_);
    destroy_spent();
}

void Engine::closed(ConferenceHandle& handle) {
    conferences_.erase(&handle);
    destroy_spent();
}

void Engine::closed(AgentSocketHandle& handle) {
    agent_sockets_.erase(&handle);
    destroy_spent();
}

void Engine::closed(BrowserSocketHandle& handle) {
    browser_sockets_.erase(&handle);
    closed_drops_.add(handle.figures());
    destroy_spent();
}

/// Destroy what the engine threads are done with.
void Engine::destroy_spent() {
    for (ShardSlot& slot : shards_) {
        util::NodeStack::destroy(slot.shard->event_queue().spent().take_newest_first());
    }
}

}  // namespace trunkline::engine
