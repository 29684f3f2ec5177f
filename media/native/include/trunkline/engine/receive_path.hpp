#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/rate_bridge.hpp"
#include "trunkline/graph/audio_chunk.hpp"
#include "trunkline/graph/jitter_buffer.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// Decoder of a payload. The static types of G.711 mean the same whatever was agreed.
enum class Speech : std::uint8_t { agreed, pcmu, pcma };

/// Decoders of what a stream may receive.
class DecoderSet final : public util::Node {
  public:
    explicit DecoderSet(const codec::Format& agreed);

    codec::Decoder& of(Speech speech);

  private:
    std::unique_ptr<codec::Decoder> agreed_, pcmu_, pcma_;  ///< The first is null when G.711 was agreed.
};

/// Turns the packets of a stream into linear audio, for whoever wants that.
///
/// Made by the control thread when something first wants to hear; a stream that only relays has none.
class ReceivePath final : public util::Node {
  public:
    explicit ReceivePath(std::unique_ptr<DecoderSet> decoders) : decoders_(decoders.release()) {}
    ~ReceivePath() override { delete decoders_; }

    /// Begin a run of audio, with silence until the first packet.
    void begin(std::int64_t now_ns);

    /// Replace the decoders; returns the former ones. The audio continues.
    DecoderSet* replace(DecoderSet* decoders, std::int64_t now_ns);

    void put(Speech speech, const rtp::PacketView& packet, bool restarted, std::int64_t now_ns);
    void put_noise(const rtp::PacketView& packet, bool restarted, std::int64_t now_ns) {
        buffer_.put_noise(packet.header, packet.payload, restarted, now_ns);
    }
    void skip(const rtp::Header& header) { buffer_.skip(header); }

    /// The next chunk, if one is due; ask until none is.
    bool next(graph::AudioChunk& chunk, std::int64_t now_ns);

    /// Rate of the chunk last handed out.
    std::uint32_t rate_hz() const { return buffer_.rate_hz(); }

    /// The samples of the chunk last handed out at another rate.
    std::span<const std::int16_t> at(std::uint32_t rate_hz, const graph::AudioChunk& chunk);

    graph::DecodingFigures figures() const { return buffer_.figures(); }

  private:
    DecoderSet* decoders_;
    Speech speech_ = Speech::pcmu;
    graph::JitterBuffer buffer_;
    dsp::RateBridge bridge_;
    std::span<const std::int16_t> converted_;  ///< Empty until somebody wants the chunk at the other rate.
};

}  // namespace trunkline::engine
