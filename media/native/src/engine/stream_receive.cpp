// The receiving half of a stream: from the socket to those who take packets as they are, and to `hear`.

#include <utility>

#include "trunkline/codec/duration.hpp"
#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

constexpr std::uint8_t type_pcmu = 0;
constexpr std::uint8_t type_pcma = 8;
constexpr std::uint8_t type_comfort_noise = 13;
/// A key that was reported by one method is not reported again by the other within this.
constexpr std::int64_t same_digit_ns = 500'000'000;
/// Cost of an event or of comfort noise.
constexpr std::int64_t other_packet_ns = 5'000'000;

}  // namespace

bool Stream::receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) {
    const std::size_t count = media_socket_.receive(batch);
    for (std::size_t n = 0; n < count; ++n) {
        if (batch.truncated(n)) {
            figures_.dropped_invalid.add(1);
        } else {
            take_datagram(batch.datagram(n), batch.source(n), relayed, now_ns);
        }
    }
    if (peer_ != nullptr) peer_->media_socket_.flush(relayed, peer_->latch_.remote());
    return count == io::batch_datagrams;
}

void Stream::take_from_browser(std::span<std::uint8_t> datagram, io::SendBatch& relayed,
                               std::int64_t now_ns) {
    take_datagram(datagram, latch_.signalled(), relayed, now_ns);
    if (peer_ != nullptr) peer_->media_socket_.flush(relayed, peer_->latch_.remote());
}

Stream::Meaning Stream::meaning_of(std::uint8_t payload_type) const {
    if (payload_type == settings_.dtmf_receive_type) return {Kind::event};
    // Some peers send with the number they themselves receive with.
    if (payload_type == settings_.receive_type || payload_type == settings_.payload_type) {
        if (!codec::is_g711(settings_.format)) return {Kind::audio, Speech::agreed};
        return {Kind::audio, law_of(settings_.format) == dsp::Law::mu ? Speech::pcmu : Speech::pcma};
    }
    // The static types mean the same whatever was agreed; some peers send the other law.
    if (payload_type == type_pcmu) return {Kind::audio, Speech::pcmu};
    if (payload_type == type_pcma) return {Kind::audio, Speech::pcma};
    if (payload_type == type_comfort_noise || payload_type == settings_.noise_type) return {Kind::noise};
    // Last, so that the number it wants its events with never stands for anything else.
    return {payload_type == settings_.dtmf_send_type ? Kind::event : Kind::unknown};
}

codec::Format Stream::format_of(Speech speech) const {
    if (speech == Speech::agreed) return settings_.format;
    return {speech == Speech::pcmu ? codec::Codec::pcmu : codec::Codec::pcma, 8000};
}

/// Duration of an audio packet; 0 for one that is malformed or too long.
std::uint32_t Stream::audible_units(const rtp::PacketView& packet, Meaning meaning) const {
    const codec::Format format = format_of(meaning.speech);
    const std::uint32_t units = codec::payload_units(format, packet.payload);
    const bool fits = packet.payload.size() <= codec::max_payload_bytes;
    return fits && units <= codec::units_of_ms(format, max_packet_ms) ? units : 0;
}

