#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "support.hpp"
#include "trunkline/codec/comfort_noise.hpp"

using namespace trunkline;
using codec::NoiseGenerator;
using codec::NoiseMeter;
using codec::NoiseParameters;

namespace {

std::vector<std::int16_t> generated(NoiseGenerator& generator, std::size_t samples) {
    std::vector<std::int16_t> out(samples);
    for (std::size_t at = 0; at < samples; at += 160) {
        generator.generate(std::span(out).subspan(at, std::min<std::size_t>(160, samples - at)));
    }
    return out;
}

double level_dbov(std::span<const std::int16_t> samples) {
    return 20 * std::log10(32767 / tests::rms(samples));
}

/// Correlation of neighbouring samples, -1 to 1: positive for noise of low pitch.
double neighbours(std::span<const std::int16_t> samples) {
    double sum = 0;
    double power = 0;
    for (std::size_t n = 1; n < samples.size(); ++n) {
        sum += static_cast<double>(samples[n]) * samples[n - 1];
        power += static_cast<double>(samples[n]) * samples[n];
    }
    return sum / power;
}

}  // namespace

TEST_CASE("comfort noise: payloads as RFC 3389 draws them") {
    const std::array<std::uint8_t, 1> level{0x41};
    const auto plain = codec::parse_noise(level);
    REQUIRE(plain);
    CHECK(plain->level_dbov == 65);
    CHECK(plain->order == 0);
    const std::array<std::uint8_t, 4> shaped{0xC1, 0, 127, 254};
    const auto found = codec::parse_noise(shaped);
    REQUIRE(found);
    CHECK(found->level_dbov == 65);  // The top bit is none of the level's.
    CHECK(found->order == 3);
    std::array<std::uint8_t, 4> written{};
    CHECK(codec::write_noise(*found, written) == 4);
    CHECK(written == std::array<std::uint8_t, 4>{0x41, 0, 127, 254});
    CHECK(codec::write_noise(*found, std::span(written).first(3)) == 0);
}

TEST_CASE("comfort noise: hostile payloads") {
    CHECK_FALSE(codec::parse_noise({}));
    const std::vector<std::uint8_t> reserved{10, 100, 255, 100};
    CHECK(codec::parse_noise(reserved)->order == 1);
    std::mt19937 random(3);
    NoiseGenerator generator;
    std::vector<std::int16_t> out(160);
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::uint8_t> payload(1 + random() % 40);
        for (auto& byte : payload) {
            byte = static_cast<std::uint8_t>(random());
        }
        const auto parameters = codec::parse_noise(payload);
        REQUIRE(parameters);
        CHECK(parameters->order <= NoiseParameters::max_order);
        generator.set(*parameters);
        generator.generate(out);
    }
    // Not even filters at the edge of stability ring on.
    generator.set({});
    generated(generator, 16000);
    CHECK(tests::rms(generated(generator, 1600)) < 1);
}

TEST_CASE("comfort noise: generated at its level, white or shaped") {
    for (const std::uint8_t level : {20, 40, 60}) {
        for (const std::uint8_t tilt : {127, 40, 220}) {
            NoiseParameters parameters;
            parameters.level_dbov = level;
            parameters.order = 1;
            parameters.reflection[0] = tilt;
            NoiseGenerator generator;
            generator.set(parameters);
            generated(generator, 4000);
            const auto noise = generated(generator, 32000);
            CAPTURE(static_cast<int>(level));
            CAPTURE(static_cast<int>(tilt));
            CHECK(std::abs(level_dbov(noise) - level) < 1);
            CHECK(std::abs(neighbours(noise) + 258.0 * (tilt - 127) / 32768) < 0.05);
        }
    }
    NoiseGenerator generator;
    generator.set({});
    CHECK(tests::rms(generated(generator, 1600)) == 0);
}

TEST_CASE("comfort noise: what is measured is what was generated") {
    NoiseParameters sent;
    sent.level_dbov = 45;
    sent.order = 4;
    sent.reflection = {60, 150, 110, 130};
    NoiseGenerator generator;
    generator.set(sent);
    generated(generator, 4000);
    NoiseMeter meter;
    CHECK(meter.parameters().level_dbov == 127);
    for (int n = 0; n < 20; ++n) {
        meter.observe(generated(generator, 1600));
    }
    const auto found = meter.parameters(4);
    CHECK(std::abs(found.level_dbov - sent.level_dbov) <= 1);
    REQUIRE(found.order == 4);
    for (std::size_t n = 0; n < 4; ++n) {
        CHECK(std::abs(found.reflection[n] - sent.reflection[n]) < 12);
    }
    CHECK(meter.parameters().order == 0);
    CHECK(meter.parameters(99).order == NoiseParameters::max_order);
    meter.reset();
    meter.observe(std::vector<std::int16_t>(160));
    CHECK(meter.parameters(4).level_dbov == 127);
}

TEST_CASE("comfort noise: a new level is no step") {
    NoiseGenerator generator;
    NoiseParameters loud;
    loud.level_dbov = 20;
    generator.set(loud);
    const auto begun = generated(generator, 160);
    CHECK(tests::rms(std::span(begun).first(4)) < 32767 * 0.1 * 0.2);
    generated(generator, 1600);
    NoiseParameters faint;
    faint.level_dbov = 60;
    generator.set(faint);
    const auto falling = generated(generator, 1600);
    CHECK(tests::rms(std::span(falling).first(8)) > 1000);
    CHECK(tests::rms(std::span(falling).last(160)) < 66);
}
