// Files of audio: whole whenever they were updated, and honest about errors.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>

#include "recorded.hpp"
#include "support.hpp"
#include "trunkline/dsp/g711.hpp"
#include "trunkline/io/ogg_opus_file.hpp"
#include "trunkline/io/wav_file.hpp"

using namespace trunkline;
using io::AudioLayout;
using io::Encoding;
using tests::number_at;
using tests::ScratchFile;

#if TRUNKLINE_HAVE_OPUS
#include <opus_multistream.h>
#endif

TEST_SUITE_BEGIN("audio files");

TEST_CASE("a WAV file is whole whenever it was updated") {
    const ScratchFile scratch("whole.wav");
    io::WavFile file(io::create_file(scratch.path()), {Encoding::wav, 2, 8000});
    REQUIRE(file.append(tests::level(7, 1600)) == 0);
    REQUIRE(file.update() == 0);
    CHECK(file.duration_ms() == 100);
    REQUIRE(file.append(tests::level(8, 160)) == 0);
    const tests::Played played = tests::play_wav(scratch.bytes());
    CHECK(played.rate_hz == 8000);
    CHECK(played.channels.at(1) == tests::level(7, 800));
    CHECK(file.finish() == 0);
    CHECK(tests::play_wav(scratch.bytes()).channels.at(0).size() == 880);
    CHECK(scratch.bytes().size() == file.bytes());
    CHECK(io::create_file("/nonexistent/x.wav") == -ENOENT);
}

TEST_CASE("mu-law takes half the room") {
    const ScratchFile scratch("mulaw.wav");
    io::WavFile file(io::create_file(scratch.path()), {Encoding::wav_mulaw, 1, 16000});
    const auto samples = tests::tone(440, 16000, 1600);
    REQUIRE(file.append(samples) == 0);
    REQUIRE(file.finish() == 0);
    const tests::Played played = tests::play_wav(scratch.bytes());
    CHECK(played.format == 7);
    CHECK(played.unit_bytes == 1);
    REQUIRE(played.data.size() == 1600);
    std::vector<std::int16_t> decoded(1600);
    dsp::decode(dsp::Law::mu, {reinterpret_cast<const std::uint8_t*>(played.data.data()), 1600},
                decoded.data());
    CHECK(tests::amplitude_at(decoded, 440, 16000) == doctest::Approx(12000).epsilon(0.02));
    CHECK(file.duration_ms() == 100);
}