/// Tokens that a packet takes of the far end's bucket.
std::int64_t Stream::cost_ns(Meaning meaning, std::uint32_t units) const {
    if (meaning.kind != Kind::audio) return other_packet_ns;
    return units * std::int64_t{1'000'000'000} / format_of(meaning.speech).clock_hz;
}

void Stream::take_datagram(std::span<std::uint8_t> datagram, const io::Address& source,
                           io::SendBatch& relayed, std::int64_t now_ns) {
    datagram = media_socket_.open(datagram);
    if (datagram.empty() && media_socket_.encrypted()) return;
    if (rtp::is_rtcp(datagram)) {
        take_rtcp(datagram, source, true, now_ns);
        return;
    }
    const auto packet = rtp::parse(datagram);
    const Meaning meaning = packet ? meaning_of(packet->header.payload_type) : Meaning{};
    std::uint32_t units = 0;
    if (meaning.kind == Kind::audio) units = audible_units(*packet, meaning);
    if (meaning.kind == Kind::unknown || packet->payload.empty() ||
        (meaning.kind == Kind::audio && units == 0)) {
        figures_.dropped_invalid.add(1);
        return;
    }
    if (!connected_) {
        figures_.dropped_unwanted.add(1);
        return;
    }
    if (!follow_address(source, packet->header, now_ns)) {
        figures_.dropped_foreign.add(1);
        return;
    }
    figures_.packets_in.add(1);
    figures_.bytes_in.add(datagram.size());
    if (!follow_source(packet->header, now_ns)) return;
    // Forged or replayed packets do not restart the media timeout.
    last_heard_ns_ = now_ns;
    silence_reported_ = false;
    if (!heard_) {
        heard_ = true;
        event_queue_.emit({id_, EventKind::first_packet, 0, 0, 0});
    }
    if (!settings_.receive || !token_bucket_.take(cost_ns(meaning, units), now_ns)) {
        figures_.dropped_unwanted.add(1);
    } else if (meaning.kind == Kind::audio) {
        take_audio(*packet, meaning.speech, units, relayed, now_ns);
    } else if (meaning.kind == Kind::event) {
        take_event(*packet, relayed, now_ns);
    } else {
        take_noise(*packet, relayed, now_ns);
    }
}

/// True if a packet comes from the far end's address.
bool Stream::follow_address(const io::Address& source, const rtp::Header& header, std::int64_t now_ns) {
    const std::uint32_t moves = latch_.moves();
    if (!latch_.accept(source, header, now_ns)) return false;
    // Who proved to be the far end need not prove its SSRC again.
    if (latch_.moves() != moves) reception_.reopen();
    return true;
}

/// Keep account of the far end's numbering; false for a packet that must not be heard.
bool Stream::follow_source(const rtp::Header& header, std::int64_t now_ns) {
    if (header.ssrc == sender_.ssrc() && loops(header, now_ns)) return false;
    const bool timed = meaning_of(header.payload_type).kind != Kind::event;
    const rtp::Verdict verdict = reception_.note(header, timed, now_ns);
    if (verdict == rtp::Verdict::suspect) {
        figures_.suspects.add(1);
        return false;
    }
    if (verdict == rtp::Verdict::restarted) {
        if (figures_.ssrc_in.get() != header.ssrc || figures_.ssrc_changes.get() == 0) {
            figures_.ssrc_changes.add(1);
        }
        figures_.ssrc_in.set(header.ssrc);
        report(dtmf_receiver_.restart(), false, now_ns);
        restarted_ = true;
        if (peer_ != nullptr) peer_->sender_.end_relay();
    }
    figures_.lost.set(reception_.sequence().lost());
    figures_.jitter_us.set(reception_.jitter_us());
    if (verdict == rtp::Verdict::duplicate) figures_.duplicates.add(1);
    return verdict != rtp::Verdict::duplicate;
}

/// A packet under our own SSRC: ours sent back, or the far end chose the same (RFC 3550 8.2). True when it
/// must be dropped, because both ends of a link send back what they get and it would go round for ever.
bool Stream::loops(const rtp::Header& header, std::int64_t now_ns) {
    if (!sender_.sent_lately(header.sequence)) {
        if (!reflecting_) change_ssrc(now_ns);
        return false;
    }
    reflecting_ = true;
    return peer_ != nullptr && peer_->reflecting_;
}

void Stream::take_audio(const rtp::PacketView& packet, Speech speech, std::uint32_t units,
                        io::SendBatch& relayed, std::int64_t now_ns) {
    const codec::Format format = format_of(speech);
    route_ = peer_ == nullptr || muted_.received ? Route::none
             : relays(format, units)             ? Route::relayed
                                                 : Route::transcoded;
    if (hears_) {
        receive_path_->put(speech, packet, std::exchange(restarted_, false), now_ns);
        hear(now_ns);
    }
    // Last, because relaying rewrites the packet in its buffer.
    if (route_ == Route::relayed) peer_->relay_audio(packet, format, units, relayed, now_ns);
}

void Stream::take_noise(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns) {
    if (hears_) {
        receive_path_->put_noise(packet, std::exchange(restarted_, false), now_ns);
        hear(now_ns);
    }
    if (peer_ != nullptr && route_ == Route::relayed) peer_->relay_noise(packet, relayed, now_ns);
}

void Stream::take_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns) {
    const bool was_pressed = dtmf_receiver_.pressed();
    const std::uint32_t presses = dtmf_receiver_.presses();
    report(dtmf_receiver_.packet(packet.header.timestamp, packet.payload, now_ns), false, now_ns);
    if (dtmf_receiver_.presses() != presses) key_pressed(dtmf_receiver_.key(), now_ns);
    if (dtmf_receiver_.pressed() != was_pressed) run_clocks(now_ns);
    if (hears_) receive_path_->skip(packet.header);
    if (peer_ != nullptr) peer_->relay_event(packet, *this, relayed, now_ns);
}

void Stream::digit_detected(const rtp::Digit& digit, std::int64_t now_ns) {
    report(digit, true, now_ns);
    // A far end that wants tones has heard it in the audio.
    if (peer_ == nullptr || peer_ == this || sends_tones(peer_->settings_)) return;
    peer_->press(digit.key);
    peer_->run_clocks(now_ns);
}

void Stream::report(const std::optional<rtp::Digit>& digit, bool by_tone, std::int64_t now_ns) {
    if (!digit) return;
    // The beginning of a tone that leaks into the audio is heard long before the end of its event comes.
    const std::int64_t pressed_ns = std::int64_t{digit->duration_ms} * 1'000'000;
    const bool again = digit->key == last_digit_.key && by_tone != last_digit_by_tone_ &&
                       now_ns - last_digit_ns_ < same_digit_ns + pressed_ns;
    last_digit_ = *digit;
    last_digit_by_tone_ = by_tone;
    last_digit_ns_ = now_ns;
    if (again) return;
    event_queue_.emit(
        {id_, EventKind::dtmf_received, static_cast<std::uint8_t>(digit->key), digit->duration_ms, 0});
}

void Stream::tick_receive(std::int64_t now_ns) {
    if (hears_) hear(now_ns);
    if (recorder_ != nullptr && !recorder_->tick(now_ns)) detach_recorder(now_ns);
    for (Listener* listener = listeners_; listener != nullptr; listener = listener->next_listener_) {
        listener->tick(now_ns);
    }
    report(dtmf_receiver_.expire(now_ns), false, now_ns);
    run_clocks(now_ns);
}

}  // namespace trunkline::engine
