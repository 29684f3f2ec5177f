#include "trunkline/signalling/service.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "trunkline/signalling/derived.hpp"
#include "trunkline/signalling/endpoint.hpp"

namespace trunkline::signalling {

namespace {

constexpr std::uint16_t sip_port = 5060;

std::int64_t clock_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

Service::Service(const Timers& timers, std::size_t most_servers, const wire::Limits& limits)
    : engine_(timers, most_servers), limits_(limits), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Service::~Service() {
    stop();
    if (wake_ >= 0) ::close(wake_);
}

bool Service::note_served(std::int64_t now_ns, const Endpoint* known) {
    const std::lock_guard lock(mutex_);
    ++served_;
    if (known != nullptr) {
        if (known_.size() >= most_known) known_.clear();
        known_.insert_or_assign(std::string(address_bytes(*known)), now_ns + known_ns);
    }
    return !kept_.empty();
}

void Service::set_guard(std::shared_ptr<SourceGuard> guard) {
    const std::lock_guard lock(mutex_);
    guard_ = std::move(guard);
}

void Service::trust_sender(std::string_view data, const Endpoint& remote, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (guard_ != nullptr) guard_->trust_sender(data, remote, now_ns);
}

void Service::set_tracing(bool tracing) {
    const std::lock_guard lock(mutex_);
    tracing_ = tracing;
}

void Service::set_opening(bool opening) {
    const std::lock_guard lock(mutex_);
    opening_ = opening;
}

// Sockets.

std::int32_t Service::add_socket(int descriptor) {
    const std::lock_guard lock(mutex_);
    sockets_.emplace(++last_socket_, Socket{descriptor, true});
    if (datagrams_ == nullptr) datagrams_ = std::make_unique<Datagrams>();
    if (!thread_.joinable() && !stopped_) thread_ = std::thread([this] { run(); });
    return last_socket_;
}

void Service::set_reading(std::int32_t socket, bool reading) {
    const std::lock_guard lock(mutex_);
    if (const auto found = sockets_.find(socket); found != sockets_.end()) found->second.reading = reading;
}

void Service::remove_socket(std::int32_t socket) {
    const std::lock_guard lock(mutex_);
    sockets_.erase(socket);
}

bool Service::has_kept() const {
    const std::lock_guard lock(mutex_);
    return !kept_.empty();
}

std::vector<Kept> Service::take(std::size_t most) {
    const std::lock_guard lock(mutex_);
    std::vector<Kept> taken;
    if (kept_.empty()) return taken;
    taken.reserve(std::min(most, kept_.size()));
    for (; taken.size() < most && !kept_.empty(); kept_.pop_front()) {
        kept_bytes_ -= kept_.front().bytes.size();
        unjudged_ -= kept_.front().unjudged ? 1 : 0;
        taken.push_back(std::move(kept_.front()));
    }
    if (!kept_.empty()) return taken;
    std::uint64_t count = 0;
    if (wake_ >= 0) (void)!::read(wake_, &count, sizeof(count));
    return taken;
}

// The thread.

void Service::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    stopping_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Service::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_.wait_for(lock, std::chrono::nanoseconds(look_ns), [this] { return stopped_; }))
        look(clock_ns());
}

void Service::look(std::int64_t now_ns) {
    const auto due_ns = engine_.next_due_ns();
    const bool overdue = due_ns && *due_ns < now_ns - look_ns;
    if (served_ != seen_ || (!overdue && !has_datagrams())) {
        seen_ = served_;
        behind_ = false;
        return;
    }
    // Datagrams may have come a moment ago; if they are there at the next look, the loop has had its time.
    if (!std::exchange(behind_, true) && !overdue) return;
    for (const auto& [number, socket] : sockets_) {
        if (socket.reading) read(number, socket, now_ns);
    }
    advance(now_ns);
    const std::uint64_t one = 1;
    if (!kept_.empty() && wake_ >= 0) (void)!::write(wake_, &one, sizeof(one));
}

bool Service::has_datagrams() const {
    for (const auto& [number, socket] : sockets_) {
        pollfd asked{socket.descriptor, POLLIN, 0};
        if (socket.reading && poll(&asked, 1, 0) == 1 && (asked.revents & POLLIN) != 0) return true;
    }
    return false;
}

