// What a stream does for the one it is linked with: sends on what that one receives, undecoded where it can.

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

/// Whether audio of our own is being sent, so that the linked stream's must wait.
bool Stream::occupied() const {
    return dtmf_sender_.pressing() || (tap_ != nullptr && tap_->playout().playing()) || playback_.playing();
}

void Stream::relay_audio(const rtp::PacketView& packet, dsp::Law law, std::span<const std::int16_t> samples,
                         io::SendBatch& relayed, std::int64_t now_ns) {
    if (!may_send() || occupied()) return;
    const auto size = static_cast<std::uint32_t>(packet.payload.size());
    auto header = sender_.relayed(packet.header, size, now_ns);
    if (!header) return;
    header->payload_type = settings_.payload_type;
    dsp::convert(law, settings_.law(), packet.payload);
    if (recorder_ != nullptr) recorder_->put_sent(header->timestamp, samples);
    std::uint8_t* start = packet.payload.data() - rtp::header_bytes;
    rtp::write_header(start, *header);
    wire_.queue(relayed, start, rtp::header_bytes + packet.payload.size());
}

void Stream::relay_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns) {
    if (!may_send() || occupied() || !settings_.dtmf_send_type) return;
    auto header = sender_.relayed(packet.header, 0, now_ns);
    if (!header) return;
    header->payload_type = *settings_.dtmf_send_type;
    std::uint8_t* start = packet.payload.data() - rtp::header_bytes;
    rtp::write_header(start, *header);
    wire_.queue(relayed, start, rtp::header_bytes + packet.payload.size());
}

}  // namespace trunkline::engine
