#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace trunkline::io {

/// Encoding of audio in a file.
enum class Encoding : std::uint8_t {
    wav,        ///< WAV, 16 bits linear.
    wav_mulaw,  ///< WAV, mu-law: half of that.
    ogg_opus,   ///< Ogg Opus (RFC 7845), each channel a stream of its own: about a tenth.
};

/// Content of a file.
struct AudioLayout {
    Encoding encoding = Encoding::wav;
    std::uint16_t channels = 2;  ///< 1 or 2.
    std::uint32_t rate_hz = 8000;
};

/// A file of audio that grows. What is on disk plays at any time, up to the last `update`: also when the
/// process is killed.
class AudioFile {
  public:
    explicit AudioFile(const AudioLayout& layout) : layout_(layout) {}
    AudioFile(const AudioFile&) = delete;
    AudioFile& operator=(const AudioFile&) = delete;
    virtual ~AudioFile() = default;

    const AudioLayout& layout() const { return layout_; }

    /// Append samples, interleaved, a multiple of 20 ms but for the last. Returns 0 or the error number.
    virtual int append(std::span<const std::int16_t> samples) = 0;

    /// Put on disk what was appended and make it playable. Returns 0 or the error number.
    virtual int update() = 0;

    /// Complete the file and close it. Returns 0 or the first error number.
    virtual int finish() = 0;

    /// Size of the file when `more` samples of each channel are appended, at most.
    virtual std::uint64_t bytes_with(std::size_t more) const = 0;

    /// Size of the file after `finish`; before, what is on disk at least.
    virtual std::uint64_t bytes() const = 0;

    /// Length appended, or after an error the length on disk.
    virtual std::uint64_t duration_ms() const = 0;

  private:
    AudioLayout layout_;
};

/// True if files of this encoding can be written.
bool supported(Encoding encoding);

/// Create or empty the file at `path`; returns its descriptor, or a negated error number.
int create_file(const std::string& path);

/// Make a writer for an empty file, which it closes. `serial` tells streams apart in files that have many.
std::unique_ptr<AudioFile> make_audio_file(int descriptor, const AudioLayout& layout, std::uint32_t serial);

/// Write all bytes at `offset`, however often the kernel takes only part of them. Counts what was written in
/// `written` and returns 0 or the error number.
int write_at(int descriptor, std::span<const std::uint8_t> bytes, std::uint64_t offset,
             std::uint64_t& written);

}  // namespace trunkline::io
