// Sending Opus by libopus: one channel of wideband speech (RFC 7587 3).

#if TRUNKLINE_HAVE_OPUS

#include <opus/opus.h>

#include <array>

#include "makers.hpp"

namespace trunkline::codec {

namespace {

/// Higher ones cost twice the time for a difference that speech at these rates hardly shows.
constexpr int complexity = 5;
constexpr std::uint32_t min_bitrate_bps = 6'000;
constexpr std::uint32_t max_bitrate_bps = 128'000;
/// Packets of up to 2 bytes tell nothing but silence and need not be sent.
constexpr opus_int32 silent_bytes = 2;
constexpr std::size_t max_frames = 6;
constexpr std::size_t max_frame_bytes = 400;

struct Free {
    void operator()(OpusEncoder* encoder) const { opus_encoder_destroy(encoder); }
    void operator()(OpusRepacketizer* packer) const { opus_repacketizer_destroy(packer); }
};

opus_int32 bandwidth_for(std::uint32_t playback_hz) {
    if (playback_hz <= 8000) return OPUS_BANDWIDTH_NARROWBAND;
    if (playback_hz <= 12000) return OPUS_BANDWIDTH_MEDIUMBAND;
    return OPUS_BANDWIDTH_WIDEBAND;
}

/// True if one frame of Opus can be that long (RFC 6716 2.1.4), at 16 kHz.
bool is_one_frame(std::size_t samples) {
    return samples == 160 || samples == 320 || samples == 640 || samples == 960;
}

class OpusAudioEncoder final : public Encoder {
  public:
    OpusAudioEncoder(const Format& format, const EncoderOptions& options) : Encoder(format) {
        int error = OPUS_OK;
        encoder_.reset(
            opus_encoder_create(static_cast<opus_int32>(format.rate_hz()), 1, OPUS_APPLICATION_VOIP, &error));
        packer_.reset(opus_repacketizer_create());
        if (works()) set(options);
    }

    bool works() const { return encoder_ != nullptr && packer_ != nullptr; }

    std::size_t encode(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) override {
        opus_int32 size = 0;
        if (is_one_frame(frame.size())) {
            size = run(frame, out);
        } else {
            size = pack(frame, out);
        }
        return size > silent_bytes ? static_cast<std::size_t>(size) : 0;
    }

    void expect_loss(std::uint32_t percent) override {
        const auto bounded_pct = static_cast<opus_int32>(std::min(percent, std::uint32_t{100}));
        opus_encoder_ctl(encoder_.get(), OPUS_SET_PACKET_LOSS_PERC(bounded_pct));
    }

    void reset() override { opus_encoder_ctl(encoder_.get(), OPUS_RESET_STATE); }

  private:
    void set(const EncoderOptions& options) {
        OpusEncoder* const encoder = encoder_.get();
        const std::uint32_t bitrate_bps = std::clamp(options.bitrate_bps, min_bitrate_bps, max_bitrate_bps);
        opus_encoder_ctl(encoder, OPUS_SET_BITRATE(static_cast<opus_int32>(bitrate_bps)));
        opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(options.fec ? 1 : 0));
        expect_loss(options.expected_loss_pct);
        opus_encoder_ctl(encoder, OPUS_SET_DTX(options.dtx ? 1 : 0));
        opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(complexity));
        opus_encoder_ctl(encoder, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
        // One bandwidth for all, so that frames can be joined in one packet whatever their content.
        opus_encoder_ctl(encoder, OPUS_SET_BANDWIDTH(bandwidth_for(options.max_playback_hz)));
    }

    opus_int32 run(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) {
        return opus_encode(encoder_.get(), frame.data(), static_cast<int>(frame.size()), out.data(),
                           static_cast<opus_int32>(out.size()));
    }

    /// 30 and 50 ms are no lengths of one frame: a packet of frames of 10 ms (RFC 6716 3.2.5).
    opus_int32 pack(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) {
        constexpr std::size_t part_samples = 160;
        const std::size_t parts = frame.size() / part_samples;
        if (parts == 0 || parts > max_frames || frame.size() % part_samples != 0) return 0;
        opus_repacketizer_init(packer_.get());
        bool silent = true;
        for (std::size_t n = 0; n < parts; ++n) {
            const opus_int32 size = run(frame.subspan(n * part_samples, part_samples), rooms_[n]);
            if (size <= 0) return 0;
            silent = silent && size <= silent_bytes;
            // Frames of different configurations cannot share a packet; what came before is sent alone.
            if (opus_repacketizer_cat(packer_.get(), rooms_[n].data(), size) != OPUS_OK) break;
        }
        if (silent) return 0;
        return opus_repacketizer_out(packer_.get(), out.data(), static_cast<opus_int32>(out.size()));
    }

    std::unique_ptr<OpusEncoder, Free> encoder_;
    std::unique_ptr<OpusRepacketizer, Free> packer_;
    std::array<std::array<std::uint8_t, max_frame_bytes>, max_frames> rooms_{};
};

}  // namespace

std::unique_ptr<Encoder> make_opus_encoder(const Format& format, const EncoderOptions& options) {
    auto made = std::make_unique<OpusAudioEncoder>(format, options);
    if (!made->works()) return nullptr;
    return made;
}

}  // namespace trunkline::codec

#endif
