#include "trunkline/engine/agent_socket.hpp"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "trunkline/engine/shard.hpp"
#include "trunkline/engine/tap.hpp"
#include "trunkline/text/base64.hpp"

namespace trunkline::engine {

namespace {

/// Most that one read takes, which bounds what is handled at a time.
constexpr std::size_t read_bytes = 16 * 1024;
constexpr std::uint32_t pause_tick_ms = 5;

/// Longer events are converted elsewhere: others of this thread would miss their time.
constexpr std::size_t max_converted_bytes = 32 * 1024;
/// Bytes that are as much work to read as one is to convert.
constexpr std::size_t conversion_cost = 4;

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

AgentSocket::AgentSocket(std::uint64_t id, int descriptor, std::unique_ptr<tls::Client> tls,
                         const AgentSocketSettings& settings, Shard& shard)
    : id_(id),
      descriptor_(descriptor),
      tls_(std::move(tls)),
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
    end_with_tls();
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
    while (descriptor_ >= 0) {
        const auto bytes = unsent();
        if (bytes.empty()) break;
        const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            this->sent(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            outbound_.blocked();
            return;
        } else if (errno != EINTR) {
            // What the agent sent before may still be there to be read, and tells why.
            drop_output();
        }
    }
    // The agent closes its side in answer. To close ours before all that it sent was read would reset the
    // connection, and it might lose our last frames.
    if (descriptor_ >= 0 && disconnecting_ && may_end()) {
        disconnecting_ = false;
        ::shutdown(descriptor_, SHUT_WR);
    }
}

/// Many ends of TLS take the end of ours for the end of both, and drop what they had to say: over TLS, our
/// end waits for the agent's close frame.
bool AgentSocket::may_end() const {
    return tls_ == nullptr || inbound_.finished();
}

/// What the socket is to take next. TLS gets as much as a record holds, once the record before is gone: so
/// all else waits where it can still be dropped, and the limits are those of a connection without it.
std::span<const std::uint8_t> AgentSocket::unsent() {
    const auto plain = outbound_.output();
    if (tls_ == nullptr) return plain;
    if (!tls_->output().empty()) return tls_->output();
    if (!plain.empty()) {
        sealed_bytes_ = std::min(plain.size(), tls::Client::max_record_bytes);
        if (!tls_->write(plain.first(sealed_bytes_))) drop_output();
    } else if (disconnecting_ && may_end()) {
        tls_->close();
    }
    return tls_->output();
}

void AgentSocket::sent(std::size_t size_bytes) {
    if (tls_ == nullptr) {
        outbound_.sent(size_bytes);
        return;
    }
    tls_->sent(size_bytes);
    if (tls_->output().empty()) outbound_.sent(std::exchange(sealed_bytes_, 0));
}

void AgentSocket::drop_output() {
    outbound_.drop();
    sealed_bytes_ = 0;
    if (tls_ != nullptr) tls_->sent(tls_->output().size());
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
    const auto bytes = std::span(room).first(static_cast<std::size_t>(size));
    if (tls_ == nullptr) {
        take(bytes, now_ns);
    } else {
        decrypt(bytes, now_ns);
    }
    // A read that leaves room has emptied the socket; only the end of the connection may be behind it.
    return inbound_.wants_more() && (hung_up || static_cast<std::size_t>(size) == room.size());
}

void AgentSocket::take(std::span<const std::uint8_t> bytes, std::int64_t now_ns) {
    now_ns_ = now_ns;
    inbound_.receive(bytes, now_ns);
    settle(now_ns);
}

void AgentSocket::decrypt(std::span<const std::uint8_t> bytes, std::int64_t now_ns) {
    now_ns_ = now_ns;
    tls_->receive(bytes);
    std::array<std::uint8_t, tls::Client::max_record_bytes> room;
    while (const std::size_t size = tls_->read(room)) {
        inbound_.receive(std::span(room).first(size), now_ns);
    }
    inbound_.count_records(tls_->take_records(), now_ns);
    settle(now_ns);
    end_with_tls();
}

/// End when TLS has: behind all that was said before, as the end of a connection without it.
void AgentSocket::end_with_tls() {
    if (tls_ != nullptr && tls_->state() != tls::State::open && inbound_.wants_more()) end();
}

/// Write the answers to what was read, and pause if it was too much.
void AgentSocket::settle(std::int64_t now_ns) {
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
    settle(now_ns);
    end_with_tls();
    if (descriptor_ >= 0 && inbound_.wants_more()) shard_.read_on(*this);
}

void AgentSocket::end() {
    if (descriptor_ < 0) return;
    ::close(std::exchange(descriptor_, -1));
    drop_output();
    message(websocket::MessageKind::lost, 0, {});
}

void AgentSocket::shut() {
    end();
    if (tap_ != nullptr) std::exchange(tap_, nullptr)->join(nullptr);
    shard_.wheel().disarm(pause_);
    shard_.forget(*this);
}

void AgentSocket::learn(LearnedEvent& learned) {
    inbound_.learn(learned.event);
    learned_.converter.swap(learned.converter);
    std::swap(learned_.whole, learned.whole);
}

bool AgentSocket::audio(std::span<const std::uint8_t> bytes, bool base64) {
    if (tap_ == nullptr) return false;
    const bool converted = base64 && inbound_.knows_event() && learned_.converter != nullptr;
    if (converted ? !play_converted(bytes) : !tap_->write(bytes, base64, now_ns_)) return false;
    audio_bytes_ += base64 ? text::base64_bytes(bytes) : bytes.size();
    return true;
}

bool AgentSocket::play_converted(std::span<const std::uint8_t> bytes) {
    graph::AudioConverter& converter = *learned_.converter;
    if (bytes.size() > max_converted_bytes) return false;
    std::vector<std::uint8_t> decoded(bytes.size() / 4 * 3);
    const auto size =
        text::from_base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, decoded.data());
    if (!size || *size % converter.sample_bytes() != 0) return false;
    decoded.resize(*size);
    inbound_.count_work(conversion_cost * *size, now_ns_);
    const auto played = learned_.whole ? converter.whole(decoded) : converter.convert(decoded);
    return played.empty() || tap_->write(played, false, now_ns_);
}

std::span<const std::uint8_t> AgentSocket::coded(std::span<const std::uint8_t> frame) {
    if (to_agent_ == nullptr) return frame;
    coded_ = to_agent_->convert(frame);
    return coded_;
}

void AgentSocket::message(websocket::MessageKind kind, std::uint16_t code,
                          std::span<const std::uint8_t> bytes) {
    auto* message = new AgentMessage;
    message->socket = id_;
    message->kind = kind;
    message->code = code;
    message->bytes.assign(bytes.begin(), bytes.end());
    message->audio_bytes = std::exchange(audio_bytes_, 0);
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
