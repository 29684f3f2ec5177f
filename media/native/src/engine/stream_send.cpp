// The sending half of a stream: what is sent on its own clock, and how it is numbered.

#include <algorithm>
#include <array>
#include <utility>

#include "trunkline/codec/comfort_noise.hpp"
#include "trunkline/codec/duration.hpp"
#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

/// Silence of our own is sent for so long before noise is described instead of it.
constexpr std::uint32_t hush_after_ms = 200;
/// Interval of comfort noise, for far ends that joined late and NAT bindings.
constexpr std::uint32_t noise_interval_ms = 1000;
/// A linked stream pauses when its next audio is late by so much and by so many times its jitter, of which
/// the maximum counts. Less than a packet: ticks come a little early or late.
constexpr std::int64_t pause_ns = 15'000'000;
/// The same of audio that is decoded, whose pauses come as silence: two chunks may come together.
constexpr std::int64_t decoded_pause_ns = 60'000'000;
constexpr std::int64_t pause_jitters = 8;
constexpr std::int64_t max_jitter_ns = 300'000'000;

}  // namespace

/// True if a send clock must run.
bool Stream::must_send() const {
    if (!connected_ || send_path_ == nullptr) return false;
    return settings_.speaks_always() || tap_ != nullptr || source_ != nullptr || !playback_.empty() ||
           tracks_ != nullptr || sending_digits() || stands_in() || fills_with_noise_;
}

/// True if silence is sent in place of a linked stream's audio that is muted.
bool Stream::stands_in() const {
    return peer_ != nullptr && (muted_.sent || peer_->muted_.received);
}

/// Units of the RTP clock that samples at the rate that is sent last.
std::uint32_t Stream::units_of(std::size_t samples) const {
    const codec::Format& format = settings_.format;
    return static_cast<std::uint32_t>(samples * format.clock_hz / format.rate_hz());
}

void Stream::tick_send(std::int64_t now_ns) {
    std::array<std::int16_t, codec::max_packet_samples> room;
    const auto frame = std::span(room).first(settings_.format.rate_hz() / 1000 * settings_.ptime_ms);
    bool silent = false;
    if (!send_path_->serves(settings_)) {
        // Parts for these settings are on their way.
        sender_.advance(units_of(frame.size()), now_ns);
    } else if (!step_digits(frame, now_ns)) {
        if (next_audio(frame, silent, now_ns)) {
            send_audio(frame, rtp::Feed::own, silent, now_ns);
        } else if (must_fill(now_ns)) {
            std::fill(frame.begin(), frame.end(), std::int16_t{0});
            send_audio(frame, rtp::Feed::filler, true, now_ns);
        } else if (sending_digits()) {
            // The pause between two keys shows in the timestamps, however fast the far end gets the packets.
            sender_.rest(units_of(frame.size()));
        }
    }
    if (tracks_ != nullptr && tracks_->empty()) end_tracks(now_ns);
    run_clocks(now_ns);
}

/// Go on without the tracks: nothing plays on them any more. The linked stream's packets are relayed again.
void Stream::end_tracks(std::int64_t now_ns) {
    event_queue_.discard(std::exchange(tracks_, nullptr));
    if (peer_ != nullptr) peer_->run_clocks(now_ns);
}

/// Make the next frame of our own audio; false when there is none.
bool Stream::next_audio(std::span<std::int16_t> samples, bool& silent, std::int64_t now_ns) {
    const std::uint32_t rate_hz = settings_.format.rate_hz();
    if (tap_ != nullptr && tap_->pull(samples, rate_hz, now_ns)) return true;
    if (playback_.playing()) {
        playback_.pull(samples, rate_hz);
        return true;
    }
    if (source_ != nullptr && source_->pull(samples, rate_hz, now_ns)) return true;
    const bool linked = peer_ != nullptr && !stands_in();
    if (linked) return false;
    if (fills_with_noise_) {
        noise_.generate(samples);
        return true;
    }
    const bool idle =
        tap_ == nullptr && playback_.empty() && source_ == nullptr && peer_ == nullptr && tracks_ == nullptr;
    if (idle && !settings_.continuous) return false;
    // Silence keeps the path through NATs open and the far end's jitter buffer running.
    std::fill(samples.begin(), samples.end(), std::int16_t{0});
    silent = true;
    return true;
}

/// True if silence must be sent because the linked stream pauses: longer than its jitter explains. What came
/// of it before the tick has been passed on.
bool Stream::must_fill(std::int64_t now_ns) const {
    if (peer_ == nullptr || (!settings_.speaks_always() && tracks_ == nullptr)) return false;
    if (sending_digits()) {
        // Between two keys of our own nothing of the linked stream was sent, so nothing of it is late.
        if (sender_.sends_own()) return true;
    } else if (peer_->dtmf_receiver_.pressed() || now_ns < press_sent_until_ns_) {
        // No audio belongs to a press, and its last packet comes three times (RFC 4733 2.5.1.2, 2.5.1.4).
        return false;
    }
    const std::int64_t idle_ns = sender_.idle_ns(now_ns);
    if (sender_.fills()) return idle_ns > -pause_ns;
    const std::int64_t jitter_ns = std::int64_t{peer_->reception_.jitter_us()} * 1000 * pause_jitters;
    const std::int64_t late_ns = sender_.transcodes() ? decoded_pause_ns : pause_ns;
    return idle_ns >= late_ns + std::min(jitter_ns, max_jitter_ns);
}

