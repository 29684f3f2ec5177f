#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/engine/srtp.hpp"
#include "trunkline/io/address.hpp"

namespace trunkline::engine {

/// Longest packet, in milliseconds, that is sent, and that is decoded when received.
inline constexpr std::uint32_t max_packet_ms = codec::max_packet_ms;

/// Negotiated settings of a stream.
struct MediaSettings {
    io::Address remote;
    codec::Format format;                      ///< Sent, and expected besides the static types of G.711.
    std::uint8_t payload_type = 0;             ///< What we send with.
    std::optional<std::uint8_t> receive_type;  ///< What the far end sends with, when it differs.
    std::uint32_t ptime_ms = 20;
    codec::EncoderOptions encoder;
    std::optional<std::uint8_t> noise_type;      ///< Of comfort noise (RFC 3389), when the far end takes it.
    std::optional<std::uint8_t> dtmf_send_type;  ///< Payload type the far end wants its events with.
    std::optional<std::uint8_t> dtmf_receive_type;  ///< Payload type of the events it sends.
    /// Digits go to and come from the far end as tones in the audio.
    bool dtmf_tones = false;
    /// Destination of RTCP; empty when it shares the port of RTP (RFC 5761).
    std::optional<io::Address> rtcp_remote;
    /// Keys of SRTP, for what we send and what we receive; both or none (RFC 4568).
    std::optional<SrtpKey> srtp_send, srtp_receive;
    bool send = true;
    bool receive = true;
    /// Send silence, or comfort noise where it was agreed, whenever there is nothing else to send. Engines
    /// set it for all their streams.
    bool continuous = false;

    /// True if the far end must hear from us all the time.
    bool speaks_always() const { return continuous && send; }
};

/// The law of a format of G.711.
constexpr dsp::Law law_of(const codec::Format& format) {
    return format.codec == codec::Codec::pcma ? dsp::Law::a : dsp::Law::mu;
}

/// True if packets of one format can be sent as packets of the other without decoding them.
constexpr bool convertible(const codec::Format& one, const codec::Format& other) {
    return one == other || (codec::is_g711(one) && codec::is_g711(other));
}

/// True if linked streams with these settings relay without decoding.
inline bool alike(const MediaSettings& one, const MediaSettings& other) {
    return convertible(one.format, other.format) && one.ptime_ms == other.ptime_ms;
}

/// True if digits for the far end are sent as tones in the audio.
inline bool sends_tones(const MediaSettings& settings) {
    return settings.dtmf_tones || !settings.dtmf_send_type;
}

}  // namespace trunkline::engine
