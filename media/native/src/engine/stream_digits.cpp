// Digits to the far end, as telephone events or as tones in the audio.

#include <algorithm>
#include <array>

#include "trunkline/codec/duration.hpp"
#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

/// A key that was found in a linked stream's audio is sent as a press of this length.
constexpr std::uint32_t found_press_ms = 100;
constexpr std::uint32_t found_gap_ms = 60;
/// After so long without a packet the far end may have run dry and heard a tone end (ITU-T Q.24 takes 40 ms
/// for a pause).
constexpr std::int64_t broken_ns = 40'000'000;

}  // namespace

bool Stream::sending_digits() const {
    return digits_ != Digits::none || key_tones_.busy();
}

/// Send digits in the next frame; false when audio may be sent in it.
bool Stream::step_digits(std::span<std::int16_t> samples, std::int64_t now_ns) {
    if (!sending_digits()) return false;
    if (event_.down && now_ns - event_.last_ns >= rtp::DtmfReceiver::lost_end_ns) {
        // A relayed press whose end bits were all lost.
        event_.down = false;
        key_tones_.release_after(0);
    }
    bool taken = false;
    if (key_tones_.busy()) {
        // The thread was held up by the machine.
        if (now_ns - sounded_ns_ >= settings_.ptime_ms * std::int64_t{1'000'000} + broken_ns) {
            key_tones_.resume();
        }
        sounded_ns_ = now_ns;
        taken = key_tones_.pull(samples);
        // A far end might not know a key by its tones if something sounds beside them.
        if (taken) send_alone(samples, rtp::Feed::own, false, true, now_ns);
    } else if (const auto packet = dtmf_sender_.step(units_of(samples.size()))) {
        send_event(*packet, now_ns);
        taken = true;
    }
    if (!key_tones_.busy() && !dtmf_sender_.busy()) {
        if (digits_ == Digits::text) finish_dtmf_text();
        next_digits();
    }
    return taken;
}

void Stream::send_event(const rtp::DtmfPacket& packet, std::int64_t now_ns) {
    if (may_send() && settings_.dtmf_send_type) {
        PacketRoom room;
        rtp::Header header = sender_.local(*settings_.dtmf_send_type, now_ns);
        header.marker = packet.first;
        header.timestamp -= packet.age_samples;
        std::copy(packet.payload.begin(), packet.payload.end(), room.begin() + rtp::header_bytes);
        send_payload(room, header, packet.payload.size());
    }
    sender_.advance(codec::units_of_ms(settings_.format, settings_.ptime_ms), now_ns);
}

void Stream::start_digits(std::string_view digits, std::uint32_t duration_ms, std::uint32_t gap_ms) {
    if (sends_tones(settings_)) {
        // A relayed press that still sounds gives way.
        event_.down = false;
        key_tones_.start(digits, duration_ms, gap_ms, settings_.format.rate_hz());
    } else {
        dtmf_sender_.start(digits, duration_ms, gap_ms, settings_.format.clock_hz);
    }
}

/// Begin with what is sent next: the text that waits, else keys that were found in the linked stream's audio.
void Stream::next_digits() {
    digits_ = Digits::none;
    if (dtmf_first_ != nullptr) {
        digits_ = Digits::text;
        start_digits(dtmf_first_->digits, dtmf_first_->duration_ms, dtmf_first_->gap_ms);
    } else if (pressed_count_ != 0) {
        digits_ = Digits::pressed;
        pressing_ = pressed_[0];
        std::copy(pressed_.begin() + 1, pressed_.end(), pressed_.begin());
        --pressed_count_;
        start_digits({&pressing_, 1}, found_press_ms, found_gap_ms);
    }
}

void Stream::finish_dtmf_text() {
    DtmfText* text = dtmf_first_;
    dtmf_first_ = static_cast<DtmfText*>(text->next_node);
    if (dtmf_first_ == nullptr) dtmf_last_ = nullptr;
    event_queue_.emit({id_, EventKind::dtmf_sent, text->token, 0, 0});
    event_queue_.discard(text);
    dtmf_sender_ = {};
    key_tones_.stop();
}

/// Send a key behind those that are being sent; one too many is dropped.
void Stream::press(char key) {
    queue_press(key);
    if (digits_ == Digits::none) next_digits();
}

/// Send a key once the tone that sounds is over.
void Stream::queue_press(char key) {
    if (pressed_count_ != pressed_.size()) pressed_[pressed_count_++] = key;
}

}  // namespace trunkline::engine
