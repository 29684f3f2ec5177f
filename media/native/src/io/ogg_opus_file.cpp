#include "trunkline/io/ogg_opus_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#if TRUNKLINE_HAVE_OPUS
#include <opus_multistream.h>
#endif

namespace trunkline::io {

namespace {

constexpr std::uint32_t granule_hz = 48000;
/// A page is written when it holds so much, in packets of 20 ms.
constexpr std::uint64_t page_ms = 400;
/// Limit of the encoder for one packet, far more than speech needs.
constexpr std::size_t max_packet_bytes = 640;
/// Header of a page with as many segments as 400 ms need.
constexpr std::size_t page_overhead_bytes = 27 + 255;

}  // namespace

#if TRUNKLINE_HAVE_OPUS

namespace {

/// A channel of speech at 8 and 16 kHz.
constexpr opus_int32 bitrate_bps(std::uint32_t rate_hz) {
    return rate_hz == 8000 ? 16'000 : 24'000;
}
/// Beyond it speech gains little and a core carries fewer recordings.
constexpr int complexity = 2;

void put_text(std::vector<std::uint8_t>& out, std::string_view text) {
    out.insert(out.end(), text.begin(), text.end());
}

void put_number(std::vector<std::uint8_t>& out, std::uint64_t value, int bytes) {
    for (int n = 0; n < bytes; ++n) {
        out.push_back(static_cast<std::uint8_t>(value >> (8 * n)));
    }
}

}  // namespace

bool OggOpusFile::available() {
    return true;
}

OggOpusFile::OggOpusFile(int descriptor, const AudioLayout& layout, std::uint32_t serial)
    : AudioFile(layout), descriptor_(descriptor), page_(serial) {
    constexpr std::array<unsigned char, 2> mapping{0, 1};
    int error = OPUS_OK;
    encoder_ =
        opus_multistream_encoder_create(static_cast<opus_int32>(layout.rate_hz), layout.channels,
                                        layout.channels, 0, mapping.data(), OPUS_APPLICATION_VOIP, &error);
    if (encoder_ == nullptr) {
        failed_ = true;
        return;
    }
    opus_multistream_encoder_ctl(encoder_, OPUS_SET_BITRATE(bitrate_bps(layout.rate_hz) * layout.channels));
    opus_multistream_encoder_ctl(encoder_, OPUS_SET_COMPLEXITY(complexity));
    opus_multistream_encoder_ctl(encoder_, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
    opus_int32 lookahead = 0;
    opus_multistream_encoder_ctl(encoder_, OPUS_GET_LOOKAHEAD(&lookahead));
    pre_skip_ = static_cast<std::uint64_t>(lookahead) * granule_hz / layout.rate_hz;
    write_headers();
}

OggOpusFile::~OggOpusFile() {
    if (encoder_ != nullptr) opus_multistream_encoder_destroy(encoder_);
    if (descriptor_ >= 0) ::close(descriptor_);
}

/// The identification and the comment header, each on a page of its own (RFC 7845 3, 5).
void OggOpusFile::write_headers() {
    std::vector<std::uint8_t> head;
    const bool two = layout().channels == 2;
    put_text(head, "OpusHead");
    put_number(head, 1, 1);
    put_number(head, layout().channels, 1);
    put_number(head, pre_skip_, 2);
    put_number(head, layout().rate_hz, 4);
    put_number(head, 0, 2);
    put_number(head, two ? 1 : 0, 1);
    // Two streams, none of them stereo: left is the first, right the second.
    if (two) head.insert(head.end(), {2, 0, 0, 1});
    std::vector<std::uint8_t> tags;
    const std::string_view vendor = opus_get_version_string();
    put_text(tags, "OpusTags");
    put_number(tags, vendor.size(), 4);
    put_text(tags, vendor);
    put_number(tags, 0, 4);
    for (const auto& packet : {head, tags}) {
        page_.add(packet);
        const auto page = page_.close(0, false);
        unwritten_.insert(unwritten_.end(), page.begin(), page.end());
    }
}

int OggOpusFile::encode(std::span<const std::int16_t> frame) {
    std::array<std::uint8_t, max_packet_bytes> packet;
    const int size = opus_multistream_encode(encoder_, frame.data(), static_cast<int>(frame_samples()),
                                             packet.data(), static_cast<opus_int32>(packet.size()));
    if (size <= 0) return EIO;
    const auto bytes = static_cast<std::size_t>(size);
    if (!page_.fits(bytes)) {
        if (const int error = write_page(granule_, false); error != 0) return error;
    }
    page_.add(std::span(packet).first(bytes));
    granule_ += granule_hz / 1000 * frame_ms;
    return 0;
}

#else

bool OggOpusFile::available() {
    return false;
}

OggOpusFile::OggOpusFile(int descriptor, const AudioLayout& layout, std::uint32_t serial)
    : AudioFile(layout), descriptor_(descriptor), page_(serial), failed_(true) {}

OggOpusFile::~OggOpusFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void OggOpusFile::write_headers() {}

int OggOpusFile::encode(std::span<const std::int16_t>) {
    return ENOSYS;
}

#endif

std::size_t OggOpusFile::frame_samples() const {
    return layout().rate_hz / 1000 * frame_ms;
}

int OggOpusFile::append(std::span<const std::int16_t> samples) {
    if (failed_) return ENOSYS;
    const std::size_t frame_size = frame_samples() * layout().channels;
    samples_ += samples.size() / layout().channels;
    while (!samples.empty()) {
        const std::size_t taken = std::min(samples.size(), frame_size - partial_size_);
        std::copy_n(samples.begin(), taken, partial_.begin() + static_cast<std::ptrdiff_t>(partial_size_));
        partial_size_ += taken;
        samples = samples.subspan(taken);
        if (partial_size_ < frame_size) break;
        partial_size_ = 0;
        if (const int error = encode(std::span(partial_).first(frame_size)); error != 0) return error;
    }
    return 0;
}

int OggOpusFile::update() {
    if (failed_) return ENOSYS;
    const std::uint64_t waiting_ms = (samples_ - disk_samples_) * 1000 / layout().rate_hz;
    if (unwritten_.empty() && waiting_ms < page_ms) return 0;
    return write_page(granule_, false);
}

int OggOpusFile::write_page(std::uint64_t granule, bool last) {
    if (!page_.empty()) {
        const auto page = page_.close(granule, last);
        unwritten_.insert(unwritten_.end(), page.begin(), page.end());
    }
    std::uint64_t written = 0;
    const int error = write_at(descriptor_, unwritten_, file_bytes_, written);
    file_bytes_ += written;
    unwritten_.clear();
    if (error == 0) disk_samples_ = samples_;
    // Half a page at the end of the file is passed over by players; nothing may follow it.
    failed_ = error != 0;
    return error;
}

int OggOpusFile::finish() {
    int error = failed_ ? EIO : 0;
    if (!failed_) {
        const std::uint64_t end = pre_skip_ + samples_ * granule_hz / layout().rate_hz;
        const std::vector<std::int16_t> silence(frame_samples() * layout().channels);
        // The encoder holds samples back; silence drives them out, and the last number cuts it off.
        std::fill(partial_.begin() + static_cast<std::ptrdiff_t>(partial_size_), partial_.end(),
                  std::int16_t{0});
        if (std::exchange(partial_size_, 0) != 0) error = encode(std::span(partial_).first(silence.size()));
        while (error == 0 && (granule_ < end || page_.empty())) {
            error = encode(silence);
        }
        if (error == 0) error = write_page(end, true);
    }
    if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
    return error;
}

std::uint64_t OggOpusFile::bytes_with(std::size_t more) const {
    const std::size_t packets = more / frame_samples() + 2;
    return file_bytes_ + unwritten_.size() + page_.body_bytes() + 2 * page_overhead_bytes +
           packets * max_packet_bytes;
}

std::uint64_t OggOpusFile::duration_ms() const {
    return (failed_ ? disk_samples_ : samples_) * 1000 / layout().rate_hz;
}

}  // namespace trunkline::io
