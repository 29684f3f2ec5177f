#include "trunkline/dsp/g711.hpp"

#include <array>
#include <cstddef>

namespace trunkline::dsp {

namespace {

constexpr int decode_mu(int code) {
    const int inverted = ~code & 0xFF;
    const int exponent = inverted >> 4 & 7;
    const int magnitude = (((inverted & 0x0F) << 3) + 0x84) << exponent;
    return (inverted & 0x80) != 0 ? 0x84 - magnitude : magnitude - 0x84;
}

constexpr int decode_a(int code) {
    const int toggled = code ^ 0x55;
    const int exponent = toggled >> 4 & 7;
    int magnitude = ((toggled & 0x0F) << 4) + 8;
    if (exponent > 0) magnitude = (magnitude + 0x100) << (exponent - 1);
    return (toggled & 0x80) != 0 ? magnitude : -magnitude;
}

/// From a sample of 14 bits, the precision mu-law has.
constexpr std::uint8_t encode_mu(int sample) {
    const int mask = sample < 0 ? 0x7F : 0xFF;
    int magnitude = (sample < 0 ? -sample : sample) + 33;
    if (magnitude > 8191) magnitude = 8191;
    int exponent = 0;
    while (magnitude >> (exponent + 6) != 0) {
        ++exponent;
    }
    const int code = exponent << 4 | (magnitude >> (exponent + 1) & 0x0F);
    return static_cast<std::uint8_t>(code ^ mask);
}

/// From a sample of 13 bits, the precision A-law has.
constexpr std::uint8_t encode_a(int sample) {
    const int mask = sample < 0 ? 0x55 : 0xD5;
    const int magnitude = sample < 0 ? -sample - 1 : sample;
    int exponent = 0;
    while (magnitude >> (exponent + 5) != 0) {
        ++exponent;
    }
    const int mantissa = magnitude >> (exponent > 1 ? exponent : 1) & 0x0F;
    return static_cast<std::uint8_t>((exponent << 4 | mantissa) ^ mask);
}

constexpr int mu_bits = 14;
constexpr int a_bits = 13;

template <int (*decode_one)(int)>
constexpr std::array<std::int16_t, 256> make_decoder() {
    std::array<std::int16_t, 256> table{};
    for (std::size_t code = 0; code < table.size(); ++code) {
        table[code] = static_cast<std::int16_t>(decode_one(static_cast<int>(code)));
    }
    return table;
}

template <int bits, std::uint8_t (*encode_one)(int)>
constexpr std::array<std::uint8_t, 1 << bits> make_encoder() {
    std::array<std::uint8_t, 1 << bits> table{};
    constexpr int half = 1 << (bits - 1);
    for (int sample = -half; sample < half; ++sample) {
        table[static_cast<std::size_t>(sample + half)] = encode_one(sample);
    }
    return table;
}

constinit const auto mu_decoder = make_decoder<decode_mu>();
constinit const auto a_decoder = make_decoder<decode_a>();
constinit const auto mu_encoder = make_encoder<mu_bits, encode_mu>();
constinit const auto a_encoder = make_encoder<a_bits, encode_a>();

std::uint8_t encode_one(Law law, std::int16_t sample) {
    const auto index = static_cast<std::size_t>(sample + 32768);
    return law == Law::mu ? mu_encoder[index >> (16 - mu_bits)] : a_encoder[index >> (16 - a_bits)];
}

std::array<std::uint8_t, 256> make_converter(Law from, Law to) {
    const auto& decoder = from == Law::mu ? mu_decoder : a_decoder;
    std::array<std::uint8_t, 256> table{};
    for (std::size_t code = 0; code < table.size(); ++code) {
        table[code] = encode_one(to, decoder[code]);
    }
    return table;
}

const std::array<std::uint8_t, 256> mu_to_a = make_converter(Law::mu, Law::a);
const std::array<std::uint8_t, 256> a_to_mu = make_converter(Law::a, Law::mu);

}  // namespace

void decode(Law law, std::span<const std::uint8_t> codes, std::int16_t* samples) {
    const auto& table = law == Law::mu ? mu_decoder : a_decoder;
    for (const std::uint8_t code : codes) {
        *samples++ = table[code];
    }
}

void encode(Law law, std::span<const std::int16_t> samples, std::uint8_t* codes) {
    for (const std::int16_t sample : samples) {
        *codes++ = encode_one(law, sample);
    }
}

void convert(Law from, Law to, std::span<std::uint8_t> codes) {
    if (from == to) return;
    const auto& table = from == Law::mu ? mu_to_a : a_to_mu;
    for (std::uint8_t& code : codes) {
        code = table[code];
    }
}

}  // namespace trunkline::dsp
