#include "trunkline/dsp/pcm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::dsp {

namespace {

constexpr std::array<std::pair<std::string_view, PcmForm>, 8> names{{{"u8", PcmForm::u8},
                                                                     {"s16", PcmForm::s16},
                                                                     {"s24", PcmForm::s24},
                                                                     {"s32", PcmForm::s32},
                                                                     {"f32", PcmForm::f32},
                                                                     {"f64", PcmForm::f64},
                                                                     {"alaw", PcmForm::alaw},
                                                                     {"mulaw", PcmForm::mulaw}}};

template <typename Value>
Value read(const std::uint8_t* bytes) {
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

/// The upper 16 of 32 bits, rounded.
std::int16_t narrow(std::int32_t wide) {
    return static_cast<std::int16_t>(std::min<std::int64_t>((std::int64_t{wide} + 0x8000) >> 16, 32767));
}

std::int16_t from_float(double value) {
    if (std::isnan(value)) return 0;
    return static_cast<std::int16_t>(std::lrint(std::clamp(value * 32768.0, -32768.0, 32767.0)));
}

std::int16_t sample_of(PcmForm form, const std::uint8_t* at) {
    switch (form) {
        case PcmForm::u8:
            return static_cast<std::int16_t>((at[0] - 128) * 256);
        case PcmForm::s16:
            return read<std::int16_t>(at);
        case PcmForm::s24: {
            const std::uint32_t high = std::uint32_t{at[2]} << 24 | std::uint32_t{at[1]} << 16 | at[0] << 8;
            return narrow(static_cast<std::int32_t>(high));
        }
        case PcmForm::s32:
            return narrow(read<std::int32_t>(at));
        case PcmForm::f32:
            return from_float(static_cast<double>(read<float>(at)));
        case PcmForm::f64:
            return from_float(read<double>(at));
        default:
            return 0;
    }
}

}  // namespace

std::optional<PcmForm> pcm_form(std::string_view name) {
    for (const auto& [known, form] : names) {
        if (known == name) return form;
    }
    return std::nullopt;
}

std::size_t sample_bytes(PcmForm form) {
    switch (form) {
        case PcmForm::s16:
            return 2;
        case PcmForm::s24:
            return 3;
        case PcmForm::s32:
        case PcmForm::f32:
            return 4;
        case PcmForm::f64:
            return 8;
        default:
            return 1;
    }
}

std::vector<std::int16_t> to_linear(PcmForm form, std::span<const std::uint8_t> bytes) {
    const std::size_t size = sample_bytes(form);
    std::vector<std::int16_t> samples(bytes.size() / size);
    if (form == PcmForm::alaw || form == PcmForm::mulaw) {
        decode(form == PcmForm::alaw ? Law::a : Law::mu, bytes, samples.data());
        return samples;
    }
    for (std::size_t n = 0; n < samples.size(); ++n) {
        samples[n] = sample_of(form, bytes.data() + n * size);
    }
    return samples;
}

std::vector<std::int16_t> mix_stereo(std::span<const std::int16_t> samples) {
    std::vector<std::int16_t> mixed(samples.size() / 2);
    for (std::size_t n = 0; n < mixed.size(); ++n) {
        mixed[n] = static_cast<std::int16_t>((samples[2 * n] + samples[2 * n + 1]) >> 1);
    }
    return mixed;
}

}  // namespace trunkline::dsp
