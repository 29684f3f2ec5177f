// G.711: PCMU and PCMA (RFC 3551 4.5.14).

#include "trunkline/dsp/g711.hpp"

#include <algorithm>

#include "makers.hpp"
#include "trunkline/dsp/concealer.hpp"

namespace trunkline::codec {

namespace {

constexpr dsp::Law law_of(Codec codec) {
    return codec == Codec::pcma ? dsp::Law::a : dsp::Law::mu;
}

class G711Decoder final : public Decoder {
  public:
    explicit G711Decoder(const Format& format) : Decoder(format), concealer_(format.rate_hz()) {}

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        return bounded(payload.size());
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        const std::uint32_t count = samples(payload);
        if (count == 0 || count > out.size()) return 0;
        dsp::decode(law_of(format().codec), payload, out.data());
        concealer_.received(out.first(count));
        return count;
    }

    void conceal(std::span<std::int16_t> out) override { concealer_.conceal(out); }

    void reset() override { concealer_.reset(); }

  private:
    dsp::Concealer concealer_;
};

class G711Encoder final : public Encoder {
  public:
    using Encoder::Encoder;

    std::size_t encode(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) override {
        if (frame.size() > out.size()) return 0;
        dsp::encode(law_of(format().codec), frame, out.data());
        return frame.size();
    }

    std::size_t encode_silence(std::size_t samples, std::span<std::uint8_t> out) override {
        if (samples > out.size()) return 0;
        std::fill_n(out.begin(), samples, dsp::silence(law_of(format().codec)));
        return samples;
    }

    void reset() override {}
};

}  // namespace

std::unique_ptr<Decoder> make_g711_decoder(const Format& format) {
    return std::make_unique<G711Decoder>(format);
}

std::unique_ptr<Encoder> make_g711_encoder(const Format& format, const EncoderOptions&) {
    return std::make_unique<G711Encoder>(format);
}

}  // namespace trunkline::codec
