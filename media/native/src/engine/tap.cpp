#include "trunkline/engine/tap.hpp"

#include <algorithm>
#include <cstring>

#include "trunkline/dsp/g711.hpp"

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
        if (filled_ < frame_samples) return;
        filled_ = 0;
        hand_out(id_, std::span(frame_).first(frame_samples), now_ns);
        if (sent_ == nullptr) continue;
        std::array<std::int16_t, max_frame_samples> room;
        const auto sent = std::span(room).first(frame_samples);
        sent_->buffer.take(sent);
        hand_out(sent_id_, sent, now_ns);
    }
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

void Tap::hand_out(std::uint64_t id, std::span<const std::int16_t> frame, std::int64_t now_ns) {
    const std::size_t size_bytes = frame.size() * format_.sample_bytes();
    std::uint8_t* room = event_queue_.reserve_frame(size_bytes);
    if (room == nullptr) return;
    switch (format_.encoding) {
        case graph::Encoding::l16:
            std::memcpy(room, frame.data(), size_bytes);
            break;
        case graph::Encoding::mulaw:
            dsp::encode(dsp::Law::mu, frame, room);
            break;
        case graph::Encoding::alaw:
            dsp::encode(dsp::Law::a, frame, room);
            break;
    }
    event_queue_.commit_frame(id, size_bytes, now_ns);
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
