#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "support.hpp"
#include "trunkline/codec/codec.hpp"

#if TRUNKLINE_HAVE_OPUS

#include <opus/opus.h>

using namespace trunkline;
using codec::Codec;

namespace {

constexpr codec::Format opus{Codec::opus, 48000};

/// Something like a voice: a low tone with harmonics whose pitch and level sway.
std::vector<std::int16_t> voice(std::size_t samples) {
    std::vector<std::int16_t> sound(samples);
    double phase = 0;
    for (std::size_t n = 0; n < samples; ++n) {
        const double time_s = static_cast<double>(n) / 16000;
        phase += 2 * std::numbers::pi * (140 + 20 * std::sin(9 * time_s)) / 16000;
        double value = 0;
        for (int harmonic = 1; harmonic <= 8; ++harmonic) {
            value += std::sin(harmonic * phase) / harmonic;
        }
        sound[n] = static_cast<std::int16_t>(4000 * (1.2 + std::sin(17 * time_s)) * value / 2);
    }
    return sound;
}

std::vector<std::uint8_t> encoded(codec::Encoder& encoder, std::span<const std::int16_t> frame) {
    std::vector<std::uint8_t> payload(codec::max_payload_bytes);
    payload.resize(encoder.encode(frame, payload));
    return payload;
}

/// How much of the difference's power the reference has, in decibels.
double likeness_db(std::span<const std::int16_t> heard, std::span<const std::int16_t> reference) {
    double signal = 1;
    double noise = 1;
    for (std::size_t n = 0; n < heard.size(); ++n) {
        const double difference = heard[n] - reference[n];
        signal += static_cast<double>(reference[n]) * reference[n];
        noise += difference * difference;
    }
    return 10 * std::log10(signal / noise);
}

}  // namespace

TEST_CASE("opus: a lost packet is recovered from the one that follows") {
    const auto sound = voice(16000);
    const auto encoder = codec::make_encoder(opus);
    encoder->expect_loss(5);
    const auto whole = codec::make_decoder(opus);
    const auto recovering = codec::make_decoder(opus);
    const auto concealing = codec::make_decoder(opus);
    std::vector<std::vector<std::uint8_t>> packets;
    for (std::size_t at = 0; at + 320 <= sound.size(); at += 320) {
        packets.push_back(encoded(*encoder, std::span(sound).subspan(at, 320)));
    }
    std::vector<std::int16_t> reference(320);
    std::vector<std::int16_t> recovered(320);
    std::vector<std::int16_t> concealed(320);
    int times = 0;
    double gain_db = 0;
    for (std::size_t n = 0; n + 1 < packets.size(); ++n) {
        whole->decode(packets[n], reference);
        if (n % 5 != 4) {
            recovering->decode(packets[n], recovered);
            concealing->decode(packets[n], concealed);
            continue;
        }
        if (recovering->recover(packets[n + 1], recovered) == 0) recovering->conceal(recovered);
        concealing->conceal(concealed);
        gain_db += likeness_db(recovered, reference) - likeness_db(concealed, reference);
        ++times;
    }
    CHECK(gain_db / times > 4);
}

TEST_CASE("opus: without error correction nothing is recovered") {
    codec::EncoderOptions options;
    options.fec = false;
    options.expected_loss_pct = 20;
    const auto encoder = codec::make_encoder(opus, options);
    const auto decoder = codec::make_decoder(opus);
    const auto sound = voice(16000);
    std::vector<std::int16_t> out(320);
    for (std::size_t at = 0; at + 320 <= sound.size(); at += 320) {
        CHECK(decoder->recover(encoded(*encoder, std::span(sound).subspan(at, 320)), out) == 0);
    }
}

TEST_CASE("opus: where nothing is lost, nothing is sent twice") {
    const auto encoder = codec::make_encoder(opus);
    const auto decoder = codec::make_decoder(opus);
    const auto sound = voice(16000);
    std::vector<std::int16_t> out(320);
    const auto recoverable = [&] {
        int count = 0;
        for (std::size_t at = 0; at + 320 <= sound.size(); at += 320) {
            const auto packet = encoded(*encoder, std::span(sound).subspan(at, 320));
            if (decoder->recover(packet, out) > 0) ++count;
        }
        return count;
    };
    CHECK(recoverable() == 0);
    encoder->expect_loss(3);
    CHECK(recoverable() > 30);
    encoder->expect_loss(0);
    CHECK(recoverable() <= 1);
}

