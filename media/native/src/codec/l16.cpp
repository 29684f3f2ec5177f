// L16: linear samples of 16 bits in network byte order, one channel (RFC 3551 4.5.11).

#include "makers.hpp"
#include "trunkline/dsp/concealer.hpp"

namespace trunkline::codec {

namespace {

class L16Decoder final : public Decoder {
  public:
    explicit L16Decoder(const Format& format) : Decoder(format), concealer_(format.rate_hz()) {}

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        return payload.size() % 2 == 0 ? bounded(payload.size() / 2) : 0;
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        const std::uint32_t count = samples(payload);
        if (count == 0 || count > out.size()) return 0;
        for (std::size_t n = 0; n < count; ++n) {
            const unsigned value = unsigned{payload[2 * n]} << 8 | payload[2 * n + 1];
            out[n] = static_cast<std::int16_t>(static_cast<std::uint16_t>(value));
        }
        concealer_.received(out.first(count));
        return count;
    }

    void conceal(std::span<std::int16_t> out) override { concealer_.conceal(out); }

    void reset() override { concealer_.reset(); }

  private:
    dsp::Concealer concealer_;
};

class L16Encoder final : public Encoder {
  public:
    using Encoder::Encoder;

    std::size_t encode(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) override {
        if (2 * frame.size() > out.size()) return 0;
        for (std::size_t n = 0; n < frame.size(); ++n) {
            const auto value = static_cast<std::uint16_t>(frame[n]);
            out[2 * n] = static_cast<std::uint8_t>(value >> 8);
            out[2 * n + 1] = static_cast<std::uint8_t>(value & 0xFF);
        }
        return 2 * frame.size();
    }

    void reset() override {}
};

}  // namespace

std::unique_ptr<Decoder> make_l16_decoder(const Format& format) {
    return std::make_unique<L16Decoder>(format);
}

std::unique_ptr<Encoder> make_l16_encoder(const Format& format, const EncoderOptions&) {
    return std::make_unique<L16Encoder>(format);
}

}  // namespace trunkline::codec
