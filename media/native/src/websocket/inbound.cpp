#include "trunkline/websocket/inbound.hpp"

#include <cstring>
#include <string_view>

namespace trunkline::websocket {

namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool is_known(std::uint8_t opcode) {
    return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

}  // namespace

void Inbound::receive(std::span<const std::uint8_t> bytes, std::int64_t now_ns) {
    if (finished_) return;
    if (!pending_.empty()) {
        pending_.insert(pending_.end(), bytes.begin(), bytes.end());
        work_on(now_ns);
        return;
    }
    const std::size_t taken = work(bytes, now_ns);
    if (!finished_) pending_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(taken), bytes.end());
}

void Inbound::handled(std::int64_t spent_ns, std::int64_t now_ns) {
    if (unhandled_ == 0) return;
    if (--unhandled_ == 0) unhandled_bytes_ = 0;
    budget_.spent(spent_ns, now_ns);
    work_on(now_ns);
}

void Inbound::resume(std::int64_t now_ns) {
    if (budget_.resume(now_ns)) work_on(now_ns);
}

void Inbound::learn(std::string& before, std::string& after) {
    before_.swap(before);
    after_.swap(after);
    learned_ = Learned::surroundings;
}

void Inbound::learn(std::unique_ptr<AudioEvent>& event) {
    event_.swap(event);
    learned_ = Learned::event;
}

void Inbound::close(std::int64_t now_ns) {
    closing_ = true;
    budget_.stop();
    work_on(now_ns);
}

/// Handle what was read before.
void Inbound::work_on(std::int64_t now_ns) {
    held_ = false;
    if (finished_) return;
    taken_ += work(std::span(pending_).subspan(taken_), now_ns);
    if (finished_ || taken_ == pending_.size()) {
        pending_.clear();
        taken_ = 0;
    } else if (2 * taken_ > pending_.size()) {
        pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(taken_));
        taken_ = 0;
    }
}

/// Handle frames until one is incomplete or must wait. Returns how many bytes were taken.
std::size_t Inbound::work(std::span<const std::uint8_t> bytes, std::int64_t now_ns) {
    std::size_t taken = 0;
    while (!finished_ && !budget_.paused()) {
        Front next = front(bytes.subspan(taken));
        if (next.state == Front::State::incomplete) break;
        if (next.state == Front::State::invalid) {
            finish(MessageKind::violation, next.code, bytes_of(next.reason));
            break;
        }
        held_ = !may_take(next);
        if (held_) break;
        taken += next.size_bytes;
        take(next);
        budget_.read(next.payload.size(), now_ns);
        if (budget_.paused() && cost_of(bytes.subspan(taken)) > ReadBudget::abuse_bytes) {
            finish(MessageKind::abuse, policy_violation, bytes_of("too many frames"));
        }
    }
    return taken;
}

Inbound::Front Inbound::invalid(std::uint16_t code, const char* reason) {
    Front front;
    front.state = Front::State::invalid;
    front.code = code;
    front.reason = reason;
    return front;
}

Inbound::Front Inbound::front(std::span<const std::uint8_t> bytes) const {
    Front front;
    const auto header = read_header(bytes);
    if (!header) {
        // The first byte may tell already, though the length is not there.
        if (!bytes.empty() && !is_known(bytes[0] & 15)) return invalid(protocol_error, "unknown frame");
        return front;
    }
    if (const char* reason = fault(*header)) return invalid(protocol_error, reason);
    if (too_long(*header)) return invalid(message_too_big, "message too long");
    const auto payload_bytes = static_cast<std::size_t>(header->payload_bytes);
    front.size_bytes = header->header_bytes + payload_bytes;
    if (bytes.size() < front.size_bytes) return front;
    front.state = Front::State::complete;
    front.final = header->final;
    front.opcode = static_cast<Opcode>(header->opcode);
    front.payload = bytes.subspan(header->header_bytes, payload_bytes);
    return front;
}

/// Breach of RFC 6455 in a header, or null.
const char* Inbound::fault(const FrameHeader& header) const {
    // No extension was offered (RFC 6455 5.2).
    if (header.reserved != 0) return "reserved bit set";
    if (!is_known(header.opcode)) return "unknown frame";
    if (header.masked) return "masked frame";
    if (header.control()) {
        const bool fits = header.final && header.payload_bytes <= max_control_bytes;
        return fits ? nullptr : "invalid control frame";
    }
    const bool follows = header.opcode == static_cast<std::uint8_t>(Opcode::continuation);
    const bool open = fragments_kind_ != Opcode::continuation;
    return follows == open ? nullptr : "fragments out of order";
}

bool Inbound::too_long(const FrameHeader& header) const {
    return !header.control() && header.payload_bytes > max_message_bytes_ - fragments_.size();
}

