#include "trunkline/codec/duration.hpp"

namespace trunkline::codec {

namespace {

/// Units of 48 kHz that one frame of this configuration lasts (RFC 6716 3.1, table 2).
std::uint32_t opus_frame_units(std::uint8_t configuration) {
    constexpr std::uint32_t ms = 48;
    if (configuration < 12) {
        constexpr std::uint32_t silk[] = {10 * ms, 20 * ms, 40 * ms, 60 * ms};
        return silk[configuration % 4];
    }
    if (configuration < 16) return configuration % 2 == 0 ? 10 * ms : 20 * ms;
    return (5 * ms / 2) << (configuration % 4);
}

/// Frames in a packet (RFC 6716 3.2); 0 for a packet that does not say.
std::uint32_t opus_frames(std::span<const std::uint8_t> payload) {
    const std::uint8_t code = payload[0] & 3;
    if (code == 0) return 1;
    if (code != 3) return 2;
    return payload.size() < 2 ? 0 : payload[1] & 0x3F;
}

}  // namespace

std::uint32_t payload_units(const Format& format, std::span<const std::uint8_t> payload) {
    const auto size = static_cast<std::uint32_t>(payload.size());
    switch (format.codec) {
        case Codec::pcmu:
        case Codec::pcma:
        case Codec::g722:
            return size;
        case Codec::l16:
            return size % 2 == 0 ? size / 2 : 0;
        case Codec::opus:
            return payload.empty() ? 0 : opus_frame_units(payload[0] >> 3) * opus_frames(payload);
    }
    return 0;
}

}  // namespace trunkline::codec
