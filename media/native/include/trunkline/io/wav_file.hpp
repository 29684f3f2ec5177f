#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace trunkline::io {

/// A WAV file of 16-bit samples that grows. Its header can be made true at any time, so that a process that
/// is killed leaves a file that plays.
class WavFile {
  public:
    static constexpr std::uint32_t header_bytes = 44;

    WavFile(int descriptor, std::uint16_t channels, std::uint32_t rate_hz)
        : descriptor_(descriptor), channels_(channels), rate_hz_(rate_hz) {}
    WavFile(const WavFile&) = delete;
    WavFile& operator=(const WavFile&) = delete;
    ~WavFile();

    /// Create or empty the file at `path`; returns its descriptor, or a negated error number.
    static int create(const std::string& path);

    /// Append samples, interleaved. Returns 0 or the error number.
    int append(std::span<const std::int16_t> samples);

    /// Write the header for what was appended. Returns 0 or the error number.
    int update_header();

    /// Update the header and close. Returns 0 or the first error number.
    int finish();

    std::uint64_t data_bytes() const { return data_bytes_; }
    std::uint32_t duration_ms() const;

  private:
    int descriptor_;
    std::uint16_t channels_;
    std::uint32_t rate_hz_;
    std::uint64_t data_bytes_ = 0;
};

}  // namespace trunkline::io
