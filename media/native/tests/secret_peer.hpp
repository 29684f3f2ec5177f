#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "peer.hpp"
#include "trunkline/engine/srtp.hpp"
#include "trunkline/rtp/packet.hpp"

#if TRUNKLINE_HAVE_SRTP

namespace trunkline::tests {

using engine::MediaSettings;
using engine::SrtpContext;
using engine::SrtpKey;
using engine::SrtpKind;
using engine::SrtpVerdict;

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint32_t secret_ssrc = 0xABCD;

inline SrtpKey key_of(std::uint8_t fill) {
    SrtpKey key;
    key.bytes.fill(fill);
    return key;
}

inline Bytes codes(std::uint8_t code) {
    return Bytes(160, code);
}

/// A far end that sends under one key and receives under another.
struct SecretPeer {
    SecretPeer(std::uint8_t send_fill, std::uint8_t receive_fill) { change_keys(send_fill, receive_fill); }

    void change_keys(std::uint8_t send_fill, std::uint8_t receive_fill) {
        sent = SrtpContext::make(key_of(send_fill), SrtpContext::Direction::sent, secret_ssrc);
        received = SrtpContext::make(key_of(receive_fill), SrtpContext::Direction::received, std::nullopt);
    }

    Bytes sealed(std::uint16_t sequence, const Bytes& payload) {
        Bytes bytes(rtp::header_bytes);
        rtp::write_header(bytes.data(), {0, false, sequence, sequence * 160U, secret_ssrc});
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        return protect(SrtpKind::rtp, bytes);
    }

    Bytes protect(SrtpKind kind, Bytes bytes) {
        const std::size_t size = bytes.size();
        bytes.resize(size + SrtpContext::max_growth_bytes);
        bytes.resize(sent->protect(kind, bytes, size));
        return bytes;
    }

    void send(std::uint16_t to_port, std::uint16_t sequence, const Bytes& payload) {
        socket.send_raw(to_port, sealed(sequence, payload));
    }

    /// The next RTP packet; nothing when none comes or it is not authentic.
    std::optional<Heard> hear() {
        Bytes bytes = socket.hear_raw();
        while (rtp::is_rtcp(bytes)) {
            bytes = socket.hear_raw();
        }
        const auto opened = received->open(SrtpKind::rtp, bytes);
        if (opened.verdict != SrtpVerdict::authentic) return std::nullopt;
        const auto packet = rtp::parse(std::span(bytes).first(opened.size_bytes));
        if (!packet) return std::nullopt;
        return Heard{packet->header, {packet->payload.begin(), packet->payload.end()}};
    }

    Peer socket;
    std::unique_ptr<SrtpContext> sent, received;
};

/// Settings of the stream that talks to a peer: its keys are the peer's, crossed over.
inline MediaSettings secretly(const SecretPeer& peer, std::uint8_t send_fill, std::uint8_t receive_fill) {
    MediaSettings settings = towards(peer.socket.udp_port());
    settings.srtp_send = key_of(send_fill);
    settings.srtp_receive = key_of(receive_fill);
    return settings;
}

}  // namespace trunkline::tests

#endif
