// The sending half of a stream: what is sent, and how it is numbered.

#include <array>
#include <utility>

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

constexpr std::size_t max_frame_samples = max_packet_ms * samples_per_ms;

}  // namespace

void Stream::tick_send(std::int64_t now_ns) {
    std::array<std::int16_t, max_frame_samples> frame;
    const auto samples = std::span(frame).first(settings_.ptime_ms * samples_per_ms);
    if (const auto packet = dtmf_sender_.step(static_cast<std::uint32_t>(samples.size()))) {
        send_event(*packet, now_ns);
    } else if (next_audio(samples, now_ns)) {
        send_audio(samples, now_ns);
    }
    if (dtmf_first_ != nullptr && !dtmf_sender_.busy()) finish_dtmf_text();
    run_clocks(now_ns);
}

/// Make the next frame of our own audio; false when there is none.
bool Stream::next_audio(std::span<std::int16_t> samples, std::int64_t now_ns) {
    if (tap_ != nullptr && tap_->playout().pull(samples, now_ns)) return true;
    if (playback_.playing()) {
        playback_.pull(samples, clock_hz);
        return true;
    }
    if (source_ != nullptr && source_->pull(samples, clock_hz, now_ns)) return true;
    if ((tap_ == nullptr && playback_.empty()) || peer_ != nullptr) return false;
    // Silence keeps the path through NATs open and the far end's jitter buffer running.
    std::fill(samples.begin(), samples.end(), std::int16_t{0});
    return true;
}

void Stream::send_audio(std::span<const std::int16_t> samples, std::int64_t now_ns) {
    const auto size = static_cast<std::uint32_t>(samples.size());
    if (may_send()) {
        PacketRoom datagram;
        const rtp::Header header = sender_.local(settings_.payload_type, now_ns);
        rtp::write_header(datagram.data(), header);
        dsp::encode(settings_.law(), samples, datagram.data() + rtp::header_bytes);
        wire_.send(datagram.data(), rtp::header_bytes + samples.size(), latch_.remote());
        if (recorder_ != nullptr) recorder_->put_sent(header.timestamp, samples);
    }
    sender_.advance(size, now_ns);
}

void Stream::send_event(const rtp::DtmfPacket& packet, std::int64_t now_ns) {
    if (may_send() && settings_.dtmf_send_type) {
        PacketRoom datagram;
        rtp::Header header = sender_.local(*settings_.dtmf_send_type, now_ns);
        header.marker = packet.first;
        header.timestamp -= packet.age_samples;
        rtp::write_header(datagram.data(), header);
        std::copy(packet.payload.begin(), packet.payload.end(), datagram.begin() + rtp::header_bytes);
        wire_.send(datagram.data(), rtp::header_bytes + packet.payload.size(), latch_.remote());
    }
    sender_.advance(settings_.ptime_ms * samples_per_ms, now_ns);
}

void Stream::next_dtmf_text() {
    if (dtmf_first_ == nullptr) return;
    dtmf_sender_.start(dtmf_first_->digits, dtmf_first_->duration_ms, dtmf_first_->gap_ms);
}

void Stream::finish_dtmf_text() {
    DtmfText* text = dtmf_first_;
    dtmf_first_ = static_cast<DtmfText*>(text->next_node);
    if (dtmf_first_ == nullptr) dtmf_last_ = nullptr;
    outlet_.emit({id_, EventKind::dtmf_sent, text->token, 0, 0});
    outlet_.discard(text);
    dtmf_sender_ = {};
    next_dtmf_text();
}

}  // namespace trunkline::engine
