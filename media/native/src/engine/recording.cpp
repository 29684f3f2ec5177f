#include "trunkline/engine/recording.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace trunkline::engine {

namespace {

/// Interval of syncs to disk; a process that is killed loses no more than this, and what
/// lies in the tracks and between two rounds of the writer.
constexpr std::int64_t update_interval_ns = 200'000'000;
/// Interval of reports of silence in place of lost frames.
constexpr std::int64_t gap_interval_ns = 1'000'000'000;
/// The longest stall of the disk that leaves no gap.
constexpr std::size_t ring_ms = 4000;

std::size_t ring_bytes(const io::AudioLayout& layout) {
    return std::bit_ceil(ring_ms * layout.rate_hz / 1000 * layout.channels * sizeof(std::int16_t));
}

}  // namespace

Recording::Recording(std::uint64_t id, int descriptor, const RecordingOptions& options)
    : id_(id),
      options_(options),
      file_(io::make_audio_file(descriptor, options.layout, static_cast<std::uint32_t>(id))),
      ring_(ring_bytes(options.layout)) {}

void Recording::push(std::uint64_t number, std::span<const std::int16_t> frame) {
    std::uint8_t* room = ring_.reserve(frame.size_bytes());
    // The writer sees the hole in the numbers and puts silence there.
    if (room == nullptr) return;
    std::memcpy(room, frame.data(), frame.size_bytes());
    ring_.commit(number, frame.size_bytes());
}

bool Recording::write(std::int64_t now_ns, EventQueue& event_queue) {
    const bool ended = ended_.load(std::memory_order_acquire);
    if (reported_) return ended;
    int error = drain();
    tell_gap(now_ns, event_queue);
    const bool last = ended || limit_ != 0;
    if (error == 0 && !last && now_ns - updated_ns_ >= update_interval_ns) {
        updated_ns_ = now_ns;
        error = file_->update();
    }
    if (error == 0 && !last) return false;
    finish(error, event_queue);
    return ended;
}

/// The limit that another frame would break, or 0.
std::uint32_t Recording::limit() const {
    if (options_.max_duration_ms != 0 && file_->duration_ms() + frame_ms > options_.max_duration_ms) {
        return recording_hit_duration;
    }
    if (options_.max_bytes != 0 && file_->bytes_with(frame_samples()) > options_.max_bytes) {
        return recording_hit_size;
    }
    return 0;
}

int Recording::drain() {
    while (const auto record = ring_.front()) {
        const int error = limit_ != 0 ? 0 : write_frame(record->tag, record->bytes);
        ring_.release();
        if (error != 0) return error;
    }
    return 0;
}

int Recording::write_frame(std::uint64_t number, std::span<const std::uint8_t> bytes) {
    std::array<std::int16_t, max_frame_samples> samples{};
    const auto frame = std::span(samples).first(bytes.size() / sizeof(std::int16_t));
    for (; next_number_ <= number; ++next_number_) {
        limit_ = limit();
        if (limit_ != 0) return 0;
        if (next_number_ == number) {
            std::memcpy(samples.data(), bytes.data(), frame.size_bytes());
        } else {
            gap_ms_ += frame_ms;
        }
        if (const int error = file_->append(frame); error != 0) return error;
    }
    return 0;
}

void Recording::tell_gap(std::int64_t now_ns, EventQueue& event_queue) {
    if (gap_ms_ == told_gap_ms_ || now_ns - told_gap_ns_ < gap_interval_ns) return;
    told_gap_ns_ = now_ns;
    told_gap_ms_ = gap_ms_;
    event_queue.emit({id_, EventKind::recording_gap, 0, gap_ms_, 0});
}

void Recording::finish(int error, EventQueue& event_queue) {
    reported_ = true;
    over_.store(true, std::memory_order_relaxed);
    // After an error as well: what is on disk may still be made playable, rewriting a header takes no room.
    const int last_error = file_->finish();
    if (error == 0) error = last_error;
    const std::uint32_t reason = error != 0 ? static_cast<std::uint32_t>(error) : limit_;
    event_queue.emit({id_, EventKind::recording_finished, reason, file_->duration_ms(), file_->bytes()});
}

}  // namespace trunkline::engine
