// What a stream does for the one it is linked with: sends on what that one receives, undecoded where it can.

#include <algorithm>

#include "trunkline/codec/duration.hpp"
#include "trunkline/engine/stream.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"

namespace trunkline::engine {

namespace {

struct EventPayload {
    char key = 0;
    bool ended = false;
    std::uint32_t duration = 0;
};

/// The fields of a telephone event (RFC 4733 2.3).
EventPayload parse_event(std::span<const std::uint8_t> payload) {
    if (payload.size() < 4) return {};
    return {rtp::key_of_event(payload[0]), (payload[1] & 0x80) != 0,
            static_cast<std::uint32_t>(payload[2] << 8 | payload[3])};
}

}  // namespace

/// Whether a packet just received goes to the linked stream as it is.
bool Stream::relays(const codec::Format& format, std::uint32_t units) {
    const MediaSettings& wanted = peer_->settings_;
    if (!convertible(format, wanted.format)) return false;
    if (hearing_ == nullptr || alike(settings_, wanted)) return true;
    // The packet times differ as they were agreed on. One packet of another length is no change of them.
    if (units == last_units_) regular_units_ = units;
    last_units_ = units;
    return regular_units_ == codec::units_of_ms(wanted.format, wanted.ptime_ms);
}

/// Whether audio of our own is being sent, so that the linked stream's must wait.
bool Stream::occupied() const {
    return dtmf_sender_.pressing() || key_tones_.sounding() ||
           (tap_ != nullptr && tap_->playout().playing()) || playback_.playing() || source_ != nullptr;
}

void Stream::relay_audio(const rtp::PacketView& packet, const codec::Format& format, std::uint32_t units,
                         io::SendBatch& relayed, std::int64_t now_ns) {
    if (!passes()) return;
    if (!(format == settings_.format)) {
        dsp::convert(law_of(format), law_of(settings_.format), packet.payload);
    }
    relay_packet(packet, settings_.payload_type, units, relayed, now_ns);
}

/// Give a packet a number and a payload type of this stream, in its buffer, and send it with the batch.
void Stream::relay_packet(const rtp::PacketView& packet, std::uint8_t payload_type, std::uint32_t units,
                          io::SendBatch& relayed, std::int64_t now_ns) {
    auto header = sender_.relayed(packet.header, units, now_ns);
    if (!header) return;
    header->payload_type = payload_type;
    std::uint8_t* start = packet.payload.data() - rtp::header_bytes;
    rtp::write_header(start, *header);
    wire_.queue(relayed, start, rtp::header_bytes + packet.payload.size());
}

/// Send on an event, muted or not, as the far end takes it.
void Stream::relay_event(const rtp::PacketView& packet, const Stream& from, io::SendBatch& relayed,
                         std::int64_t now_ns) {
    const std::uint32_t clock_hz = from.settings_.format.clock_hz;
    const bool own_audio = occupied() && !event_.down;
    // Flash and whatever else is no key was not agreed on with this side either.
    if (parse_event(packet.payload).key == 0) return;
    if (!may_send() || own_audio || digits_ != Digits::none) return;
    if (sends_tones(settings_)) {
        sound_event(packet, clock_hz, now_ns);
    } else if (from.route_ != Route::transcoded && clock_hz == settings_.format.clock_hz) {
        // Also of a far end that has sent no audio: the times between its presses are in its timestamps
        // alone.
        relay_packet(packet, *settings_.dtmf_send_type, 0, relayed, now_ns);
    } else {
        renumber_event(packet, clock_hz, now_ns);
    }
}

/// Send on an event among packets of our own: the timestamps of its stream mean nothing there.
void Stream::renumber_event(const rtp::PacketView& packet, std::uint32_t clock_hz, std::int64_t now_ns) {
    const EventPayload event = parse_event(packet.payload);
    if (event.key == 0) return;
    const bool begins = !event_.known || packet.header.timestamp != event_.timestamp_in;
    PacketRoom room;
    rtp::Header header = sender_.local(*settings_.dtmf_send_type, now_ns, rtp::Feed::transcoded);
    if (begins && event_.known && header.timestamp == event_.timestamp_out) {
        // No audio was sent since the press before; with its timestamp this one would be taken for it.
        const std::int64_t passed_us = (now_ns - event_.last_ns) / 1000;
        const auto passed = static_cast<std::uint32_t>(passed_us * settings_.format.clock_hz / 1'000'000);
        sender_.advance(passed, event_.last_ns, rtp::Feed::transcoded);
        header.timestamp += passed;
    }
    if (begins) event_ = {packet.header.timestamp, header.timestamp, now_ns, false, true};
    header.marker = begins;
    header.timestamp = event_.timestamp_out;
    const std::uint64_t scaled = std::uint64_t{event.duration} * settings_.format.clock_hz / clock_hz;
    const auto duration = static_cast<std::uint16_t>(std::min<std::uint64_t>(scaled, 0xFFFF));
    std::uint8_t* payload = room.data() + rtp::header_bytes;
    payload[0] = packet.payload[0];
    payload[1] = packet.payload[1];
    payload[2] = static_cast<std::uint8_t>(duration >> 8);
    payload[3] = static_cast<std::uint8_t>(duration);
    send_payload(room, header, 4);
}

/// Make a tone of an event, as long as the press was. It begins with the event's first packet that comes.
void Stream::sound_event(const rtp::PacketView& packet, std::uint32_t clock_hz, std::int64_t now_ns) {
    const EventPayload event = parse_event(packet.payload);
    if (event.key == 0 || speaking_ == nullptr) return;
    if (!event_.known || packet.header.timestamp != event_.timestamp_in) {
        event_ = {packet.header.timestamp, 0, now_ns, true, true};
        key_tones_.hold(event.key, speaking_->rate_hz());
        run_clocks(now_ns);
    }
    event_.last_ns = now_ns;
    if (!event.ended || !event_.down) return;
    event_.down = false;
    key_tones_.release_after(event.duration * 1000 / clock_hz);
}

/// Send what the linked stream hears, at the rate that is sent, in packets of our own. Its pauses are not
/// sent, or described as noise.
void Stream::transcode(const graph::Piece& piece, std::int64_t now_ns) {
    FrameGatherer& gathered = speaking_->gathered;
    if (!passes() || !speaking_->serves(settings_)) {
        gathered.clear();
        return;
    }
    if (graph::is_quiet(piece.origin) && gathered.size() == 0) {
        pass_pause(piece, now_ns);
        return;
    }
    gathered.append(piece.samples);
    std::array<std::int16_t, codec::max_packet_samples> room;
    const auto frame = std::span(room).first(speaking_->rate_hz() / 1000 * settings_.ptime_ms);
    while (gathered.take(frame)) {
        send_audio(frame, rtp::Feed::transcoded, false, now_ns);
    }
}

void Stream::pass_pause(const graph::Piece& pause, std::int64_t now_ns) {
    const auto ms = static_cast<std::uint32_t>(pause.samples.size() * 1000 / speaking_->rate_hz());
    if (pause.origin == graph::Origin::noise) speaking_->noise.observe(pause.samples);
    record_sent(pause.samples, now_ns);
    if (!hush(ms, 0, rtp::Feed::transcoded, now_ns)) sender_.pause();
    sender_.advance(units_of(pause.samples.size()), now_ns, rtp::Feed::transcoded);
}

}  // namespace trunkline::engine
