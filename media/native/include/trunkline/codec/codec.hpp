#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/codec/format.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::codec {

/// Turns payloads of one source, in their order, into linear samples at `Format::rate_hz`.
///
/// Made and destroyed by the control thread; nothing here allocates, locks or throws.
class Decoder : public util::Node {
  public:
    explicit Decoder(Format format) : format_(format) {}

    const Format& format() const { return format_; }

    /// Samples, at the engine's rate, that a payload stands for; 0 for one that cannot be decoded.
    virtual std::uint32_t samples(std::span<const std::uint8_t> payload) const = 0;

    /// Decode a payload. Returns the samples written, 0 for a payload that is broken.
    virtual std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) = 0;

    /// Recover the packet lost before `following` from what that carries of it (Opus in-band FEC). Returns
    /// the samples written; 0 when it carries nothing, and `conceal` must do.
    virtual std::uint32_t recover(std::span<const std::uint8_t> following, std::span<std::int16_t> out) {
        (void)following;
        (void)out;
        return 0;
    }

    /// Fill `out` with sound that hides a loss: the last sound goes on and fades away.
    virtual void conceal(std::span<std::int16_t> out) = 0;

    /// Forget the past: another source begins.
    virtual void reset() = 0;

  private:
    Format format_;
};

/// Settings of an encoder besides its format. Fields that a codec does not use are ignored.
struct EncoderOptions {
    std::uint32_t bitrate_bps = 32'000;
    bool fec = true;                         ///< In-band forward error correction, when the far end takes it.
    bool dtx = false;                        ///< Send nothing during silence.
    std::uint32_t expected_loss_pct = 0;     ///< Without loss, FEC sends nothing twice.
    std::uint32_t max_playback_hz = 16'000;  ///< The far end plays no higher rate (RFC 7587 6.1).

    bool operator==(const EncoderOptions&) const = default;
};

/// Turns linear samples at `Format::rate_hz` into payloads.
class Encoder : public util::Node {
  public:
    explicit Encoder(Format format) : format_(format) {}

    const Format& format() const { return format_; }

    /// Encode one frame of 10 to 60 ms. Returns the bytes written; 0 when nothing need be sent (DTX).
    virtual std::size_t encode(std::span<const std::int16_t> frame, std::span<std::uint8_t> out) = 0;

    /// Encode a frame of so many samples of silence, as `encode` does. A call in which nobody speaks yet
    /// sends little else.
    virtual std::size_t encode_silence(std::size_t samples, std::span<std::uint8_t> out) {
        static constexpr std::array<std::int16_t, max_packet_samples> silence{};
        return encode(std::span(silence).first(samples), out);
    }

    /// Tell how much of what is sent the far end loses: error correction is dimensioned for it.
    virtual void expect_loss(std::uint32_t percent) { (void)percent; }

    /// Forget the past.
    virtual void reset() = 0;

  private:
    Format format_;
};

/// True if the codec was built in and has this clock.
bool supported(const Format& format);

/// Make a decoder; null for a format that is not supported. Control thread only.
std::unique_ptr<Decoder> make_decoder(const Format& format);

/// Make an encoder; null for a format that is not supported. Control thread only.
std::unique_ptr<Encoder> make_encoder(const Format& format, const EncoderOptions& options = {});

}  // namespace trunkline::codec
