// Relay of a linked stream's received packets, undecoded where possible.

#include <algorithm>

#include "trunkline/codec/duration.hpp"
#include "trunkline/engine/stream.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"

namespace trunkline::engine {

namespace {

/// A pause between two presses that is longer was no pause: the timestamps jumped.
constexpr std::uint32_t max_pause_s = 60;
/// The last packets of a press, and the audio after it, come within this.
constexpr std::int64_t press_rest_ns = 100'000'000;
/// Noise that a linked stream described is described again when it has not done so for so long.
constexpr std::uint32_t noise_interval_ms = 1000;

struct EventPayload {
    char key = 0;
    bool ended = false;
};

/// The fields of a telephone event (RFC 4733 2.3).
EventPayload parse_event(std::span<const std::uint8_t> payload) {
    if (payload.size() < 4) return {};
    return {rtp::key_of_event(payload[0]), (payload[1] & 0x80) != 0};
}

/// A stretch of one RTP clock in units of another.
std::uint32_t scaled(std::uint32_t units, std::uint32_t from_hz, std::uint32_t to_hz) {
    return static_cast<std::uint32_t>(std::uint64_t{units} * to_hz / from_hz);
}

}  // namespace

/// True if a packet just received goes to the linked stream as it is.
bool Stream::relays(const codec::Format& format, std::uint32_t units) {
    const MediaSettings& wanted = peer_->settings_;
    if (!convertible(format, wanted.format)) return false;
    if (receive_path_ == nullptr) return true;
    if (peer_->tracks_ != nullptr) return false;
    if (alike(settings_, wanted)) return true;
    // The packet times differ as they were agreed on. One packet of another length is no change of them.
    if (units == last_units_) regular_units_ = units;
    last_units_ = units;
    return regular_units_ == codec::units_of_ms(wanted.format, wanted.ptime_ms);
}

/// True if audio of our own is being sent, so that the linked stream's must wait.
bool Stream::occupied() const {
    return dtmf_sender_.pressing() || key_tones_.sounding() || plays();
}

/// True if audio of our own other than digits is being sent.
bool Stream::plays() const {
    return (tap_ != nullptr && tap_->playout().playing()) || playback_.playing() || source_ != nullptr;
}

void Stream::relay_audio(const rtp::PacketView& packet, const codec::Format& format, std::uint32_t units,
                         io::SendBatch& relayed, std::int64_t now_ns) {
    if (!passes()) return;
    if (!(format == settings_.format)) {
        dsp::convert(law_of(format), law_of(settings_.format), packet.payload);
    }
    if (send_path_ != nullptr) send_path_->end_silence();
    relay_packet(packet, settings_.payload_type, units, relayed, now_ns);
}

/// Send on a description of noise to a far end that takes these.
void Stream::relay_noise(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns) {
    if (!settings_.noise_type || !passes()) return;
    if (send_path_ != nullptr) {
        send_path_->relay_noise(codec::parse_noise(packet.payload), noise_interval_ms);
    }
    relay_packet(packet, *settings_.noise_type, 0, relayed, now_ns);
}

/// Give a packet a number and a payload type of this stream, in its buffer, and send it with the batch.
void Stream::relay_packet(const rtp::PacketView& packet, std::uint8_t payload_type, std::uint32_t units,
                          io::SendBatch& relayed, std::int64_t now_ns) {
    auto header = sender_.relayed(packet.header, units, now_ns);
    if (!header) return;
    header->payload_type = payload_type;
    std::uint8_t* start = packet.payload.data() - rtp::header_bytes;
    rtp::write_header(start, *header);
    media_socket_.queue(relayed, start, rtp::header_bytes + packet.payload.size());
}

/// Send on an event, muted or not, as the far end takes it.
void Stream::relay_event(const rtp::PacketView& packet, const Stream& from, io::SendBatch& relayed,
                         std::int64_t now_ns) {
    // Flash and whatever else is no key was not agreed on with this side either.
    if (parse_event(packet.payload).key == 0) return;
    if (!may_send() || digits_ == Digits::text) return;
    if (sends_tones(settings_)) {
        if (!plays() || event_.down) sound_event(packet, from, now_ns);
    } else if (occupied() || digits_ != Digits::none) {
        return;
    } else if (from.route_ != Route::transcoded &&
               from.settings_.format.clock_hz == settings_.format.clock_hz) {
        // Also of a far end that has sent no audio: the times between its presses are in its timestamps
        // alone.
        relay_packet(packet, *settings_.dtmf_send_type, 0, relayed, now_ns);
    } else {
        renumber_event(packet, from, now_ns);
    }
    press_sent_until_ns_ = now_ns + press_rest_ns;
}

/// Send on an event among packets of our own: the timestamps of its stream mean nothing there. A press that
/// came in segments goes on as one, which says the longest duration there is once it is longer.
void Stream::renumber_event(const rtp::PacketView& packet, const Stream& from, std::int64_t now_ns) {
    const rtp::DtmfReceiver& received = from.dtmf_receiver_;
    if (!received.is_latest(packet.header.timestamp)) return;
    const std::uint32_t clock_hz = from.settings_.format.clock_hz;
    const bool begins = event_.press != received.presses();
    PacketRoom room;
    rtp::Header header = sender_.local(*settings_.dtmf_send_type, now_ns, rtp::Feed::transcoded);
    if (begins && event_.known && header.timestamp == event_.timestamp_out) {
        // No audio was sent since the press before; with its timestamp this one would be taken for it.
        const std::uint32_t passed = units_since_press(packet.header.timestamp, clock_hz, now_ns);
        sender_.advance(passed, event_.last_ns, rtp::Feed::transcoded);
        header.timestamp += passed;
    }
    if (begins) {
        event_ = {received.presses(), packet.header.timestamp, header.timestamp, now_ns, false, true};
    }
    header.marker = begins;
    header.timestamp = event_.timestamp_out;
    const auto duration = static_cast<std::uint16_t>(
        std::min(scaled(received.lasting(), clock_hz, settings_.format.clock_hz), std::uint32_t{0xFFFF}));
    std::uint8_t* payload = room.data() + rtp::header_bytes;
    payload[0] = packet.payload[0];
    payload[1] = packet.payload[1];
    payload[2] = static_cast<std::uint8_t>(duration >> 8);
    payload[3] = static_cast<std::uint8_t>(duration);
    send_payload(room, header, 4);
}

/// Units of our clock between the beginnings of the press before and of this one, never none. Its timestamps
/// tell, also of packets that were held up and come together; those of another source mean nothing.
std::uint32_t Stream::units_since_press(std::uint32_t timestamp, std::uint32_t clock_hz,
                                        std::int64_t now_ns) const {
    const std::uint32_t passed = timestamp - event_.timestamp_in;
    const bool timed = event_.press != 0 && passed != 0 && passed <= max_pause_s * clock_hz;
    if (timed) return std::max(scaled(passed, clock_hz, settings_.format.clock_hz), std::uint32_t{1});
    const std::int64_t passed_us = (now_ns - event_.last_ns) / 1000;
    return std::max(static_cast<std::uint32_t>(passed_us * settings_.format.clock_hz / 1'000'000),
                    std::uint32_t{1});
}

/// Make a tone of an event, as long as the press was. It begins with the event's first packet that comes.
void Stream::sound_event(const rtp::PacketView& packet, const Stream& from, std::int64_t now_ns) {
    const rtp::DtmfReceiver& received = from.dtmf_receiver_;
    // A late packet of an earlier press would have that sound again, and then the present one.
    if (send_path_ == nullptr || !received.is_latest(packet.header.timestamp)) return;
    const EventPayload event = parse_event(packet.payload);
    if (event_.press != received.presses()) {
        begin_sound(event.key, now_ns);
        event_.press = received.presses();
    }
    event_.last_ns = now_ns;
    if (!event.ended || !event_.down) return;
    event_.down = false;
    key_tones_.release_after(received.lasting() / (from.settings_.format.clock_hz / 1000));
}

/// Play a relayed key as a tone. Delayed packets arrive together; their keys are then played one after the
/// other, those that waited as long as any that we send by ourselves.
void Stream::begin_sound(char key, std::int64_t now_ns) {
    event_.known = true;
    if (event_.down) key_tones_.release_after(0);
    event_.down = !key_tones_.busy() && pressed_count_ == 0;
    if (event_.down) {
        key_tones_.hold(key, send_path_->rate_hz());
    } else {
        queue_press(key);
    }
    run_clocks(now_ns);
}

/// Send what the linked stream hears, at the rate that is sent, in packets of our own. Its pauses are not
/// sent, or described as noise, unless this far end must hear from us all the time.
void Stream::transcode(const graph::AudioChunk& chunk, std::int64_t now_ns) {
    FrameGatherer& gathered = send_path_->gathered;
    if (!passes() || !send_path_->serves(settings_)) {
        gathered.clear();
        return;
    }
    if (graph::is_quiet(chunk.origin) && gathered.size() == 0) {
        // Silence is being sent in its place already.
        if (sender_.fills() && sender_.idle_ns(now_ns) < 0) return;
        if ((!settings_.speaks_always() || settings_.noise_type) && tracks_ == nullptr) {
            pass_pause(chunk, now_ns);
            return;
        }
    }
    gathered.append(chunk.samples);
    std::array<std::int16_t, codec::max_packet_samples> room;
    const auto frame = std::span(room).first(send_path_->rate_hz() / 1000 * settings_.ptime_ms);
    while (gathered.take(frame)) {
        send_audio(frame, rtp::Feed::transcoded, false, now_ns);
    }
}

void Stream::pass_pause(const graph::AudioChunk& pause, std::int64_t now_ns) {
    const auto ms = static_cast<std::uint32_t>(pause.samples.size() * 1000 / send_path_->rate_hz());
    if (pause.origin == graph::Origin::noise) send_path_->noise.observe(pause.samples);
    note_sent(pause.samples, now_ns);
    if (!hush(ms, 0, rtp::Feed::transcoded, now_ns)) sender_.pause();
    sender_.advance(units_of(pause.samples.size()), now_ns, rtp::Feed::transcoded);
}

}  // namespace trunkline::engine
