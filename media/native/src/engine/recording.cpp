#include "trunkline/engine/recording.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace trunkline::engine {

namespace {

/// How often the header on disk is made true; a process that is killed loses no more than this.
constexpr std::int64_t header_interval_ns = 500'000'000;

}  // namespace

void Recording::push(std::uint64_t number, std::span<const std::int16_t> frame) {
    std::uint8_t* room = ring_.reserve(frame.size_bytes());
    // The writer sees the hole in the numbers and puts silence there.
    if (room == nullptr) return;
    std::memcpy(room, frame.data(), frame.size_bytes());
    ring_.commit(number, frame.size_bytes());
}

bool Recording::write(std::int64_t now_ns, Outlet& outlet) {
    const bool ended = ended_.load(std::memory_order_acquire);
    if (reported_) return ended;
    int error = drain();
    if (error == 0 && (ended || now_ns - header_ns_ >= header_interval_ns)) {
        header_ns_ = now_ns;
        error = ended ? file_.finish() : file_.update_header();
    }
    if (error == 0 && !ended) return false;
    if (error != 0) {
        failed_.store(true, std::memory_order_relaxed);
        // What is on disk may still be made playable: rewriting the header takes no new room.
        (void)file_.finish();
    }
    report(error, outlet);
    return ended;
}

int Recording::drain() {
    while (const auto record = ring_.front()) {
        const int error = write_frame(record->tag, record->bytes);
        ring_.release();
        if (error != 0) return error;
    }
    return 0;
}

int Recording::write_frame(std::uint64_t number, std::span<const std::uint8_t> bytes) {
    std::array<std::int16_t, 2 * frame_samples> samples{};
    const auto frame = std::span(samples).first(bytes.size() / sizeof(std::int16_t));
    for (; next_number_ < number; ++next_number_) {
        if (const int error = file_.append(frame); error != 0) return error;
    }
    ++next_number_;
    std::memcpy(samples.data(), bytes.data(), frame.size_bytes());
    return file_.append(frame);
}

void Recording::report(int error, Outlet& outlet) {
    reported_ = true;
    outlet.emit({id_, EventKind::recording_finished, static_cast<std::uint32_t>(error), file_.duration_ms(),
                 file_.data_bytes() + io::WavFile::header_bytes});
}

bool Recorder::tick(std::int64_t) {
    if (recording_->failed()) return false;
    std::array<std::int16_t, Recording::frame_samples> received;
    std::array<std::int16_t, Recording::frame_samples> sent;
    std::array<std::int16_t, 2 * Recording::frame_samples> frame;
    received_.reader.pull(received);
    sent_.reader.pull(sent);
    const bool stereo = recording_->channels() == 2;
    for (std::size_t n = 0; n < received.size(); ++n) {
        if (stereo) {
            frame[2 * n] = received[n];
            frame[2 * n + 1] = sent[n];
        } else {
            frame[n] = static_cast<std::int16_t>(std::clamp(received[n] + sent[n], -32768, 32767));
        }
    }
    recording_->push(number_++, std::span(frame).first(stereo ? frame.size() : received.size()));
    return true;
}

void Recorder::finish(std::int64_t now_ns) {
    if (recording_ == nullptr) return;
    for (std::uint32_t left = target_samples; left > 0; left -= Recording::frame_samples) {
        if (!tick(now_ns)) break;
    }
    std::exchange(recording_, nullptr)->end();
}

}  // namespace trunkline::engine
