#include "trunkline/websocket/outbound.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trunkline::websocket {

namespace {

/// Room for what waits below the high-water mark, and a frame.
constexpr std::size_t reserved_bytes = Outbound::high_water_bytes + 2048;

}  // namespace

Outbound::Outbound(const OutboundAudio& format, OutboundFigures& figures, OutboundListener& listener)
    : format_(format),
      figures_(figures),
      listener_(listener),
      frames_(format.max_frames * format.frame_bytes),
      waiting_(format.max_frames) {
    output_.reserve(reserved_bytes);
}

void Outbound::audio(Track track, std::span<const std::uint8_t> frame) {
    if (finished_) return;
    TrackState& state = tracks_[index_of(track)];
    state.time_ms += format_.frame_ms;
    if (track == Track::inbound) figures_.clock_ms.set(state.time_ms);
    if (listening_ == Listening::nothing) return;
    if (full_) {
        wait(track, state.time_ms, frame);
    } else {
        write_audio(track, state.time_ms, frame);
    }
}

bool Outbound::control(ControlFrame* frame) {
    if (finished_) {
        listener_.spent(frame);
        return true;
    }
    if (!full_) {
        write_control(frame);
        return true;
    }
    frame->next_node = nullptr;
    if (held_first_ == nullptr) {
        held_first_ = frame;
    } else {
        held_last_->next_node = frame;
    }
    held_last_ = frame;
    held_bytes_ += frame->text.size({});
    return held_bytes_ <= max_held_bytes;
}

void Outbound::ping() {
    // In the socket it waits behind other data.
    if (!finished_) write(Opcode::ping, {});
}

void Outbound::pong(std::span<const std::uint8_t> payload) {
    if (finished_) return;
    if (!full_) {
        write(Opcode::pong, payload);
        return;
    }
    std::copy(payload.begin(), payload.end(), pong_.begin());
    pong_bytes_ = payload.size();
    pong_waits_ = true;
}

void Outbound::finish(ControlFrame* last) {
    if (finished_) {
        if (last != nullptr) listener_.spent(last);
        return;
    }
    finished_ = true;
    figures_.frames_dropped.add(frame_count_);
    frame_count_ = 0;
    pong_waits_ = false;
    while (held_first_ != nullptr) {
        write_control(std::exchange(held_first_, static_cast<ControlFrame*>(held_first_->next_node)));
    }
    if (last != nullptr) write_control(last);
}

void Outbound::close(std::uint16_t code, std::string_view reason) {
    std::array<std::uint8_t, max_control_bytes> payload;
    const std::size_t size = std::min(reason.size(), payload.size() - 2);
    payload[0] = static_cast<std::uint8_t>(code >> 8);
    payload[1] = static_cast<std::uint8_t>(code);
    std::memcpy(payload.data() + 2, reason.data(), size);
    write(Opcode::close, std::span(payload).first(size + 2));
}

void Outbound::sent(std::size_t size_bytes) {
    sent_bytes_ += size_bytes;
    if (sent_bytes_ == output_.size()) {
        output_.clear();
        sent_bytes_ = 0;
    }
    if (full_ && output().size() <= low_water_bytes) write_waiting();
}

void Outbound::blocked() {
    if (output().size() > high_water_bytes) full_ = true;
}

void Outbound::drop() {
    finish(nullptr);
    output_.clear();
    sent_bytes_ = 0;
}

std::span<std::uint8_t> Outbound::slot(std::size_t number) {
    return std::span(frames_).subspan(number % format_.max_frames * format_.frame_bytes, format_.frame_bytes);
}

/// Keep a frame until the socket takes more; it is not numbered yet.
void Outbound::wait(Track track, std::uint64_t time_ms, std::span<const std::uint8_t> frame) {
    if (frame_count_ == format_.max_frames) {
        figures_.frames_dropped.add(1);
        if (frame_count_ == 0) return;
        first_frame_ = (first_frame_ + 1) % format_.max_frames;
        --frame_count_;
    }
    const std::size_t number = first_frame_ + frame_count_++;
    waiting_[number % format_.max_frames] = {track, time_ms};
    std::ranges::copy(frame, slot(number).begin());
}

/// Write what waits, as far as the socket may take it.
void Outbound::write_waiting() {
    full_ = false;
    while (write_next()) {
        if (output().size() <= high_water_bytes) continue;
        full_ = held_first_ != nullptr || frame_count_ != 0;
        return;
    }
}

/// Write the next frame that waits; false if none does. Other frames come first: they waited as long, and
/// audio grows old.
bool Outbound::write_next() {
    if (std::exchange(pong_waits_, false)) {
        write(Opcode::pong, std::span(pong_).first(pong_bytes_));
        return true;
    }
    if (held_first_ != nullptr) {
        held_bytes_ -= held_first_->text.size({});
        write_control(std::exchange(held_first_, static_cast<ControlFrame*>(held_first_->next_node)));
        return true;
    }
    if (frame_count_ == 0) return false;
    const Waiting next = waiting_[first_frame_];
    write_audio(next.track, next.time_ms, slot(first_frame_));
    first_frame_ = (first_frame_ + 1) % format_.max_frames;
    --frame_count_;
    return true;
}

void Outbound::write_audio(Track track, std::uint64_t time_ms, std::span<const std::uint8_t> frame) {
    figures_.frames_sent.add(1);
    std::array<std::uint8_t, 640> quiet;
    if (listening_ == Listening::silence) {
        const auto silent = std::span(quiet).first(std::min(frame.size(), quiet.size()));
        std::ranges::fill(silent, format_.silence);
        frame = silent;
    }
    frame = listener_.coded(frame);
    if (frame.empty()) return;
    if (format_.binary) {
        write(Opcode::binary, frame);
        return;
    }
    TrackState& state = tracks_[index_of(track)];
    last_ms_ = time_ms;
    write_template(state.text, {++numbers_, ++state.chunks, origin_ms_ + time_ms, frame});
}

void Outbound::write_control(ControlFrame* frame) {
    if (frame->text.numbered()) ++numbers_;
    write_template(frame->text, {numbers_, 0, origin_ms_ + last_ms_, {}});
    listener_.spent(frame);
}

/// Room at the end of the output.
std::span<std::uint8_t> Outbound::room(std::size_t size_bytes) {
    if (sent_bytes_ != 0 && output_.size() + size_bytes > output_.capacity()) {
        output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent_bytes_));
        sent_bytes_ = 0;
    }
    const std::size_t at = output_.size();
    output_.resize(at + size_bytes);
    return std::span(output_).subspan(at);
}

void Outbound::write_template(const FrameTemplate& text, const FrameValues& values) {
    const std::size_t size = text.size(values);
    const std::uint32_t key = listener_.mask_key();
    const auto out = room(header_size(size) + size);
    const auto payload = out.subspan(write_header(Opcode::text, size, key, out.data()));
    text.write(values, payload.data());
    mask(payload, key);
}

void Outbound::write(Opcode opcode, std::span<const std::uint8_t> payload) {
    const std::uint32_t key = listener_.mask_key();
    const auto out = room(header_size(payload.size()) + payload.size());
    const auto masked = out.subspan(write_header(opcode, payload.size(), key, out.data()));
    std::ranges::copy(payload, masked.begin());
    mask(masked, key);
}

}  // namespace trunkline::websocket