TEST_CASE("opus: silence need not be sent") {
    codec::EncoderOptions options;
    options.dtx = true;
    for (const std::size_t frame : {160U, 320U, 480U, 640U, 800U, 960U}) {
        const auto encoder = codec::make_encoder(opus, options);
        const std::vector<std::int16_t> silence(frame);
        std::size_t unsent = 0;
        constexpr std::size_t rounds = 200;
        for (std::size_t n = 0; n < rounds; ++n) {
            if (encoded(*encoder, silence).empty()) ++unsent;
        }
        CAPTURE(frame);
        CHECK(unsent > rounds / 2);
        // Speech that begins again is sent at once.
        CHECK(encoded(*encoder, voice(frame)).size() > 10);
    }
}

TEST_CASE("opus: what was asked of the encoder shows in the packets") {
    const auto sound = voice(32000);
    const auto mean_bytes = [&](const codec::EncoderOptions& options) {
        const auto encoder = codec::make_encoder(opus, options);
        std::size_t bytes = 0;
        for (std::size_t at = 0; at + 320 <= sound.size(); at += 320) {
            bytes += encoded(*encoder, std::span(sound).subspan(at, 320)).size();
        }
        return static_cast<double>(bytes) / 100;
    };
    codec::EncoderOptions options;
    options.fec = false;
    double before = 0;
    for (const std::uint32_t bitrate_bps : {8'000U, 12'000U, 16'000U, 24'000U}) {
        options.bitrate_bps = bitrate_bps;
        const double bytes = mean_bytes(options);
        CHECK(bytes < bitrate_bps / 400.0 * 1.1);
        CHECK(bytes > before * 1.05);
        before = bytes;
    }
    options.max_playback_hz = 8000;
    const auto encoder = codec::make_encoder(opus, options);
    const auto packet = encoded(*encoder, std::span(sound).first(320));
    CHECK(opus_packet_get_bandwidth(packet.data()) == OPUS_BANDWIDTH_NARROWBAND);
}

TEST_CASE("opus: stereo is heard in one channel") {
    int error = OPUS_OK;
    OpusEncoder* const encoder = opus_encoder_create(48000, 2, OPUS_APPLICATION_AUDIO, &error);
    REQUIRE(error == OPUS_OK);
    const auto decoder = codec::make_decoder(opus);
    const auto left = tests::tone(1000, 48000, 48000, 8000);
    std::vector<std::int16_t> heard;
    for (std::size_t at = 0; at < left.size(); at += 960) {
        std::array<std::int16_t, 2 * 960> frame{};
        for (std::size_t n = 0; n < 960; ++n) {
            frame[2 * n] = frame[2 * n + 1] = left[at + n];
        }
        std::vector<std::uint8_t> payload(1500);
        payload.resize(
            static_cast<std::size_t>(opus_encode(encoder, frame.data(), 960, payload.data(), 1500)));
        CHECK(opus_packet_get_nb_channels(payload.data()) == 2);
        std::vector<std::int16_t> out(codec::max_packet_samples);
        REQUIRE(decoder->decode(payload, out) == 320);
        heard.insert(heard.end(), out.begin(), out.begin() + 320);
    }
    opus_encoder_destroy(encoder);
    const auto settled = std::span<const std::int16_t>(heard).last(8000);
    CHECK(tests::amplitude_at(settled, 1000, 16000) == doctest::Approx(8000).epsilon(0.05));
}

TEST_CASE("opus: packets of more than 60 ms are not decoded") {
    int error = OPUS_OK;
    OpusEncoder* const encoder = opus_encoder_create(16000, 1, OPUS_APPLICATION_VOIP, &error);
    REQUIRE(error == OPUS_OK);
    const auto sound = voice(1920);
    std::vector<std::uint8_t> payload(4000);
    payload.resize(static_cast<std::size_t>(opus_encode(encoder, sound.data(), 1920, payload.data(), 4000)));
    opus_encoder_destroy(encoder);
    const auto decoder = codec::make_decoder(opus);
    std::vector<std::int16_t> out(codec::max_packet_samples);
    CHECK(decoder->samples(payload) == 0);
    CHECK(decoder->decode(payload, out) == 0);
}

#endif
