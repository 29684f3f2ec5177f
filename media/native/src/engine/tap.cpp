#include "trunkline/engine/tap.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "trunkline/dsp/g711.hpp"
#include "trunkline/engine/agent_socket.hpp"
#include "trunkline/text/base64.hpp"

namespace trunkline::engine {

Tap::Tap(std::uint64_t id, std::uint64_t sent_id, std::uint64_t stream, graph::AudioFormat format,
         StreamFigures& figures, EventQueue& event_queue)
    : id_(id),
      sent_id_(sent_id),
      stream_(stream),
      format_(format),
      figures_(figures),
      event_queue_(event_queue),
      playout_(format, *this),
      sent_(sent_id == 0 ? nullptr : std::make_unique<Sent>(format.rate_hz)) {}

void Tap::put(std::span<const std::int16_t> samples, std::int64_t now_ns) {
    const std::size_t frame_samples = rate_hz() / 1000 * frame_ms;
    while (!samples.empty()) {
        const std::size_t count = std::min(samples.size(), frame_samples - filled_);
        std::copy_n(samples.begin(), count, frame_.begin() + static_cast<std::ptrdiff_t>(filled_));
        samples = samples.subspan(count);
        filled_ += count;
        if (filled_ < frame_samples) break;
        filled_ = 0;
        hand_out(id_, std::span(frame_).first(frame_samples), now_ns);
        if (sent_ == nullptr) continue;
        std::array<std::int16_t, max_frame_samples> room;
        const auto sent = std::span(room).first(frame_samples);
        sent_->buffer.take(sent);
        hand_out(sent_id_, sent, now_ns);
    }
    if (socket_ != nullptr) socket_->flush();
}

void Tap::put_sent(std::span<const std::int16_t> samples, std::uint32_t rate_hz) {
    sent_->buffer.put(sent_->bridge.convert(samples, rate_hz, this->rate_hz()));
}

bool Tap::pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t now_ns) {
    if (this->rate_hz() == rate_hz) return playout_.pull(out, now_ns);
    std::array<std::int16_t, dsp::RateBridge::max_samples> room;
    const auto pulled = std::span(room).first(out.size() * this->rate_hz() / rate_hz);
    if (!playout_.pull(pulled, now_ns)) return false;
    const auto converted = bridge_.convert(pulled, this->rate_hz(), rate_hz);
    std::copy(converted.begin(), converted.end(), out.begin());
    return true;
}

void Tap::join(AgentSocket* socket) {
    AgentSocket* before = std::exchange(socket_, socket);
    if (before != nullptr && before != socket) before->forget_tap();
}

bool Tap::write(std::span<const std::uint8_t> bytes, bool base64, std::int64_t now_ns) {
    const std::size_t greatest = base64 ? bytes.size() / 4 * 3 : bytes.size();
    auto item = take_item(static_cast<std::uint32_t>(greatest));
    std::optional<std::size_t> size = greatest;
    if (base64) {
        size =
            text::from_base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, item->bytes.get());
    } else {
        std::memcpy(item->bytes.get(), bytes.data(), greatest);
    }
    if (!size || *size % format_.sample_bytes() != 0) {
        spent(item.release());
        return false;
    }
    item->size_bytes = static_cast<std::uint32_t>(*size);
    queue(std::move(item), now_ns);
    return true;
}

/// An item with so much room.
std::unique_ptr<graph::PlayoutItem> Tap::take_item(std::uint32_t size_bytes) {
    if (spare_ != nullptr && size_bytes <= spare_bytes) {
        --spare_count_;
        util::Node* node = std::exchange(spare_, spare_->next_node);
        return std::unique_ptr<graph::PlayoutItem>(static_cast<graph::PlayoutItem*>(node));
    }
    auto item = std::make_unique<graph::PlayoutItem>();
    item->capacity_bytes = std::max(size_bytes, spare_bytes);
    item->bytes = std::make_unique_for_overwrite<std::uint8_t[]>(item->capacity_bytes);
    return item;
}

/// Queue as much of an item as there is room for.
void Tap::queue(std::unique_ptr<graph::PlayoutItem> item, std::int64_t now_ns) {
    const std::uint64_t capacity_bytes = std::uint64_t{capacity_ms} * format_.bytes_per_ms();
    const std::uint64_t queued_bytes = std::min(playout_.queued_bytes(), capacity_bytes);
    const auto kept =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(item->size_bytes, capacity_bytes - queued_bytes));
    if (kept < item->size_bytes) {
        refuse(item->size_bytes - kept);
    } else if (overflowing_ && queued_bytes < std::uint64_t{overflow_over_ms} * format_.bytes_per_ms()) {
        overflowing_ = false;
    }
    item->size_bytes = kept;
    written_bytes_.add(kept);
    if (kept == 0) {
        spent(item.release());
    } else {
        playout_.append(item.release(), now_ns);
    }
}

void Tap::refuse(std::uint32_t size_bytes) {
    refused_bytes_.add(size_bytes);
    if (std::exchange(overflowing_, true)) return;
    const std::uint32_t refused_ms = std::max(size_bytes / format_.bytes_per_ms(), 1U);
    event_queue_.emit({stream_, EventKind::playout_overflow, 0, refused_ms, 0});
}

void Tap::spent(util::Node* node) {
    auto* item = static_cast<graph::PlayoutItem*>(node);
    if (socket_ == nullptr || item->capacity_bytes != spare_bytes || spare_count_ == max_spare) {
        event_queue_.discard(node);
        return;
    }
    item->next_node = std::exchange(spare_, item);
    ++spare_count_;
}

void Tap::hand_out(std::uint64_t id, std::span<const std::int16_t> frame, std::int64_t now_ns) {
    const std::size_t size_bytes = frame.size() * format_.sample_bytes();
    if (socket_ != nullptr) {
        std::array<std::uint8_t, 2 * max_frame_samples> room;
        encode(frame, room.data());
        const auto track = id == id_ ? websocket::Track::inbound : websocket::Track::outbound;
        socket_->audio(track, std::span(room).first(size_bytes));
        return;
    }
    std::uint8_t* room = event_queue_.reserve_frame(size_bytes);
    if (room == nullptr) return;
    encode(frame, room);
    event_queue_.commit_frame(id, size_bytes, now_ns);
}

/// Convert a frame to the agent's encoding.
void Tap::encode(std::span<const std::int16_t> frame, std::uint8_t* out) const {
    switch (format_.encoding) {
        case graph::Encoding::l16:
            std::memcpy(out, frame.data(), frame.size_bytes());
            break;
        case graph::Encoding::mulaw:
            dsp::encode(dsp::Law::mu, frame, out);
            break;
        case graph::Encoding::alaw:
            dsp::encode(dsp::Law::a, frame, out);
            break;
    }
}

void Tap::mark_reached(std::uint32_t mark, bool cleared) {
    event_queue_.emit({stream_, EventKind::mark_reached, cleared ? 1U : 0U, mark, 0});
}

void Tap::playout_drained() {
    event_queue_.emit({stream_, EventKind::playout_drained, 0, 0, 0});
}

void Tap::playout_level(bool full, std::uint64_t level_ms) {
    event_queue_.emit({stream_, EventKind::playout_level, full ? 1U : 0U, level_ms, 0});
}

}  // namespace trunkline::engine
