#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trunkline/io/audio_file.hpp"

namespace trunkline::io {

/// Size of every header, so that data never moves.
inline constexpr std::uint32_t wav_header_bytes = 92;

/// The header of a WAV file with so much data. From 4 GiB on it is RF64 (EBU Tech 3306), whose `ds64` chunk
/// has taken the place of a filler.
std::array<std::uint8_t, wav_header_bytes> wav_header(const AudioLayout& layout, std::uint64_t data_bytes);

/// A WAV file, linear or mu-law. `update` makes its header true.
class WavFile final : public AudioFile {
  public:
    WavFile(int descriptor, const AudioLayout& layout);
    ~WavFile() override;

    int append(std::span<const std::int16_t> samples) override;
    int update() override;
    int finish() override;
    std::uint64_t bytes_with(std::size_t more) const override;
    std::uint64_t bytes() const override { return wav_header_bytes + data_bytes_; }
    std::uint64_t duration_ms() const override;

  private:
    std::size_t unit_bytes() const;
    int flush();

    int descriptor_;
    std::uint64_t data_bytes_ = 0;  ///< On disk.
    std::vector<std::uint8_t> pending_;
};

}  // namespace trunkline::io
