#include "trunkline/dsp/period.hpp"

#include <cmath>

namespace trunkline::dsp {

namespace {

float product(std::span<const std::int16_t> one, const std::int16_t* other) {
    std::int64_t sum = 0;
    for (std::size_t n = 0; n < one.size(); ++n) {
        sum += std::int32_t{one[n]} * other[n];
    }
    return static_cast<float>(sum);
}

float square(std::int16_t sample) {
    return static_cast<float>(std::int32_t{sample} * sample);
}

}  // namespace

Period find_period(std::span<const std::int16_t> sound, std::size_t compared, std::size_t shortest,
                   std::size_t longest) {
    Period best;
    if (compared == 0 || shortest > longest || sound.size() < compared + longest) return best;
    const std::span<const std::int16_t> model = sound.first(compared);
    const float model_energy = product(model, model.data());
    float energy = product(sound.subspan(shortest, compared), sound.data() + shortest);
    for (std::size_t lag = shortest; lag <= longest; ++lag) {
        const float likeness = product(model, sound.data() + lag) / std::sqrt(model_energy * energy + 1.0F);
        if (best.samples == 0 || likeness > best.likeness) best = {lag, likeness};
        if (lag < longest) energy += square(sound[lag + compared]) - square(sound[lag]);
        if (energy < 0) energy = 0;
    }
    return best;
}

void cross_fade(std::span<const std::int16_t> from, std::span<const std::int16_t> to,
                std::span<std::int16_t> out) {
    const auto length = static_cast<std::int32_t>(out.size());
    for (std::int32_t n = 0; n < length; ++n) {
        const auto at = static_cast<std::size_t>(n);
        out[at] = static_cast<std::int16_t>((from[at] * (length - n) + to[at] * n) / length);
    }
}

}  // namespace trunkline::dsp
