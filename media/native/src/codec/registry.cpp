// Table of codecs and their makers.

#include <array>

#include "makers.hpp"

namespace trunkline::codec {

namespace {

struct Entry {
    Format format;
    std::unique_ptr<Decoder> (*make_decoder)(const Format&);
    std::unique_ptr<Encoder> (*make_encoder)(const Format&, const EncoderOptions&);
};

constexpr Entry entries[] = {
    {{Codec::pcmu, 8000}, &make_g711_decoder, &make_g711_encoder},
    {{Codec::pcma, 8000}, &make_g711_decoder, &make_g711_encoder},
    {{Codec::l16, 8000}, &make_l16_decoder, &make_l16_encoder},
    {{Codec::l16, 16000}, &make_l16_decoder, &make_l16_encoder},
#if TRUNKLINE_HAVE_SPANDSP
    {{Codec::g722, 8000}, &make_g722_decoder, &make_g722_encoder},
#endif
#if TRUNKLINE_HAVE_OPUS
    {{Codec::opus, 48000}, &make_opus_decoder, &make_opus_encoder},
#endif
};

const Entry* find(const Format& format) {
    const auto* const found = std::find_if(std::begin(entries), std::end(entries),
                                           [&](const Entry& entry) { return entry.format == format; });
    return found == std::end(entries) ? nullptr : found;
}

}  // namespace

bool supported(const Format& format) {
    return find(format) != nullptr;
}

std::unique_ptr<Decoder> make_decoder(const Format& format) {
    const Entry* const entry = find(format);
    return entry != nullptr ? entry->make_decoder(format) : nullptr;
}

std::unique_ptr<Encoder> make_encoder(const Format& format, const EncoderOptions& options) {
    const Entry* const entry = find(format);
    return entry != nullptr ? entry->make_encoder(format, options) : nullptr;
}

}  // namespace trunkline::codec
