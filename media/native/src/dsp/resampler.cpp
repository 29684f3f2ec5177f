#include "trunkline/dsp/resampler.hpp"

#if TRUNKLINE_HAVE_SPEEXDSP
#include <speex/speex_resampler.h>
#endif

#include <algorithm>
#include <memory>

namespace trunkline::dsp {

namespace {

bool in_range(std::uint32_t rate_hz) {
    return rate_hz >= min_rate_hz && rate_hz <= max_rate_hz;
}

#if TRUNKLINE_HAVE_SPEEXDSP

/// Of 0 to 10: images 100 dB down, and nothing that is heard is lost.
constexpr int quality = 8;
constexpr std::size_t block_samples = 65'536;

struct Free {
    void operator()(SpeexResamplerState* state) const { speex_resampler_destroy(state); }
};

/// Put `in` through the filter until it is used up or `out` is full; returns the samples written.
std::size_t convert(SpeexResamplerState* state, std::span<const std::int16_t> in,
                    std::span<std::int16_t> out) {
    std::size_t written = 0;
    while (!in.empty() && written < out.size()) {
        auto taken = static_cast<spx_uint32_t>(std::min(in.size(), block_samples));
        auto made = static_cast<spx_uint32_t>(std::min(out.size() - written, block_samples));
        speex_resampler_process_int(state, 0, in.data(), &taken, out.data() + written, &made);
        if (taken == 0 && made == 0) break;
        in = in.subspan(taken);
        written += made;
    }
    return written;
}

std::vector<std::int16_t> filtered(std::span<const std::int16_t> in, std::uint32_t from_hz,
                                   std::uint32_t to_hz) {
    int error = RESAMPLER_ERR_SUCCESS;
    const std::unique_ptr<SpeexResamplerState, Free> state(
        speex_resampler_init(1, from_hz, to_hz, quality, &error));
    if (!state) return {};
    // The delay of the filter is left out at the beginning and asked for at the end.
    speex_resampler_skip_zeros(state.get());
    const std::uint64_t size = (std::uint64_t{in.size()} * to_hz + from_hz - 1) / from_hz;
    std::vector<std::int16_t> out(size);
    const std::size_t written = convert(state.get(), in, out);
    const std::vector<std::int16_t> tail(
        static_cast<std::size_t>(speex_resampler_get_input_latency(state.get())) + 1);
    convert(state.get(), tail, std::span(out).subspan(written));
    return out;
}

#endif

}  // namespace

bool can_resample(std::uint32_t from_hz, std::uint32_t to_hz) {
    if (!in_range(from_hz) || !in_range(to_hz)) return false;
#if TRUNKLINE_HAVE_SPEEXDSP
    return true;
#else
    return from_hz == to_hz;
#endif
}

std::vector<std::int16_t> resample(std::span<const std::int16_t> in, std::uint32_t from_hz,
                                   std::uint32_t to_hz) {
    if (!can_resample(from_hz, to_hz)) return {};
    if (from_hz == to_hz) return {in.begin(), in.end()};
#if TRUNKLINE_HAVE_SPEEXDSP
    return filtered(in, from_hz, to_hz);
#else
    return {};
#endif
}

}  // namespace trunkline::dsp
