#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace trunkline::dsp {

/// Format of a file's samples; all little-endian.
enum class PcmForm : std::uint8_t { u8, s16, s24, s32, f32, f64, alaw, mulaw };

/// The form of that name ("u8", "s16", ...); nothing for another.
std::optional<PcmForm> pcm_form(std::string_view name);

/// Bytes of one sample.
std::size_t sample_bytes(PcmForm form);

/// Whole samples as 16 bits, rounded and held within range; what is no number becomes silence.
std::vector<std::int16_t> to_linear(PcmForm form, std::span<const std::uint8_t> bytes);

/// The mean of two channels whose samples alternate.
std::vector<std::int16_t> mix_stereo(std::span<const std::int16_t> samples);

}  // namespace trunkline::dsp