/// True if nothing keeps a frame waiting; then its audio is known.
bool Inbound::may_take(Front& front) {
    const bool data = static_cast<std::uint8_t>(front.opcode) < 8;
    const bool behind = data && !closing_ && unhandled_ > 0;
    // What must wait in any case is not searched for audio, nor again with each message that is handled: of a
    // long one that would be more work than it was counted for.
    if (behind && (held_long_ || unhandled_ >= max_unhandled ||
                   unhandled_bytes_ + front.payload.size() > max_unhandled_bytes)) {
        return false;
    }
    front.audio = audio_in(front);
    held_long_ = behind && front.audio;
    return !held_long_;
}

/// The audio of a frame that can be played without being understood.
std::optional<Inbound::Audio> Inbound::audio_in(const Front& front) const {
    const bool text = front.opcode == Opcode::text;
    const bool data = text || front.opcode == Opcode::binary;
    if (closing_ || !plays_ || !data || !front.final || front.payload.empty()) return std::nullopt;
    if (learned_ == Learned::surroundings && !text && before_.empty()) return Audio{front.payload, false};
    if (learned_ == Learned::surroundings && text && !before_.empty() && matches(front.payload)) {
        const std::size_t size = front.payload.size() - before_.size() - after_.size();
        return Audio{front.payload.subspan(before_.size(), size), true};
    }
    if (learned_ != Learned::event || (!text && !event_->binary())) return std::nullopt;
    const auto found = event_->find(front.payload);
    return found ? std::optional(Audio{*found, true}) : std::nullopt;
}

bool Inbound::matches(std::span<const std::uint8_t> text) const {
    return text.size() >= before_.size() + after_.size() &&
           std::memcmp(text.data(), before_.data(), before_.size()) == 0 &&
           std::memcmp(text.data() + text.size() - after_.size(), after_.data(), after_.size()) == 0;
}

void Inbound::take(const Front& front) {
    switch (front.opcode) {
        case Opcode::ping:
            if (!closing_) listener_.ping(front.payload);
            return;
        case Opcode::pong:
            if (!closing_ && expects_pong_) listener_.message(MessageKind::pong, 0, {});
            expects_pong_ = false;
            return;
        case Opcode::close:
            take_close(front.payload);
            return;
        default:
            take_data(front);
    }
}

void Inbound::take_data(const Front& front) {
    const bool whole = front.final && front.opcode != Opcode::continuation;
    if (whole) {
        if (closing_) return;
        const bool text = front.opcode == Opcode::text;
        if (front.audio && listener_.audio(front.audio->bytes, front.audio->base64)) return;
        pass_on(text ? MessageKind::text : MessageKind::binary, front.payload);
        return;
    }
    if (front.opcode != Opcode::continuation) fragments_kind_ = front.opcode;
    fragments_.insert(fragments_.end(), front.payload.begin(), front.payload.end());
    if (!front.final) return;
    const bool text = fragments_kind_ == Opcode::text;
    if (!closing_) pass_on(text ? MessageKind::text : MessageKind::binary, fragments_);
    fragments_kind_ = Opcode::continuation;
    fragments_.clear();
}

void Inbound::take_close(std::span<const std::uint8_t> payload) {
    if (payload.empty()) {
        finish(MessageKind::close, 0, {});
        return;
    }
    const auto code = static_cast<std::uint16_t>(payload.size() < 2 ? 0 : payload[0] << 8 | payload[1]);
    if (!is_close_code(code)) {
        finish(MessageKind::violation, protocol_error, bytes_of("invalid close code"));
    } else if (!is_utf8(payload.subspan(2))) {
        finish(MessageKind::violation, invalid_data, bytes_of("invalid close reason"));
    } else {
        finish(MessageKind::close, code, payload.subspan(2));
    }
}

void Inbound::pass_on(MessageKind kind, std::span<const std::uint8_t> bytes) {
    ++unhandled_;
    unhandled_bytes_ += bytes.size();
    listener_.message(kind, 0, bytes);
}

/// Pass on the last message: nothing that comes after it counts.
void Inbound::finish(MessageKind kind, std::uint16_t code, std::span<const std::uint8_t> bytes) {
    finished_ = true;
    held_ = false;
    budget_.stop();
    listener_.message(kind, code, bytes);
}

/// Cost to the budget of the complete frames.
std::int64_t Inbound::cost_of(std::span<const std::uint8_t> bytes) const {
    std::int64_t cost = 0;
    for (auto header = read_header(bytes); header; header = read_header(bytes)) {
        if (header->payload_bytes > bytes.size() - header->header_bytes) break;
        const auto payload_bytes = static_cast<std::size_t>(header->payload_bytes);
        cost += static_cast<std::int64_t>(payload_bytes) + ReadBudget::frame_bytes;
        bytes = bytes.subspan(header->header_bytes + payload_bytes);
    }
    return cost;
}

}  // namespace trunkline::websocket
