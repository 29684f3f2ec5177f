#include "trunkline/io/wav_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::io {

namespace {

/// Most bytes that are buffered before a write.
constexpr std::size_t pending_bytes = 16 << 10;
constexpr std::uint16_t format_linear = 1;
constexpr std::uint16_t format_mulaw = 7;
/// A chunk's name and size.
constexpr std::uint32_t chunk_bytes = 8;
constexpr std::uint32_t ds64_bytes = 28;
constexpr std::uint32_t fmt_bytes = 16;
constexpr std::uint32_t fact_bytes = 4;
constexpr std::uint32_t unknown_size = 0xFFFFFFFF;

std::size_t sample_bytes(const AudioLayout& layout) {
    return layout.encoding == Encoding::wav_mulaw ? 1 : 2;
}

/// Writes one field after the other.
class Fields {
  public:
    explicit Fields(std::uint8_t* at) : at_(at) {}

    void name(const char* four) {
        std::memcpy(at_, four, 4);
        at_ += 4;
    }

    void number(std::uint64_t value, int bytes) {
        for (int n = 0; n < bytes; ++n) {
            *at_++ = static_cast<std::uint8_t>(value >> (8 * n));
        }
    }

  private:
    std::uint8_t* at_;
};

}  // namespace

std::array<std::uint8_t, wav_header_bytes> wav_header(const AudioLayout& layout, std::uint64_t data_bytes) {
    const std::uint64_t riff_bytes = wav_header_bytes - chunk_bytes + data_bytes;
    const bool large = riff_bytes >= unknown_size;
    const std::uint64_t unit = sample_bytes(layout) * layout.channels;
    const std::uint64_t samples = data_bytes / unit;
    std::array<std::uint8_t, wav_header_bytes> header{};
    Fields fields(header.data());
    fields.name(large ? "RF64" : "RIFF");
    fields.number(large ? unknown_size : riff_bytes, 4);
    fields.name("WAVE");
    fields.name(large ? "ds64" : "JUNK");
    fields.number(ds64_bytes, 4);
    fields.number(large ? riff_bytes : 0, 8);
    fields.number(large ? data_bytes : 0, 8);
    fields.number(large ? samples : 0, 8);
    fields.number(0, 4);  // No further sizes.
    fields.name("fmt ");
    fields.number(fmt_bytes, 4);
    fields.number(layout.encoding == Encoding::wav_mulaw ? format_mulaw : format_linear, 2);
    fields.number(layout.channels, 2);
    fields.number(layout.rate_hz, 4);
    fields.number(layout.rate_hz * unit, 4);
    fields.number(unit, 2);
    fields.number(8 * sample_bytes(layout), 2);
    fields.name("fact");
    fields.number(fact_bytes, 4);
    fields.number(large ? unknown_size : samples, 4);
    fields.name("data");
    fields.number(large ? unknown_size : data_bytes, 4);
    return header;
}

WavFile::WavFile(int descriptor, const AudioLayout& layout) : AudioFile(layout), descriptor_(descriptor) {
    pending_.reserve(pending_bytes);
}

WavFile::~WavFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

int WavFile::append(std::span<const std::int16_t> samples) {
    const std::size_t start = pending_.size();
    pending_.resize(start + samples.size() * sample_bytes(layout()));
    if (layout().encoding == Encoding::wav_mulaw) {
        dsp::encode(dsp::Law::mu, samples, pending_.data() + start);
    } else {
        std::memcpy(pending_.data() + start, samples.data(), samples.size_bytes());
    }
    return pending_.size() < pending_bytes ? 0 : flush();
}

int WavFile::flush() {
    std::uint64_t written = 0;
    const int error = write_at(descriptor_, pending_, wav_header_bytes + data_bytes_, written);
    data_bytes_ += written - written % unit_bytes();
    pending_.clear();
    return error;
}

int WavFile::update() {
    if (const int error = flush(); error != 0) return error;
    std::uint64_t written = 0;
    return write_at(descriptor_, wav_header(layout(), data_bytes_), 0, written);
}

int WavFile::finish() {
    int error = update();
    if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
    return error;
}

std::size_t WavFile::unit_bytes() const {
    return sample_bytes(layout()) * layout().channels;
}

std::uint64_t WavFile::bytes_with(std::size_t more) const {
    return bytes() + pending_.size() + more * unit_bytes();
}

std::uint64_t WavFile::duration_ms() const {
    return (data_bytes_ + pending_.size()) / unit_bytes() * 1000 / layout().rate_hz;
}

}  // namespace trunkline::io
