#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "trunkline/dsp/pcm.hpp"

using namespace trunkline::dsp;
using Samples = std::vector<std::int16_t>;

namespace {

template <typename Value>
std::vector<std::uint8_t> bytes_of(const std::vector<Value>& values) {
    std::vector<std::uint8_t> bytes(values.size() * sizeof(Value));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

}  // namespace

TEST_CASE("integers of every width become 16 bits, rounded and within range") {
    CHECK(to_linear(PcmForm::u8, std::vector<std::uint8_t>{0, 128, 255}) == Samples{-32768, 0, 32512});
    CHECK(to_linear(PcmForm::s16, bytes_of<std::int16_t>({-32768, 5, 32767})) == Samples{-32768, 5, 32767});
    const std::vector<std::uint8_t> s24{0x00, 0x00, 0x80, 0x7F, 0x01, 0x00,
                                        0x80, 0x01, 0x00, 0xFF, 0xFF, 0x7F};
    CHECK(to_linear(PcmForm::s24, s24) == Samples{-32768, 1, 2, 32767});
    CHECK(to_linear(PcmForm::s32, bytes_of<std::int32_t>({INT32_MIN, -1, 0x00018000, INT32_MAX})) ==
          Samples{-32768, 0, 2, 32767});
}

TEST_CASE("floating point is held within range, and what is no number is silence") {
    const float inf = std::numeric_limits<float>::infinity();
    CHECK(to_linear(PcmForm::f32, bytes_of<float>({-1, -0.5F, 0, 0.5F, 1, 7, -inf, std::nanf("")})) ==
          Samples{-32768, -16384, 0, 16384, 32767, 32767, -32768, 0});
    CHECK(to_linear(PcmForm::f64, bytes_of<double>({-2, 0.25, 1e300})) == Samples{-32768, 8192, 32767});
}

TEST_CASE("the laws of G.711 are decoded") {
    CHECK(to_linear(PcmForm::mulaw, std::vector<std::uint8_t>{0xFF, 0x80, 0x00}) ==
          Samples{0, 32124, -32124});
    CHECK(to_linear(PcmForm::alaw, std::vector<std::uint8_t>{0xD5, 0xAA, 0x2A}) == Samples{8, 32256, -32256});
}

TEST_CASE("what ends within a sample is left out") {
    CHECK(to_linear(PcmForm::s24, std::vector<std::uint8_t>(5)).size() == 1);
    CHECK(to_linear(PcmForm::f64, std::vector<std::uint8_t>(7)).empty());
    CHECK(mix_stereo(Samples{1, 2, 3}).size() == 1);
}

TEST_CASE("two channels become their mean") {
    CHECK(mix_stereo(Samples{10, -30, 32767, 32767, -32768, -32768, 1, 0}) == Samples{-10, 32767, -32768, 0});
}

TEST_CASE("forms have names") {
    CHECK(pcm_form("s24") == PcmForm::s24);
    CHECK(pcm_form("mulaw") == PcmForm::mulaw);
    CHECK(!pcm_form("S24"));
    CHECK(!pcm_form(""));
}
