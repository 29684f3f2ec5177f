// The receiving half of a stream: from the socket to its consumers.

#include <array>

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

constexpr std::uint8_t type_pcmu = 0;
constexpr std::uint8_t type_pcma = 8;
constexpr std::uint8_t type_comfort_noise = 13;
constexpr std::size_t max_payload_bytes = max_packet_ms * samples_per_ms;

}  // namespace

bool Stream::receive(io::ReceiveBatch& batch, io::SendBatch& relayed, std::int64_t now_ns) {
    const std::size_t count = wire_.receive(batch);
    for (std::size_t n = 0; n < count; ++n) {
        if (batch.truncated(n)) {
            figures_.dropped_invalid.add(1);
        } else {
            take_datagram(batch.datagram(n), batch.source(n), relayed, now_ns);
        }
    }
    if (peer_ != nullptr) peer_->wire_.flush(relayed, peer_->latch_.remote());
    return count == io::batch_datagrams;
}

Stream::Kind Stream::classify(std::uint8_t payload_type) const {
    if (payload_type == settings_.dtmf_receive_type) return Kind::event;
    if (payload_type == settings_.payload_type) {
        return settings_.law() == dsp::Law::mu ? Kind::audio_mu : Kind::audio_a;
    }
    // The static types mean the same whatever was agreed; some peers send the other law.
    if (payload_type == type_pcmu) return Kind::audio_mu;
    if (payload_type == type_pcma) return Kind::audio_a;
    if (payload_type == type_comfort_noise) return Kind::noise;
    return Kind::unknown;
}

void Stream::take_datagram(std::span<std::uint8_t> datagram, const io::Address& source,
                           io::SendBatch& relayed, std::int64_t now_ns) {
    datagram = wire_.open(datagram);
    if (datagram.empty() && wire_.encrypted()) return;
    if (rtp::is_rtcp(datagram)) {
        take_rtcp(datagram, source, true, now_ns);
        return;
    }
    const auto packet = rtp::parse(datagram);
    const Kind kind = packet ? classify(packet->header.payload_type) : Kind::unknown;
    if (kind == Kind::unknown || packet->payload.empty() || packet->payload.size() > max_payload_bytes) {
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
    last_heard_ns_ = now_ns;
    silence_reported_ = false;
    if (!heard_) {
        heard_ = true;
        outlet_.emit({id_, EventKind::first_packet, 0, 0, 0});
    }
    figures_.packets_in.add(1);
    figures_.bytes_in.add(datagram.size());
    if (!follow_source(packet->header, now_ns)) return;
    if (!settings_.receive) {
        figures_.dropped_unwanted.add(1);
    } else if (kind == Kind::event) {
        take_event(*packet, relayed, now_ns);
    } else if (kind != Kind::noise) {
        take_audio(*packet, kind == Kind::audio_mu ? dsp::Law::mu : dsp::Law::a, relayed, now_ns);
    }
}

/// Whether a packet comes from where the far end is.
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
    const bool timed = header.payload_type != settings_.dtmf_receive_type;
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
        report(dtmf_receiver_.restart());
        restarted_ = true;
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

void Stream::take_event(const rtp::PacketView& packet, io::SendBatch& relayed, std::int64_t now_ns) {
    const bool was_pressed = dtmf_receiver_.pressed();
    const std::uint32_t presses = dtmf_receiver_.presses();
    report(dtmf_receiver_.packet(packet.header.timestamp, packet.payload, now_ns));
    if (dtmf_receiver_.presses() != presses) key_pressed(dtmf_receiver_.key(), now_ns);
    if (dtmf_receiver_.pressed() != was_pressed) run_clocks(now_ns);
    if (peer_ != nullptr) peer_->relay_event(packet, relayed, now_ns);
}

void Stream::take_audio(const rtp::PacketView& packet, dsp::Law law, io::SendBatch& relayed,
                        std::int64_t now_ns) {
    std::array<std::int16_t, max_payload_bytes> decoded;
    const std::span<std::int16_t> samples = std::span(decoded).first(packet.payload.size());
    const bool peer_records = peer_ != nullptr && peer_->recorder_ != nullptr;
    if (listened_to() || peer_records) dsp::decode(law, packet.payload, samples.data());
    if (listened_to()) feed(packet.header.timestamp, samples, packet.header.marker, now_ns);
    // Last, because relaying rewrites the packet in its buffer.
    if (peer_ != nullptr) peer_->relay_audio(packet, law, samples, relayed, now_ns);
}

/// Whether anything wants what is received as linear samples.
bool Stream::listened_to() const {
    return tap_ != nullptr || recorder_ != nullptr || listeners_ != nullptr;
}

void Stream::feed(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool marker,
                  std::int64_t now_ns) {
    if (tap_ != nullptr) {
        tap_->put(timestamp, samples, restarted_, marker, now_ns);
        figures_.late.set(tap_->reader().late());
    }
    if (recorder_ != nullptr) recorder_->put_received(timestamp, samples, restarted_);
    for (Listener* listener = listeners_; listener != nullptr; listener = listener->next_listener_) {
        listener->put(samples, now_ns);
    }
    restarted_ = false;
}

void Stream::report(const std::optional<rtp::Digit>& digit) {
    if (!digit) return;
    outlet_.emit(
        {id_, EventKind::dtmf_received, static_cast<std::uint8_t>(digit->key), digit->duration_ms, 0});
}

void Stream::tick_receive(std::int64_t now_ns) {
    if (tap_ != nullptr) tap_->tick(now_ns);
    if (recorder_ != nullptr && !recorder_->tick()) detach_recorder(now_ns);
    for (Listener* listener = listeners_; listener != nullptr; listener = listener->next_listener_) {
        listener->tick(now_ns);
    }
    report(dtmf_receiver_.expire(now_ns));
    run_clocks(now_ns);
}

}  // namespace trunkline::engine
