#pragma once

#include <cstdint>

namespace trunkline::codec {

/// The codecs the engine knows. Which of them were built in, `supported` says.
enum class Codec : std::uint8_t { pcmu, pcma, g722, l16, opus };

/// A codec as a stream uses it.
struct Format {
    Codec codec = Codec::pcmu;
    /// Rate of the RTP timestamps: 8000 for G.711 and (by an old mistake, RFC 3551 4.5.2) G.722, 48000 for
    /// Opus (RFC 7587 4.1), that of the samples for L16.
    std::uint32_t clock_hz = 8000;

    /// Rate of the linear samples inside the engine: 8000 or 16000.
    std::uint32_t rate_hz() const {
        if (codec == Codec::g722 || codec == Codec::opus) return 16000;
        return codec == Codec::l16 ? clock_hz : 8000;
    }

    bool operator==(const Format&) const = default;
};

/// True for the two laws of G.711, which are translated into one another code by code.
constexpr bool is_g711(const Format& format) {
    return format.codec == Codec::pcmu || format.codec == Codec::pcma;
}

/// Longest packet, in milliseconds, that is sent, and that is decoded when received.
inline constexpr std::uint32_t max_packet_ms = 60;
/// Most samples of one packet at the highest rate inside the engine.
inline constexpr std::uint32_t max_packet_samples = max_packet_ms * 16;
/// Largest payload of any codec: 60 ms of L16 at 16 kHz.
inline constexpr std::uint32_t max_payload_bytes = 2 * max_packet_samples;

}  // namespace trunkline::codec
