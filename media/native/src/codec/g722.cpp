// G.722 at 64 kbit/s by libspandsp: 16 kHz samples, yet an RTP clock of 8000 (RFC 3551 4.5.2).

#if TRUNKLINE_HAVE_SPANDSP

// Each of these headers needs the one before it and does not include it: the order matters.
#include <cstdint>

#include <spandsp/telephony.h>

#include <spandsp/g722.h>

#include <spandsp/private/g722.h>

#include <array>

#include "makers.hpp"
#include "trunkline/dsp/concealer.hpp"

namespace trunkline::codec {

namespace {

constexpr int bitrate_bps = 64'000;
constexpr std::size_t samples_per_byte = 2;

/// Joins the two bands of a decoder to samples (G.722 4.4, figure 18).
///
/// The one of the library lets samples above full scale wrap around, which is heard as loud clicks; this one
/// limits them, as the recommendation has it.
class SynthesisFilter {
  public:
    /// Turn pairs of a lower and a higher band's sample, of 15 bits in the upper bits, into two samples each.
    void process(std::span<std::int16_t> samples) {
        for (std::size_t n = 0; n + 1 < samples.size(); n += 2) {
            const int low = samples[n] / 2;
            const int high = samples[n + 1] / 2;
            at_ = at_ == 0 ? taps - 1 : at_ - 1;
            // Held twice, so that the newest `taps` always lie in a row.
            sums_[at_] = sums_[at_ + taps] = low + high;
            differences_[at_] = differences_[at_ + taps] = low - high;
            int first = 0;
            int second = 0;
            for (std::size_t k = 0; k < taps; ++k) {
                first += coefficients[k] * differences_[at_ + k];
                second += coefficients[taps - 1 - k] * sums_[at_ + k];
            }
            samples[n] = limited(first >> 11);
            samples[n + 1] = limited(second >> 11);
        }
    }

    void reset() { *this = SynthesisFilter{}; }

  private:
    static constexpr std::size_t taps = 12;
    /// Every other coefficient of the filter, which is symmetric (G.722 table 11).
    static constexpr std::array<int, taps> coefficients{3,    -11,  12,  32,   -210, 951,
                                                        3876, -805, 362, -156, 53,   -11};

    static std::int16_t limited(int value) {
        return static_cast<std::int16_t>(std::clamp(value, -32768, 32767));
    }

    std::array<int, 2 * taps> sums_{};
    std::array<int, 2 * taps> differences_{};
    std::size_t at_ = 0;
};

struct Free {
    void operator()(g722_decode_state_t* state) const { g722_decode_free(state); }
    void operator()(g722_encode_state_t* state) const { g722_encode_free(state); }
};

class G722Decoder final : public Decoder {
  public:
    explicit G722Decoder(const Format& format)
        : Decoder(format), state_(g722_decode_init(nullptr, bitrate_bps, 0)), concealer_(format.rate_hz()) {
        if (works()) leave_bands_apart();
    }

    bool works() const { return state_ != nullptr; }

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        return bounded(samples_per_byte * payload.size());
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        const std::uint32_t count = samples(payload);
        if (count == 0 || count > out.size()) return 0;
        const int made =
            g722_decode(state_.get(), out.data(), payload.data(), static_cast<int>(payload.size()));
        filter_.process(out.first(static_cast<std::size_t>(made)));
        concealer_.received(out.first(static_cast<std::size_t>(made)));
        return static_cast<std::uint32_t>(made);
    }

    void conceal(std::span<std::int16_t> out) override { concealer_.conceal(out); }

    void reset() override {
        g722_decode_init(state_.get(), bitrate_bps, 0);
        leave_bands_apart();
        filter_.reset();
        concealer_.reset();
    }

  private:
    /// What the library calls test mode ends before its filter.
    void leave_bands_apart() { state_->itu_test_mode = 1; }

    std::unique_ptr<g722_decode_state_t, Free> state_;
    SynthesisFilter filter_;
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
