#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trunkline/io/audio_file.hpp"

struct OpusMSEncoder;

namespace trunkline::io {

/// One page of an Ogg stream in the making (RFC 3533 6).
class OggPage {
  public:
    static constexpr std::size_t max_segments = 255;

    explicit OggPage(std::uint32_t serial) : serial_(serial) {}

    /// True if a packet of this size fits beside those that are there.
    bool fits(std::size_t packet_bytes) const {
        return segments_.size() + packet_bytes / max_segments + 1 <= max_segments;
    }

    /// Append a whole packet that fits.
    void add(std::span<const std::uint8_t> packet);

    bool empty() const { return segments_.empty(); }
    std::size_t body_bytes() const { return body_.size(); }

    /// The page as bytes, up to and including the sample with this number; another page begins.
    std::vector<std::uint8_t> close(std::uint64_t granule, bool last);

  private:
    std::uint32_t serial_;
    std::uint32_t number_ = 0;
    std::vector<std::uint8_t> segments_, body_;
};

/// Ogg Opus (RFC 7845). It only ever grows: a process that is killed leaves whole pages, and players need no
/// end mark. Two channels are two independent streams of Opus, so that neither is heard in the other.
class OggOpusFile final : public AudioFile {
  public:
    /// True if it was built in.
    static bool available();

    OggOpusFile(int descriptor, const AudioLayout& layout, std::uint32_t serial);
    ~OggOpusFile() override;

    int append(std::span<const std::int16_t> samples) override;
    int update() override;
    int finish() override;
    std::uint64_t bytes_with(std::size_t more) const override;
    std::uint64_t bytes() const override { return file_bytes_; }
    std::uint64_t duration_ms() const override;

  private:
    static constexpr std::uint32_t frame_ms = 20;
    static constexpr std::size_t max_frame_samples = 2 * 16 * frame_ms;

    std::size_t frame_samples() const;
    void write_headers();
    int encode(std::span<const std::int16_t> frame);
    int write_page(std::uint64_t granule, bool last);

    int descriptor_;
    OpusMSEncoder* encoder_ = nullptr;
    OggPage page_;
    std::uint64_t pre_skip_ = 0;      ///< At 48 kHz, as all numbers of samples in the file.
    std::uint64_t granule_ = 0;       ///< End of the last packet.
    std::uint64_t samples_ = 0;       ///< Taken in, of each channel, at the layout's rate.
    std::uint64_t disk_samples_ = 0;  ///< Of them on disk.
    std::uint64_t file_bytes_ = 0;
    std::array<std::int16_t, max_frame_samples> partial_{};
    std::size_t partial_size_ = 0;
    std::vector<std::uint8_t> unwritten_;
    bool failed_ = false;
};

}  // namespace trunkline::io
