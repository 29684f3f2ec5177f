// Comfort noise (RFC 3389): any description makes noise that stays within its level, and is written as it was
// read.

#include <array>

#include "input.hpp"
#include "trunkline/codec/comfort_noise.hpp"

using namespace trunkline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    codec::NoiseGenerator generator;
    std::array<std::int16_t, 160> samples{};
    while (!input.empty()) {
        const auto payload = input.take(input.byte() & 0x1F);
        if (const auto parameters = codec::parse_noise(payload)) {
            fuzz::require(parameters->order <= codec::NoiseParameters::max_order &&
                          parameters->level_dbov <= 127);
            std::array<std::uint8_t, 32> written;
            const std::size_t made = codec::write_noise(*parameters, written);
            const auto again = codec::parse_noise(std::span(written).first(made));
            fuzz::require(again.has_value() && *again == *parameters);
            generator.set(*parameters);
        }
        generator.generate(samples);
    }
    return 0;
}
