#include "trunkline/engine/receive_path.hpp"

#include <utility>

namespace trunkline::engine {

DecoderSet::DecoderSet(const codec::Format& agreed)
    : pcmu_(codec::make_decoder({codec::Codec::pcmu, 8000})),
      pcma_(codec::make_decoder({codec::Codec::pcma, 8000})) {
    if (!codec::is_g711(agreed)) agreed_ = codec::make_decoder(agreed);
}

codec::Decoder& DecoderSet::of(Speech speech) {
    if (speech == Speech::pcma) return *pcma_;
    return speech == Speech::agreed && agreed_ != nullptr ? *agreed_ : *pcmu_;
}

void ReceivePath::begin(std::int64_t now_ns) {
    buffer_.use(nullptr, now_ns);
    buffer_.use(&decoders_->of(speech_), now_ns);
    bridge_.reset();
}

DecoderSet* ReceivePath::replace(DecoderSet* decoders, std::int64_t now_ns) {
    DecoderSet* before = std::exchange(decoders_, decoders);
    // Silence keeps the old rate until a packet of the new codec comes.
    if (speech_ == Speech::agreed) speech_ = Speech::pcmu;
    buffer_.use(&decoders_->of(speech_), now_ns);
    return before;
}

void ReceivePath::put(Speech speech, const rtp::PacketView& packet, bool restarted, std::int64_t now_ns) {
    if (speech != speech_) {
        speech_ = speech;
        buffer_.use(&decoders_->of(speech), now_ns);
    }
    buffer_.put(packet.header, packet.payload, restarted, now_ns);
}

bool ReceivePath::next(graph::AudioChunk& chunk, std::int64_t now_ns) {
    converted_ = {};
    return buffer_.next(chunk, now_ns);
}

std::span<const std::int16_t> ReceivePath::at(std::uint32_t rate_hz, const graph::AudioChunk& chunk) {
    if (rate_hz == buffer_.rate_hz()) return chunk.samples;
    if (converted_.empty()) converted_ = bridge_.convert(chunk.samples, buffer_.rate_hz(), rate_hz);
    return converted_;
}

}  // namespace trunkline::engine
