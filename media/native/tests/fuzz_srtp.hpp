#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "trunkline/engine/srtp.hpp"

namespace trunkline::fuzz {

/// Opens whatever the bytes are as RTP and as RTCP, in contexts that live as long as the process. Returns
/// true when one took them for authentic, which only bytes made with the key can be.
inline bool open_srtp(std::span<const std::uint8_t> bytes) {
    using engine::SrtpContext;
    static const std::unique_ptr<SrtpContext> context =
        SrtpContext::make(engine::SrtpKey{}, SrtpContext::Direction::received, std::nullopt);
    static std::array<std::uint8_t, 2048> room;
    bool authentic = false;
    for (const auto kind : {engine::SrtpKind::rtp, engine::SrtpKind::rtcp}) {
        const std::span packet = std::span(room).first(std::min(bytes.size(), room.size()));
        std::copy_n(bytes.begin(), packet.size(), packet.begin());
        const engine::SrtpOpened opened = context->open(kind, packet);
        authentic |= opened.verdict == engine::SrtpVerdict::authentic;
        if (opened.size_bytes > packet.size()) __builtin_trap();
    }
    return authentic;
}

}  // namespace trunkline::fuzz
