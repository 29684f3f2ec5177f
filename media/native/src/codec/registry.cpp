// Which codecs there are, and how they are made.

#include <algorithm>

#include "trunkline/codec/codec.hpp"
#include "trunkline/dsp/g711.hpp"

namespace trunkline::codec {

namespace {

constexpr dsp::Law law_of(Codec codec) {
    return codec == Codec::pcma ? dsp::Law::a : dsp::Law::mu;
}

class G711Decoder final : public Decoder {
  public:
    using Decoder::Decoder;

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        return payload.size() <= max_packet_samples ? static_cast<std::uint32_t>(payload.size()) : 0;
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        if (payload.size() > out.size()) return 0;
        dsp::decode(law_of(format().codec), payload, out.data());
        return static_cast<std::uint32_t>(payload.size());
    }

    void conceal(std::span<std::int16_t> out) override { std::fill(out.begin(), out.end(), std::int16_t{0}); }

    void reset() override {}
};

class G711Encoder final : public Encoder {
  public:
    using Encoder::Encoder;

    std::size_t encode(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) override {
        if (frame.size() > out.size()) return 0;
        dsp::encode(law_of(format().codec), frame, out.data());
        return frame.size();
    }

    void reset() override {}
};

bool is_g711(const Format& format) {
    return (format.codec == Codec::pcmu || format.codec == Codec::pcma) && format.clock_hz == 8000;
}

}  // namespace

bool supported(const Format& format) {
    return is_g711(format);
}

std::unique_ptr<Decoder> make_decoder(const Format& format) {
    if (!supported(format)) return nullptr;
    return std::make_unique<G711Decoder>(format);
}

std::unique_ptr<Encoder> make_encoder(const Format& format, const EncoderOptions&) {
    if (!supported(format)) return nullptr;
    return std::make_unique<G711Encoder>(format);
}

}  // namespace trunkline::codec
