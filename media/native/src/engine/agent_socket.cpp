#include "trunkline/engine/agent_socket.hpp"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/tap.hpp"

namespace trunkline::engine {

namespace {

/// Most that one read takes, which bounds what is handled at a time.
constexpr std::size_t read_bytes = 16 * 1024;
constexpr std::uint32_t pause_tick_ms = 5;

/// Keys of one thread, fetched many at a time.
class MaskKeys {
  public:
    std::uint32_t next() {
        if (left_ == 0) refill();
        return keys_[--left_];
    }

  private:
    void refill() {
        // Reads of so few bytes are not interrupted, and fail only where the system has no randomness at all.
        if (getrandom(keys_.data(), sizeof keys_, 0) != static_cast<ssize_t>(sizeof keys_)) std::abort();
        left_ = keys_.size();
    }

    std::array<std::uint32_t, 64> keys_{};
    std::size_t left_ = 0;
};

}  // namespace

AgentSocket::AgentSocket(std::uint64_t id, int descriptor, const AgentSocketSettings& settings, Shard& shard)
    : id_(id),
      descriptor_(descriptor),
      settings_(settings),
      shard_(shard),
      outbound_(settings.audio, figures_, *this),
      inbound_(settings.max_message_bytes, *this) {}

AgentSocket::~AgentSocket() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void AgentSocket::open(std::span<const std::uint8_t> bytes, std::int64_t now_ns) {
    take(bytes, now_ns);
    if (shard_.watch(descriptor_, *this, EPOLLIN | EPOLLOUT | EPOLLRDHUP) != 0) end();
}

void AgentSocket::attach(Tap* tap, std::int64_t now_ns) {
    if (tap_ != nullptr) tap_->join(nullptr);
    tap_ = tap;
    if (tap_ != nullptr) tap_->join(this);
    inbound_.play(tap_ != nullptr);
    proceed(now_ns);
}

void AgentSocket::forget_tap() {
    tap_ = nullptr;
    inbound_.play(false);
}

void AgentSocket::set_templates(websocket::FrameTemplate& inbound, websocket::FrameTemplate& outbound,
                                std::uint64_t origin_ms) {
    outbound_.set_template(websocket::Track::inbound, inbound);
    outbound_.set_template(websocket::Track::outbound, outbound);
    outbound_.set_origin(origin_ms);
}

void AgentSocket::send(websocket::ControlFrame* frame) {
    const bool fits = outbound_.control(frame);
    flush();
    if (!fits && !std::exchange(stalled_, true)) message(websocket::MessageKind::stalled, 0, {});
}

void AgentSocket::ping() {
    inbound_.expect_pong();
    outbound_.ping();
    flush();
}

void AgentSocket::finish(websocket::ControlFrame* last) {
    outbound_.finish(last);
    flush();
}

void AgentSocket::close(std::uint16_t code, std::string_view reason, std::int64_t now_ns) {
    outbound_.close(code, reason);
    flush();
    inbound_.close(now_ns);
    proceed(now_ns);
}

void AgentSocket::disconnect(bool at_once) {
    disconnecting_ = true;
    if (at_once) {
        end();
    } else {
        flush();
    }
}

void AgentSocket::handled(std::int64_t spent_ns, std::int64_t now_ns) {
    now_ns_ = now_ns;
    inbound_.handled(spent_ns, now_ns);
    proceed(now_ns);
}

/// Write what the socket takes.
void AgentSocket::flush() {
    while (descriptor_ >= 0 && !outbound_.output().empty()) {
        const auto bytes = outbound_.output();
        const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            outbound_.sent(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            outbound_.blocked();
            return;
        } else if (errno != EINTR) {
            // What the agent sent before may still be there to be read, and tells why.
            outbound_.drop();
        }
    }
    // The agent closes its side in answer. To close ours before all that it sent was read would reset the
    // connection, and it might lose our last frames.
    if (descriptor_ >= 0 && std::exchange(disconnecting_, false)) ::shutdown(descriptor_, SHUT_WR);
}

bool AgentSocket::receive(io::ReceiveBatch&, io::SendBatch&, std::int64_t now_ns) {
    flush();
    if (descriptor_ < 0 || !inbound_.wants_more()) return false;
    std::array<std::uint8_t, read_bytes> room;
    const ssize_t size = ::recv(descriptor_, room.data(), room.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) return true;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (size <= 0) {
        end();
        return false;
    }
    take(std::span(room).first(static_cast<std::size_t>(size)), now_ns);
    // A read that leaves room has emptied the socket; only the end of the connection may be behind it.
    return inbound_.wants_more() && (hung_up || static_cast<std::size_t>(size) == room.size());
}

void AgentSocket::take(std::span<const std::uint8_t> bytes, std::int64_t now_ns) {
    now_ns_ = now_ns;
    inbound_.receive(bytes, now_ns);
    flush();
    if (inbound_.paused() && !pause_.armed()) shard_.wheel().arm(pause_, pause_tick_ms, now_ns);
}

void AgentSocket::tick(std::int64_t now_ns) {
    now_ns_ = now_ns;
    inbound_.resume(now_ns);
    if (inbound_.paused()) return;
    shard_.wheel().disarm(pause_);
    proceed(now_ns);
}

/// Read on after something that reading waited for.
void AgentSocket::proceed(std::int64_t now_ns) {
    flush();
    if (inbound_.paused() && !pause_.armed()) shard_.wheel().arm(pause_, pause_tick_ms, now_ns);
    if (descriptor_ >= 0 && inbound_.wants_more()) shard_.read_on(*this);
}

void AgentSocket::end() {
    if (descriptor_ < 0) return;
    ::close(std::exchange(descriptor_, -1));
    outbound_.drop();
    message(websocket::MessageKind::lost, 0, {});
}

void AgentSocket::shut() {
    end();
    if (tap_ != nullptr) std::exchange(tap_, nullptr)->join(nullptr);
    shard_.wheel().disarm(pause_);
    shard_.forget(*this);
}

bool AgentSocket::audio(std::span<const std::uint8_t> bytes, bool base64) {
    return tap_ != nullptr && tap_->write(bytes, base64, now_ns_);
}

void AgentSocket::message(websocket::MessageKind kind, std::uint16_t code,
                          std::span<const std::uint8_t> bytes) {
    auto* message = new AgentMessage;
    message->socket = id_;
    message->kind = kind;
    message->code = code;
    message->bytes.assign(bytes.begin(), bytes.end());
    shard_.event_queue().post(message);
}

std::uint32_t AgentSocket::mask_key() {
    static thread_local MaskKeys keys;
    return keys.next();
}

void AgentSocket::spent(util::Node* node) {
    shard_.event_queue().discard(node);
}

}  // namespace trunkline::engine