TEST_CASE("a file of more than 4 GiB says so in 64 bits") {
    const AudioLayout layout{Encoding::wav, 2, 8000};
    const auto text = [&](std::uint64_t data_bytes) {
        const auto header = io::wav_header(layout, data_bytes);
        return std::string(header.begin(), header.end());
    };
    const std::uint64_t most = 0xFFFFFFFFULL - io::wav_header_bytes + 8 - 1;
    CHECK(text(most).substr(0, 4) == "RIFF");
    CHECK(number_at(text(most), 4, 4) == 0xFFFFFFFE);
    const std::string large = text(5'000'000'000);
    CHECK(large.substr(0, 4) == "RF64");
    CHECK(number_at(large, 4, 4) == 0xFFFFFFFF);
    CHECK(large.substr(12, 4) == "ds64");
    CHECK(number_at(large, 20, 8) == 5'000'000'000 + io::wav_header_bytes - 8);
    CHECK(number_at(large, 28, 8) == 5'000'000'000);
    CHECK(number_at(large, 36, 8) == 1'250'000'000);
    CHECK(number_at(large, io::wav_header_bytes - 4, 4) == 0xFFFFFFFF);
}

TEST_CASE("a full disk is an error, not a crash") {
    for (const Encoding encoding : {Encoding::wav, Encoding::wav_mulaw, Encoding::ogg_opus}) {
        if (!io::supported(encoding)) continue;
        const int descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC);
        REQUIRE(descriptor >= 0);
        const auto file = io::make_audio_file(descriptor, {encoding, 1, 8000}, 1);
        CHECK(file->append(tests::level(1, 160)) == 0);
        CHECK(file->update() == ENOSPC);
        CHECK(file->finish() != 0);
        CHECK(file->duration_ms() == 0);
    }
}

TEST_CASE("what fits before the disk is full is kept and plays") {
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{40'001, before.rlim_max};
    const ScratchFile scratch("limited.wav");
    io::WavFile file(io::create_file(scratch.path()), {Encoding::wav, 2, 8000});
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    int error = 0;
    for (int n = 0; n < 100 && error == 0; ++n) {
        error = file.append(tests::level(3, 320));
    }
    const int last_error = file.finish();
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    (void)std::signal(SIGXFSZ, handler);
    CHECK(error == EFBIG);
    CHECK(last_error == 0);
    const tests::Played played = tests::play_wav(scratch.bytes());
    CHECK(played.data.size() == 39'908);
    CHECK(file.bytes() == 40'000);
}

#if TRUNKLINE_HAVE_OPUS

namespace {

/// The packets of an Ogg stream, with the number of the last sample of the last whole page.
struct Unpacked {
    std::vector<std::string> packets;
    std::uint64_t granule = 0;
    bool ended = false;
};

/// The checksum of a page, its own field counted as zero, bit by bit.
std::uint32_t checksum(std::string page) {
    for (std::size_t n = 22; n < 26; ++n) {
        page[n] = 0;
    }
    std::uint32_t crc = 0;
    for (const char byte : page) {
        crc ^= static_cast<std::uint32_t>(static_cast<std::uint8_t>(byte)) << 24;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 0x80000000U) != 0 ? (crc << 1) ^ 0x04C11DB7U : crc << 1;
        }
    }
    return crc;
}

Unpacked unpack(const std::string& bytes) {
    Unpacked unpacked;
    std::string packet;
    for (std::size_t at = 0; at + 27 <= bytes.size();) {
        REQUIRE(bytes.substr(at, 4) == "OggS");
        const std::size_t segments = number_at(bytes, at + 26, 1);
        std::size_t body = at + 27 + segments;
        unpacked.granule = number_at(bytes, at + 6, 8);
        unpacked.ended = (number_at(bytes, at + 5, 1) & 4) != 0;
        for (std::size_t n = 0; n < segments; ++n) {
            const std::size_t size = number_at(bytes, at + 27 + n, 1);
            packet += bytes.substr(body, size);
            body += size;
            if (size == 255) continue;
            unpacked.packets.push_back(packet);
            packet.clear();
        }
        CHECK(checksum(bytes.substr(at, body - at)) == number_at(bytes, at + 22, 4));
        at = body;
    }
    return unpacked;
}

/// Decode all packets behind the two headers, and drop what comes before the first sample.
std::vector<std::int16_t> decode(const Unpacked& unpacked, int channels) {
    const unsigned char mapping[] = {0, 1};
    int error = 0;
    OpusMSDecoder* decoder = opus_multistream_decoder_create(8000, channels, channels, 0, mapping, &error);
    REQUIRE(decoder != nullptr);
    std::vector<std::int16_t> out;
    for (std::size_t n = 2; n < unpacked.packets.size(); ++n) {
        const std::string& packet = unpacked.packets[n];
        std::vector<std::int16_t> frame(static_cast<std::size_t>(160 * channels));
        REQUIRE(opus_multistream_decode(decoder, reinterpret_cast<const unsigned char*>(packet.data()),
                                        static_cast<opus_int32>(packet.size()), frame.data(), 160, 0) == 160);
        out.insert(out.end(), frame.begin(), frame.end());
    }
    opus_multistream_decoder_destroy(decoder);
    const std::size_t skipped = number_at(unpacked.packets.at(0), 10, 2) / 6;
    out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(skipped) * channels);
    return out;
}

}  // namespace

TEST_CASE("Ogg Opus keeps both sides apart, to the sample") {
    const ScratchFile scratch("both.opus");
    io::OggOpusFile file(io::create_file(scratch.path()), {Encoding::ogg_opus, 2, 8000}, 77);
    const auto left = tests::tone(440, 8000, 16'100);
    for (std::size_t n = 0; n < left.size(); n += 160) {
        std::vector<std::int16_t> frame;
        for (std::size_t m = n; m < std::min(n + 160, left.size()); ++m) {
            frame.insert(frame.end(), {left[m], 0});
        }
        REQUIRE(file.append(frame) == 0);
        REQUIRE(file.update() == 0);
    }
    REQUIRE(file.finish() == 0);
    CHECK(file.bytes() == scratch.bytes().size());
    CHECK(file.bytes() < 16'000);
    CHECK(file.duration_ms() == 2012);
    const Unpacked unpacked = unpack(scratch.bytes());
    CHECK(unpacked.ended);
    CHECK(unpacked.packets.at(0).substr(0, 8) == "OpusHead");
    CHECK(unpacked.packets.at(1).substr(0, 8) == "OpusTags");
    CHECK(unpacked.granule == number_at(unpacked.packets.at(0), 10, 2) + 16'100 * 6);
    const auto both = decode(unpacked, 2);
    std::vector<std::int16_t> sides[2];
    for (std::size_t n = 0; n < both.size(); ++n) {
        sides[n % 2].push_back(both[n]);
    }
    CHECK(sides[0].size() >= left.size());
    const auto middle = std::span<const std::int16_t>(sides[0]).subspan(4000, 8000);
    CHECK(tests::amplitude_at(middle, 440, 8000) == doctest::Approx(12000).epsilon(0.1));
    CHECK(tests::rms(sides[1]) < 20);
}

TEST_CASE("Ogg Opus plays as far as its last page") {
    const ScratchFile scratch("open.opus");
    io::OggOpusFile file(io::create_file(scratch.path()), {Encoding::ogg_opus, 1, 16000}, 1);
    for (int n = 0; n < 100; ++n) {
        REQUIRE(file.append(tests::tone(300, 16000, 320)) == 0);
        REQUIRE(file.update() == 0);
    }
    const Unpacked unpacked = unpack(scratch.bytes());
    CHECK_FALSE(unpacked.ended);
    // Two seconds were taken in; less than half a second waits.
    CHECK(unpacked.granule / 48 > 1500);
    CHECK(file.bytes_with(320) > file.bytes());
    REQUIRE(file.finish() == 0);
    CHECK(unpack(scratch.bytes()).granule == number_at(unpacked.packets.at(0), 10, 2) + 96'000);
}

#endif

TEST_SUITE_END();
