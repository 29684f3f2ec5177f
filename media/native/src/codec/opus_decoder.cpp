// Receiving Opus by libopus, at the 16 kHz of the engine and one channel, whatever the sender uses (RFC 7587
// 3).

#if TRUNKLINE_HAVE_OPUS

#include <opus/opus.h>

#include <array>

#include "makers.hpp"

namespace trunkline::codec {

namespace {

/// The decoder conceals in steps of 2.5 ms (RFC 6716 4.4).
constexpr std::size_t step_samples = 40;

struct Free {
    void operator()(OpusDecoder* decoder) const { opus_decoder_destroy(decoder); }
};

/// True if the first frame of a packet carries its predecessor once more (LBRR, RFC 6716 4.2.3, 4.2.4).
bool carries_predecessor(std::span<const std::uint8_t> packet) {
    constexpr std::uint8_t celt_only = 0x80;  // Such frames never do.
    if (packet.empty() || (packet[0] & celt_only) != 0) return false;
    std::array<const unsigned char*, 48> frames{};
    std::array<opus_int16, 48> sizes{};
    const int count = opus_packet_parse(packet.data(), static_cast<opus_int32>(packet.size()), nullptr,
                                        frames.data(), sizes.data(), nullptr);
    if (count <= 0 || sizes[0] <= 0) return false;
    // A flag of voice activity for each 20 ms of the mid channel comes first, then that of the LBRR frames;
    // then the same for the side channel.
    const int span_samples = opus_packet_get_samples_per_frame(packet.data(), 16000);
    const int parts = span_samples > 320 ? span_samples / 320 : 1;
    const int channels = opus_packet_get_nb_channels(packet.data());
    const std::uint8_t flags = frames[0][0];
    return (flags >> (7 - parts) & 1) != 0 || (channels == 2 && (flags >> (6 - 2 * parts) & 1) != 0);
}

class OpusAudioDecoder final : public Decoder {
  public:
    explicit OpusAudioDecoder(const Format& format) : Decoder(format) {
        int error = OPUS_OK;
        decoder_.reset(opus_decoder_create(static_cast<opus_int32>(format.rate_hz()), 1, &error));
    }

    bool works() const { return decoder_ != nullptr; }

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        if (payload.empty()) return 0;
        const int count = opus_packet_get_nb_samples(payload.data(), static_cast<opus_int32>(payload.size()),
                                                     static_cast<opus_int32>(format().rate_hz()));
        return count > 0 ? bounded(static_cast<std::size_t>(count)) : 0;
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        const std::uint32_t count = samples(payload);
        if (count == 0 || count > out.size()) return 0;
        rest_.begin = rest_.end = 0;
        const int made = run(payload, out.data(), out.size(), false);
        return made > 0 ? static_cast<std::uint32_t>(made) : 0;
    }

    std::uint32_t recover(std::span<const std::uint8_t> following, std::span<std::int16_t> out) override {
        const std::size_t size = out.size() / step_samples * step_samples;
        if (size == 0 || size > max_packet_samples || !carries_predecessor(following)) return 0;
        rest_.begin = rest_.end = 0;
        const int made = run(following, out.data(), size, true);
        return made > 0 ? static_cast<std::uint32_t>(made) : 0;
    }

    void conceal(std::span<std::int16_t> out) override {
        while (!out.empty()) {
            if (rest_.begin == rest_.end) conceal_step();
            const std::size_t part = std::min(out.size(), rest_.end - rest_.begin);
            std::copy_n(rest_.samples.begin() + static_cast<std::ptrdiff_t>(rest_.begin), part, out.begin());
            rest_.begin += part;
            out = out.subspan(part);
        }
    }

    void reset() override {
        opus_decoder_ctl(decoder_.get(), OPUS_RESET_STATE);
        rest_.begin = rest_.end = 0;
    }

  private:
    /// Concealed samples beyond those asked for.
    struct Rest {
        std::array<std::int16_t, 4 * step_samples> samples{};
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    int run(std::span<const std::uint8_t> packet, std::int16_t* out, std::size_t room, bool predecessor) {
        return opus_decode(decoder_.get(), packet.data(), static_cast<opus_int32>(packet.size()), out,
                           static_cast<int>(room), predecessor ? 1 : 0);
    }

    void conceal_step() {
        const int made = run({}, rest_.samples.data(), rest_.samples.size(), false);
        // Concealing cannot fail with this size; silence is what remains if it did.
        if (made <= 0) rest_.samples.fill(0);
        rest_.begin = 0;
        rest_.end = made > 0 ? static_cast<std::size_t>(made) : rest_.samples.size();
    }

    std::unique_ptr<OpusDecoder, Free> decoder_;
    Rest rest_;
};

}  // namespace

std::unique_ptr<Decoder> make_opus_decoder(const Format& format) {
    auto made = std::make_unique<OpusAudioDecoder>(format);
    if (!made->works()) return nullptr;
    return made;
}

}  // namespace trunkline::codec

#endif
