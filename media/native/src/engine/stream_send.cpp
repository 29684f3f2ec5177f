// The sending half of a stream: what is sent, how it is numbered, and relaying for the linked stream.

#include <array>
#include <utility>

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

constexpr std::size_t max_frame_samples = max_packet_ms * samples_per_ms;

}  // namespace

/// Whether audio of our own is being sent, so that the linked stream's must wait.
bool Stream::occupied() const {
    return dtmf_sender_.pressing() || (tap_ != nullptr && tap_->playout().playing()) || !playback_.empty();
}

void Stream::relay_audio(const rtp::PacketView& packet, dsp::Law law, std::span<const std::int16_t> samples,
                         io::SendBatch& relayed, std::int64_t now_ns) {
    if (!may_send() || occupied()) return;
    const auto size = static_cast<std::uint32_t>(packet.payload.size());
    auto header = sender_.relayed(packet.header, size, now_ns);
    if (!header) return;
    header->payload_type = settings_.payload_type;
    dsp::convert(law, settings_.law(), packet.payload);
    if (recorder_ != nullptr) recorder_->put_sent(samples, now_ns);
    std::uint8_t* start = packet.payload.data() - rtp::header_bytes;
    rtp::write_header(start, *header);
    relayed.add({start, rtp::header_bytes + packet.payload.size()});
}

void Stream::relay_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns) {
    if (!may_send() || occupied() || !settings_.dtmf_send_type) return;
    auto header = sender_.relayed(packet.header, 0, now_ns);
    if (!header) return;
    header->payload_type = *settings_.dtmf_send_type;
    std::uint8_t* start = packet.payload.data() - rtp::header_bytes;
    rtp::write_header(start, *header);
    relayed.add({start, rtp::header_bytes + packet.payload.size()});
}

void Stream::flush_relayed(io::SendBatch& relayed) {
    const std::size_t count = relayed.size();
    if (count == 0) return;
    const std::size_t bytes = relayed.total_bytes();
    const std::size_t sent = socket_.send(relayed, latch_.remote());
    figures_.packets_out.add(sent);
    // A batch the kernel took in part is rare enough to count its bytes whole or not at all.
    if (sent == count) figures_.bytes_out.add(bytes);
    if (sent < count) figures_.send_errors.add(count - sent);
}

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
    if (!playback_.empty()) {
        playback_.pull(samples);
        return true;
    }
    if (tap_ == nullptr || peer_ != nullptr) return false;
    // Silence keeps the path through NATs open and the far end's jitter buffer running.
    std::fill(samples.begin(), samples.end(), std::int16_t{0});
    return true;
}

void Stream::send_audio(std::span<const std::int16_t> samples, std::int64_t now_ns) {
    const auto size = static_cast<std::uint32_t>(samples.size());
    if (may_send()) {
        std::array<std::uint8_t, rtp::header_bytes + max_frame_samples> datagram;
        const rtp::Header header = sender_.local(settings_.payload_type, now_ns);
        rtp::write_header(datagram.data(), header);
        dsp::encode(settings_.law(), samples, datagram.data() + rtp::header_bytes);
        send_datagram(std::span(datagram).first(rtp::header_bytes + samples.size()));
        if (recorder_ != nullptr) recorder_->put_sent(samples, now_ns);
    }
    sender_.advance(size, now_ns);
}

void Stream::send_event(const rtp::DtmfPacket& packet, std::int64_t now_ns) {
    if (may_send() && settings_.dtmf_send_type) {
        std::array<std::uint8_t, rtp::header_bytes + 4> datagram;
        rtp::Header header = sender_.local(*settings_.dtmf_send_type, now_ns);
        header.marker = packet.first;
        header.timestamp -= packet.age_samples;
        rtp::write_header(datagram.data(), header);
        std::copy(packet.payload.begin(), packet.payload.end(), datagram.begin() + rtp::header_bytes);
        send_datagram(datagram);
    }
    sender_.advance(settings_.ptime_ms * samples_per_ms, now_ns);
}

void Stream::send_datagram(std::span<const std::uint8_t> datagram) {
    if (!socket_.send(datagram, latch_.remote())) {
        figures_.send_errors.add(1);
        return;
    }
    figures_.packets_out.add(1);
    figures_.bytes_out.add(datagram.size());
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
