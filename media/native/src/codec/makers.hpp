#pragma once

#include <algorithm>
#include <memory>

#include "trunkline/codec/codec.hpp"

// Makers for registry.cpp. A maker may return null when its library refuses.
namespace trunkline::codec {

std::unique_ptr<Decoder> make_g711_decoder(const Format& format);
std::unique_ptr<Encoder> make_g711_encoder(const Format& format, const EncoderOptions& options);
std::unique_ptr<Decoder> make_l16_decoder(const Format& format);
std::unique_ptr<Encoder> make_l16_encoder(const Format& format, const EncoderOptions& options);
#if TRUNKLINE_HAVE_SPANDSP
std::unique_ptr<Decoder> make_g722_decoder(const Format& format);
std::unique_ptr<Encoder> make_g722_encoder(const Format& format, const EncoderOptions& options);
#endif
#if TRUNKLINE_HAVE_OPUS
std::unique_ptr<Decoder> make_opus_decoder(const Format& format);
std::unique_ptr<Encoder> make_opus_encoder(const Format& format, const EncoderOptions& options);
#endif

/// The samples of a packet, or 0 for one that is longer than any that is decoded.
constexpr std::uint32_t bounded(std::size_t samples) {
    return samples <= max_packet_samples ? static_cast<std::uint32_t>(samples) : 0;
}

}  // namespace trunkline::codec
