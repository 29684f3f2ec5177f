#include "trunkline/dsp/resampler.hpp"

#if TRUNKLINE_HAVE_SPEEXDSP
#include <speex/speex_resampler.h>
#endif

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

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

#if TRUNKLINE_HAVE_SPEEXDSP

struct Resampler::Filter {
    std::unique_ptr<SpeexResamplerState, Free> state;
};

Resampler::Resampler(std::uint32_t from_hz, std::uint32_t to_hz) : from_hz_(from_hz), to_hz_(to_hz) {
    if (!can_resample(from_hz, to_hz)) throw std::invalid_argument("these rates cannot be converted");
    if (from_hz == to_hz) return;
    int error = RESAMPLER_ERR_SUCCESS;
    SpeexResamplerState* state = speex_resampler_init(1, from_hz, to_hz, quality, &error);
    if (state == nullptr) throw std::bad_alloc();
    filter_ = std::make_unique<Filter>();
    filter_->state.reset(state);
    begin();
}

void Resampler::begin() {
    if (filter_ == nullptr) return;
    speex_resampler_reset_mem(filter_->state.get());
    // The delay of the filter is left out at the beginning: `feed` waits for it instead.
    speex_resampler_skip_zeros(filter_->state.get());
}

void Resampler::feed(std::span<const std::int16_t> in, std::vector<std::int16_t>& out) {
    if (filter_ == nullptr) {
        out.insert(out.end(), in.begin(), in.end());
        return;
    }
    // With room for more than there can be, the filter takes all samples.
    const std::size_t begin = out.size();
    out.resize(begin + static_cast<std::size_t>(std::uint64_t{in.size()} * to_hz_ / from_hz_) + 2);
    out.resize(begin + convert(filter_->state.get(), in, std::span(out).subspan(begin)));
}

std::size_t Resampler::reach() const {
    if (filter_ == nullptr) return 0;
    return static_cast<std::size_t>(speex_resampler_get_input_latency(filter_->state.get())) + 1;
}

#else

struct Resampler::Filter {};

Resampler::Resampler(std::uint32_t from_hz, std::uint32_t to_hz) : from_hz_(from_hz), to_hz_(to_hz) {
    if (!can_resample(from_hz, to_hz)) throw std::invalid_argument("these rates cannot be converted");
}

void Resampler::begin() {}

void Resampler::feed(std::span<const std::int16_t> in, std::vector<std::int16_t>& out) {
    out.insert(out.end(), in.begin(), in.end());
}

std::size_t Resampler::reach() const {
    return 0;
}

#endif

Resampler::Resampler(Resampler&&) noexcept = default;
Resampler& Resampler::operator=(Resampler&&) noexcept = default;
Resampler::~Resampler() = default;

std::vector<std::int16_t> resample(std::span<const std::int16_t> in, std::uint32_t from_hz,
                                   std::uint32_t to_hz) {
    if (!can_resample(from_hz, to_hz)) return {};
    Resampler resampler(from_hz, to_hz);
    std::vector<std::int16_t> out;
    resampler.feed(in, out);
    resampler.feed(std::vector<std::int16_t>(resampler.reach()), out);
    out.resize((std::uint64_t{in.size()} * to_hz + from_hz - 1) / from_hz);
    return out;
}

}  // namespace trunkline::dsp