void Service::read(std::int32_t number, const Socket& socket, std::int64_t now_ns) {
    Flow source;
    source.socket = number;
    for (int batch = 0; batch < batches_per_look && !is_full(); ++batch) {
        const int count = datagrams_->receive(socket.descriptor, Datagrams::most_at_once);
        const bool is_empty = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (count < 0 && !is_empty) continue;  // An ICMP error of an earlier datagram, which the loop reads.
        if (count <= 0) return;
        for (int place = 0; place < count; ++place) {
            source.remote = datagrams_->source(static_cast<std::size_t>(place));
            handle(datagrams_->data(static_cast<std::size_t>(place)), source, now_ns);
        }
    }
}

void Service::handle(std::string_view data, const Flow& source, std::int64_t now_ns) {
    using Answer = SourceGuard::Answer;
    if (is_keep_alive(data)) return;
    const Endpoint origin = guard_ == nullptr ? source.remote : guard_->origin_of(data, source.remote);
    auto answer = is_known(origin, now_ns) ? Answer::known : Answer::ask;
    if (answer == Answer::ask && guard_ != nullptr) {
        answer = guard_->judge(data, origin, true, now_ns, SourceGuard::Trust::later);
    }
    if (answer == Answer::drop) return;
    if (answer == Answer::known && opening_ && match(data, source, now_ns)) return;
    const bool unjudged = answer == Answer::ask && guard_ != nullptr;
    if (unjudged && unjudged_ >= most_unjudged) {
        guard_->drop(Reason::crowd);
        return;
    }
    unjudged_ += unjudged ? 1 : 0;
    const auto what = answer == Answer::unknown ? Kept::What::admitted : Kept::What::datagram;
    keep({what, Kind::unread, 0, std::string(data), source, now_ns, unjudged});
}

bool Service::match(std::string_view data, const Flow& source, std::int64_t now_ns) {
    if (!wire::read_message(data, limits_, message_) || !message_.is_certain()) return false;
    Verdict found;
    if (message_.head.is_request) {
        const std::uint16_t port = port_of(source.remote);
        Flow flow = source;
        if (!message_.via.rport) flow.remote = with_port(flow.remote, message_.via.port.value_or(sip_port));
        found = engine_.take_request(request_fields(message_), flow, Opening::if_room, now_ns);
        if (found.kind == Kind::request && found.id != 0 && message_.head.method == "INVITE") {
            const auto stamp = wire::stamp_via(message_.via_text, message_.via, host_of(source.remote), port);
            engine_.keep_trying(found.id, make_trying(message_, stamp ? stamp->text : message_.via_text));
            found.send = engine_.try_now(found.id, now_ns);
        }
    } else {
        found = engine_.take_response(response_fields(message_), now_ns);
        if (guard_ != nullptr && is_matched(found.kind)) guard_->trust_sender(data, source.remote, now_ns);
    }
    const bool is_quiet =
        found.kind == Kind::repeated || found.kind == Kind::absorbed || found.kind == Kind::ignored;
    if (!is_quiet || tracing_) {
        keep({Kept::What::message, found.kind, found.id, std::string(data), source, now_ns});
    }
    if (found.send != nullptr && !send(*found.flow, *found.send, found.id, now_ns)) {
        keep({Kept::What::output, Kind::send, found.id, *found.send, *found.flow, now_ns});
    }
    return true;
}

bool Service::is_known(const Endpoint& endpoint, std::int64_t now_ns) const {
    const auto found = known_.find(std::string(address_bytes(endpoint)));
    return found != known_.end() && found->second > now_ns;
}

bool Service::send(const Flow& flow, std::string_view bytes, Id id, std::int64_t now_ns) {
    if (flow.socket == Flow::foreign) return false;
    const auto found = sockets_.find(flow.socket);
    // Of a socket that is closed, or full, nobody is told: a repetition follows, or the transaction ends.
    if (found == sockets_.end()) return true;
    const bool sent = send_datagram(found->second.descriptor, bytes, flow.remote) == 0;
    if (sent && tracing_) keep({Kept::What::sent, Kind::send, id, std::string(bytes), flow, now_ns});
    return true;
}

void Service::keep(Kept kept) {
    kept_bytes_ += kept.bytes.size();
    kept_.push_back(std::move(kept));
}

void Service::advance(std::int64_t now_ns) {
    std::vector<Output> outputs;
    engine_.advance(now_ns, outputs);
    for (Output& output : outputs) {
        if (output.kind == Kind::send && send(output.flow, output.bytes, output.id, now_ns)) continue;
        keep({Kept::What::output, output.kind, output.id, std::move(output.bytes), output.flow, now_ns});
    }
}

}  // namespace trunkline::signalling
