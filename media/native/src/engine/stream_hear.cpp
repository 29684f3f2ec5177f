// Distribution of a stream's received linear audio.

#include <array>

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

constexpr std::array<std::int16_t, codec::max_packet_samples> silence{};

/// A chunk of silence as long as the samples.
graph::AudioChunk silent_chunk(std::span<const std::int16_t> samples) {
    return {std::span(silence).first(samples.size()), graph::Origin::silence};
}

}  // namespace

/// True if there is a consumer of received linear audio.
bool Stream::must_hear() const {
    if (tap_ != nullptr || recorder_ != nullptr || listeners_ != nullptr) return true;
    return peer_ != nullptr &&
           (peer_->notes_sent() || peer_->tracks_ != nullptr || !alike(settings_, peer_->settings_));
}

/// Hand out what is due.
void Stream::hear(std::int64_t now_ns) {
    for (graph::AudioChunk chunk; receive_path_->next(chunk, now_ns);) {
        hand_out(chunk, now_ns);
    }
    figures_.late.set(receive_path_->figures().late);
}

void Stream::hand_out(const graph::AudioChunk& chunk, std::int64_t now_ns) {
    const auto at = [&](std::uint32_t rate_hz, bool muted) {
        const graph::AudioChunk heard{receive_path_->at(rate_hz, chunk), chunk.origin};
        return muted ? silent_chunk(heard.samples) : heard;
    };
    const bool muted = muted_.received;
    if (tap_ != nullptr) tap_->put(at(tap_->rate_hz(), muted).samples, now_ns);
    if (recorder_ != nullptr) recorder_->put_received(at(recorder_->rate_hz(), muted).samples, now_ns);
    for (Listener* listener = listeners_; listener != nullptr; listener = listener->next_listener_) {
        listener->put(at(listener->rate_hz(), muted && listener->hears() == Listener::Hears::unmuted),
                      now_ns);
    }
    if (peer_ == nullptr || muted) return;
    if (route_ == Route::relayed) {
        if (!peer_->notes_sent() || !peer_->passes()) return;
        if (peer_->recorder_ != nullptr) {
            peer_->recorder_->put_sent(at(peer_->recorder_->rate_hz(), false).samples, now_ns);
        }
        for (Listener* other = peer_->listeners_; other != nullptr; other = other->next_listener_) {
            if (!other->hears_sent()) continue;
            other->put_sent(at(other->rate_hz(), false).samples, other->rate_hz(), now_ns);
        }
    } else if (route_ == Route::transcoded && peer_->send_path_ != nullptr) {
        peer_->transcode(at(peer_->send_path_->rate_hz(), false), now_ns);
    }
}

}  // namespace trunkline::engine
