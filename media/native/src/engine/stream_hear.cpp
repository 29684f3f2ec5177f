// What a stream receives as linear audio, on its way to everybody who wants it.

#include <array>

#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

constexpr std::array<std::int16_t, codec::max_packet_samples> silence{};

/// A piece of silence as long as the samples.
graph::Piece silent_piece(std::span<const std::int16_t> samples) {
    return {std::span(silence).first(samples.size()), graph::Origin::silence};
}

}  // namespace

/// Whether anybody wants what is received as linear audio.
bool Stream::must_hear() const {
    if (tap_ != nullptr || recorder_ != nullptr || listeners_ != nullptr) return true;
    return peer_ != nullptr && (peer_->recorder_ != nullptr || !alike(settings_, peer_->settings_));
}

/// Hand out what is due.
void Stream::hear(std::int64_t now_ns) {
    for (graph::Piece piece; hearing_->next(piece, now_ns);) {
        hand_out(piece, now_ns);
    }
    figures_.late.set(hearing_->figures().late);
}

void Stream::hand_out(const graph::Piece& piece, std::int64_t now_ns) {
    const auto at = [&](std::uint32_t rate_hz, bool muted) {
        const graph::Piece heard{hearing_->at(rate_hz, piece), piece.origin};
        return muted ? silent_piece(heard.samples) : heard;
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
        if (peer_->recorder_ != nullptr && peer_->passes()) {
            peer_->recorder_->put_sent(at(peer_->recorder_->rate_hz(), false).samples, now_ns);
        }
    } else if (route_ == Route::transcoded && peer_->speaking_ != nullptr) {
        peer_->transcode(at(peer_->speaking_->rate_hz(), false), now_ns);
    }
}

}  // namespace trunkline::engine
