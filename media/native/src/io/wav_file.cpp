#include "trunkline/io/wav_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace trunkline::io {

namespace {

constexpr std::uint16_t sample_bytes = 2;

void put(std::uint8_t* at, std::uint32_t value, int bytes) {
    for (int n = 0; n < bytes; ++n) {
        at[n] = static_cast<std::uint8_t>(value >> (8 * n));
    }
}

/// Write all bytes at `offset`, however often the kernel takes only part of them.
int write_all(int descriptor, const void* from, std::size_t size, std::uint64_t offset) {
    const auto* at = static_cast<const std::uint8_t*>(from);
    while (size > 0) {
        const ssize_t written = pwrite(descriptor, at, size, static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        if (written == 0) return ENOSPC;
        at += written;
        size -= static_cast<std::size_t>(written);
        offset += static_cast<std::uint64_t>(written);
    }
    return 0;
}

}  // namespace

WavFile::~WavFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

int WavFile::create(const std::string& path) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    return descriptor < 0 ? -errno : descriptor;
}

int WavFile::append(std::span<const std::int16_t> samples) {
    const int error =
        write_all(descriptor_, samples.data(), samples.size_bytes(), header_bytes + data_bytes_);
    if (error == 0) data_bytes_ += samples.size_bytes();
    return error;
}

int WavFile::update_header() {
    // Sizes are 32 bits wide; a recording of days ends its claim there and players read on to the end.
    const auto data =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(data_bytes_, 0xFFFFFFFFU - header_bytes));
    std::array<std::uint8_t, header_bytes> header{};
    std::memcpy(header.data(), "RIFF", 4);
    put(header.data() + 4, data + header_bytes - 8, 4);
    std::memcpy(header.data() + 8, "WAVEfmt ", 8);
    put(header.data() + 16, 16, 4);
    put(header.data() + 20, 1, 2);
    put(header.data() + 22, channels_, 2);
    put(header.data() + 24, rate_hz_, 4);
    put(header.data() + 28, rate_hz_ * channels_ * sample_bytes, 4);
    put(header.data() + 32, static_cast<std::uint32_t>(channels_ * sample_bytes), 2);
    put(header.data() + 34, 8 * sample_bytes, 2);
    std::memcpy(header.data() + 36, "data", 4);
    put(header.data() + 40, data, 4);
    return write_all(descriptor_, header.data(), header.size(), 0);
}

int WavFile::finish() {
    int error = update_header();
    if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
    return error;
}

std::uint32_t WavFile::duration_ms() const {
    return static_cast<std::uint32_t>(data_bytes_ * 1000 /
                                      (std::uint64_t{rate_hz_} * channels_ * sample_bytes));
}

}  // namespace trunkline::io
