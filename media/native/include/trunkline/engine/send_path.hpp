#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trunkline/codec/codec.hpp"
#include "trunkline/codec/comfort_noise.hpp"
#include "trunkline/engine/settings.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// Gathers chunks of any length to frames of the packet time that is sent.
class FrameGatherer {
  public:
    explicit FrameGatherer(std::uint32_t rate_hz) : samples_(2 * rate_hz / 1000 * codec::max_packet_ms) {}

    /// Append samples, at most 60 ms; what there is no room for is dropped.
    void append(std::span<const std::int16_t> samples);

    /// Take a frame; false when there is not enough for one.
    bool take(std::span<std::int16_t> frame);

    std::size_t size() const { return size_; }
    void clear() { size_ = 0; }

  private:
    std::vector<std::int16_t> samples_;
    std::size_t size_ = 0;
};

/// Encoder of a stream for audio that is not relayed.
///
/// Made by the control thread for one set of media settings, when something first wants to be sent.
class SendPath final : public util::Node {
  public:
    explicit SendPath(const MediaSettings& settings);

    /// True if it serves these settings too.
    bool serves(const MediaSettings& settings) const {
        return settings.format == encoder_->format() && settings.encoder == options_;
    }

    std::uint32_t rate_hz() const { return encoder_->format().rate_hz(); }
    codec::Encoder& encoder() { return *encoder_; }

    /// Sound is sent again.
    void end_silence() {
        silent_ms = 0;
        relayed_noise.reset();
    }

    /// The linked stream described the noise of its pause: the next description is due so much later.
    void relay_noise(const std::optional<codec::NoiseParameters>& parameters, std::uint32_t interval_ms) {
        relayed_noise = parameters;
        silent_ms = std::max(silent_ms, std::uint32_t{1});
        noise_due_ms = silent_ms + interval_ms;
    }

    /// The noise of the present pause.
    codec::NoiseParameters noise_described() const { return relayed_noise.value_or(noise.parameters()); }

    /// Record the share of our packets that the far end lost since its report before, in 1/256.
    void note_loss(std::uint8_t fraction);

    FrameGatherer gathered;                               ///< Of the linked stream's audio.
    codec::NoiseMeter noise;                              ///< Of the linked stream's pauses.
    std::optional<codec::NoiseParameters> relayed_noise;  ///< The same as its far end described it.
    std::uint32_t silent_ms = 0;                          ///< How long there was nothing but silence to send.
    std::uint32_t noise_due_ms = 0;  ///< When, on the same count, comfort noise is described next.

  private:
    codec::EncoderOptions options_;
    std::unique_ptr<codec::Encoder> encoder_;
    std::uint32_t loss_pct_;  ///< What the encoder was told of.
};

}  // namespace trunkline::engine
