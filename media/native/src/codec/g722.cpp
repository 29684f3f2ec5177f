// G.722 at 64 kbit/s by libspandsp: 16 kHz samples, yet an RTP clock of 8000 (RFC 3551 4.5.2).

#if TRUNKLINE_HAVE_SPANDSP

// Each of these headers needs the one before it and does not include it: the order matters.
#include <cstdint>

#include <spandsp/telephony.h>

#include <spandsp/g722.h>

#include "makers.hpp"
#include "trunkline/dsp/concealer.hpp"

namespace trunkline::codec {

namespace {

constexpr int bitrate_bps = 64'000;
constexpr std::size_t samples_per_byte = 2;

struct Free {
    void operator()(g722_decode_state_t* state) const { g722_decode_free(state); }
    void operator()(g722_encode_state_t* state) const { g722_encode_free(state); }
};

class G722Decoder final : public Decoder {
  public:
    explicit G722Decoder(const Format& format)
        : Decoder(format), state_(g722_decode_init(nullptr, bitrate_bps, 0)), concealer_(format.rate_hz()) {}

    bool works() const { return state_ != nullptr; }

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        return bounded(samples_per_byte * payload.size());
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        const std::uint32_t count = samples(payload);
        if (count == 0 || count > out.size()) return 0;
        const int made =
            g722_decode(state_.get(), out.data(), payload.data(), static_cast<int>(payload.size()));
        concealer_.received(out.first(static_cast<std::size_t>(made)));
        return static_cast<std::uint32_t>(made);
    }

    void conceal(std::span<std::int16_t> out) override { concealer_.conceal(out); }

    void reset() override {
        g722_decode_init(state_.get(), bitrate_bps, 0);
        concealer_.reset();
    }

  private:
    std::unique_ptr<g722_decode_state_t, Free> state_;
    dsp::Concealer concealer_;
};

class G722Encoder final : public Encoder {
  public:
    explicit G722Encoder(const Format& format)
        : Encoder(format), state_(g722_encode_init(nullptr, bitrate_bps, 0)) {}

    bool works() const { return state_ != nullptr; }

    std::size_t encode(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) override {
        if (frame.size() > samples_per_byte * out.size()) return 0;
        return static_cast<std::size_t>(
            g722_encode(state_.get(), out.data(), frame.data(), static_cast<int>(frame.size())));
    }

    void reset() override { g722_encode_init(state_.get(), bitrate_bps, 0); }

  private:
    std::unique_ptr<g722_encode_state_t, Free> state_;
};

}  // namespace

std::unique_ptr<Decoder> make_g722_decoder(const Format& format) {
    auto made = std::make_unique<G722Decoder>(format);
    if (!made->works()) return nullptr;
    return made;
}

std::unique_ptr<Encoder> make_g722_encoder(const Format& format, const EncoderOptions&) {
    auto made = std::make_unique<G722Encoder>(format);
    if (!made->works()) return nullptr;
    return made;
}

}  // namespace trunkline::codec

#endif
