// The control thread's hold on sockets to agents: every order becomes a command for the shard that owns one.

#include "trunkline/engine/agent_socket_handle.hpp"

#include <stdexcept>
#include <vector>

#include "trunkline/engine/engine.hpp"
#include "trunkline/engine/tap_handle.hpp"

namespace trunkline::engine {

namespace {

std::unique_ptr<websocket::ControlFrame> frame_of(std::string text) {
    auto frame = std::make_unique<websocket::ControlFrame>();
    frame->text = websocket::FrameTemplate(std::move(text));
    return frame;
}

}  // namespace

bool AgentSocketHandle::attach(TapHandle& tap) {
    if (!open() || !tap.open() || tap.stream_->shard_ != shard_) return false;
    if (tap.format_.bytes_per_ms() * Tap::frame_ms != socket_->settings().audio.frame_bytes) {
        throw std::invalid_argument("tap and socket have different formats");
    }
    order([tap = tap.tap_](AgentSocket& socket, std::int64_t now_ns) { socket.attach(tap, now_ns); });
    return true;
}

void AgentSocketHandle::set_templates(std::string inbound, std::string outbound, std::uint64_t origin_ms) {
    order([inbound = websocket::FrameTemplate(std::move(inbound)),
           outbound = websocket::FrameTemplate(std::move(outbound)),
           origin_ms](AgentSocket& socket,
                      std::int64_t) mutable { socket.set_templates(inbound, outbound, origin_ms); },
          false);
}

void AgentSocketHandle::learn(std::string before, std::string after) {
    order([before = std::move(before), after = std::move(after)](
              AgentSocket& socket, std::int64_t) mutable { socket.learn(before, after); },
          false);
}

void AgentSocketHandle::learn(LearnedEvent learned) {
    order(
        [learned = std::move(learned)](AgentSocket& socket, std::int64_t) mutable { socket.learn(learned); },
        false);
}

void AgentSocketHandle::convert(std::shared_ptr<graph::AudioConverter> converter) {
    order([converter = std::move(converter)](AgentSocket& socket,
                                             std::int64_t) mutable { socket.convert(converter); },
          false);
}

void AgentSocketHandle::unlearn() {
    order([](AgentSocket& socket, std::int64_t) { socket.unlearn(); }, false);
}

void AgentSocketHandle::listen(websocket::Listening listening) {
    order([listening](AgentSocket& socket, std::int64_t) { socket.listen(listening); }, false);
}

void AgentSocketHandle::audio(websocket::Track track, std::span<const std::uint8_t> frame) {
    if (!open()) return;
    if (frame.size() != socket_->settings().audio.frame_bytes) {
        throw std::invalid_argument("a frame of audio has another length");
    }
    order([track, frame = std::vector(frame.begin(), frame.end())](AgentSocket& socket, std::int64_t) {
        socket.audio(track, frame);
        socket.flush();
    });
}

void AgentSocketHandle::send(std::string text) {
    order([frame = frame_of(std::move(text))](AgentSocket& socket, std::int64_t) mutable {
        socket.send(frame.release());
    });
}

void AgentSocketHandle::ping() {
    order([](AgentSocket& socket, std::int64_t) { socket.ping(); });
}

void AgentSocketHandle::finish(std::string last) {
    auto frame = last.empty() ? nullptr : frame_of(std::move(last));
    order([frame = std::move(frame)](AgentSocket& socket, std::int64_t) mutable {
        socket.finish(frame.release());
    });
}

void AgentSocketHandle::close(std::uint16_t code, std::string reason) {
    order([code, reason = std::move(reason)](AgentSocket& socket, std::int64_t now_ns) {
        socket.close(code, reason, now_ns);
    });
}

void AgentSocketHandle::disconnect(bool at_once) {
    order([at_once](AgentSocket& socket, std::int64_t) { socket.disconnect(at_once); });
}

void AgentSocketHandle::handled(std::int64_t spent_ns) {
    order([spent_ns](AgentSocket& socket, std::int64_t now_ns) { socket.handled(spent_ns, now_ns); });
}

void AgentSocketHandle::release() {
    if (!open()) return;
    frames_sent_ = frames_sent();
    frames_dropped_ = frames_dropped();
    auto action = [shard = shard_, socket = std::exchange(socket_, nullptr)](std::int64_t) {
        socket->shut();
        shard->event_queue().discard(socket);
    };
    shard_->submit(make_command(std::move(action)));
    engine_->closed(*this);
}

}  // namespace trunkline::engine