void Stream::send_audio(std::span<const std::int16_t> samples, rtp::Feed feed, bool silent,
                        std::int64_t now_ns) {
    std::array<std::int16_t, codec::max_packet_samples> mixed;
    bool adds = false;
    if (tracks_ != nullptr) {
        const auto sum = std::span(mixed).first(samples.size());
        std::copy(samples.begin(), samples.end(), sum.begin());
        adds = tracks_->add_to(sum, settings_.format.rate_hz());
        samples = sum;
    }
    // A recording has silence where nothing was put in, and audio that comes late must not find its place
    // taken.
    send_alone(samples, feed, silent && !adds, feed != rtp::Feed::filler || adds, now_ns);
}

/// Send audio to which no track is added; `noted` if recordings and listeners have it.
void Stream::send_alone(std::span<const std::int16_t> samples, rtp::Feed feed, bool silent, bool noted,
                        std::int64_t now_ns) {
    static constexpr std::array<std::int16_t, codec::max_packet_samples> silence{};
    const std::uint32_t rate_hz = settings_.format.rate_hz();
    if (muted_.sent) {
        samples = std::span(silence).first(samples.size());
        silent = true;
    }
    if (!silent) send_path_->end_silence();
    if (may_send()) {
        const auto ms = static_cast<std::uint32_t>(samples.size() * 1000 / rate_hz);
        if (!silent || !hush(ms, hush_after_ms, feed, now_ns)) {
            PacketRoom room;
            const auto payload = std::span(room).subspan(rtp::header_bytes, codec::max_payload_bytes);
            codec::Encoder& encoder = send_path_->encoder();
            const std::size_t size =
                silent ? encoder.encode_silence(samples.size(), payload) : encoder.encode(samples, payload);
            if (size == 0) {
                sender_.pause();
            } else {
                send_payload(room, sender_.local(settings_.payload_type, now_ns, feed), size);
            }
        }
        // By the tick, so that a thread that was late leaves no gap in what has none.
        if (noted) note_sent(samples, feed == rtp::Feed::own ? wheel_.tick_ns() : now_ns);
    }
    sender_.advance(units_of(samples.size()), now_ns, feed);
}

/// Pass sent audio to the recorder, and to the tap and the listeners that want it.
void Stream::note_sent(std::span<const std::int16_t> samples, std::int64_t now_ns) {
    const std::uint32_t rate_hz = settings_.format.rate_hz();
    if (recorder_ != nullptr) recorder_->put_sent(samples, rate_hz, now_ns);
    if (tap_ != nullptr && tap_->hears_sent()) tap_->put_sent(samples, rate_hz);
    if (sent_listeners_ == 0) return;
    for (Listener* listener = listeners_; listener != nullptr; listener = listener->next_listener_) {
        if (listener->hears_sent()) listener->put_sent(samples, rate_hz, now_ns);
    }
}

/// Count `ms` of silence; true when, after so much of it, it is described as noise instead of being sent.
/// Once the linked stream has described its noise, that is described again.
bool Stream::hush(std::uint32_t ms, std::uint32_t after_ms, rtp::Feed feed, std::int64_t now_ns) {
    if (!settings_.noise_type) return false;
    std::uint32_t& silent_ms = send_path_->silent_ms;
    if (silent_ms == 0) send_path_->noise_due_ms = after_ms;
    if (send_path_->relayed_noise) after_ms = 0;
    const bool due = silent_ms >= send_path_->noise_due_ms;
    const bool hushed = silent_ms >= after_ms;
    silent_ms += ms;
    if (due) {
        send_path_->noise_due_ms += noise_interval_ms;
        send_noise(feed, now_ns);
    }
    if (hushed) sender_.pause();
    return hushed;
}

/// Describe the noise of the present silence (RFC 3389).
void Stream::send_noise(rtp::Feed feed, std::int64_t now_ns) {
    PacketRoom room;
    const std::size_t size = codec::write_noise(
        send_path_->noise_described(), std::span(room).subspan(rtp::header_bytes, codec::max_payload_bytes));
    rtp::Header header = sender_.local(*settings_.noise_type, now_ns, feed);
    header.marker = false;
    send_payload(room, header, size);
}

/// Send a packet whose payload stands in its place.
void Stream::send_payload(PacketRoom& room, const rtp::Header& header, std::size_t size) {
    rtp::write_header(room.data(), header);
    media_socket_.send(room.data(), rtp::header_bytes + size, latch_.remote());
}

}  // namespace trunkline::engine
