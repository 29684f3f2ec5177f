#include "trunkline/engine/conference_line.hpp"

#include <algorithm>
#include <cstring>

#include "trunkline/codec/format.hpp"

namespace trunkline::engine {

namespace {

/// More than this beyond what is pulled is delay without a use: the stream's clock was stopped.
constexpr std::size_t most_waiting_ms = 40;
/// Length of fades where the audio stops or begins.
constexpr std::size_t fade_ms = 4;

}  // namespace

ConferenceLine::ConferenceLine(std::uint32_t rate_hz)
    : rate_hz_(rate_hz), to_conference_(rate_hz), to_stream_(to_stream_bytes) {
    level_dbov.set(graph::level_dbov(0));
}

void ConferenceLine::put(const graph::AudioChunk& chunk, std::int64_t now_ns) {
    if (!to_conference_.put(chunk, now_ns)) dropped.add(1);
}

void ConferenceLine::read(std::span<std::int16_t> frame) {
    to_conference_.pull(frame);
}

void ConferenceLine::write(std::span<const std::int16_t> frame) {
    // What is full belongs to a stream that does not send; it starts with what is newest, see `fetch`.
    std::uint8_t* room = to_stream_.reserve(frame.size_bytes());
    if (room == nullptr) return;
    std::memcpy(room, frame.data(), frame.size_bytes());
    to_stream_.commit(0, frame.size_bytes());
}

bool ConferenceLine::pull(std::span<std::int16_t> out, std::uint32_t rate_hz, std::int64_t) {
    if (rate_hz == rate_hz_) {
        take(out);
        return true;
    }
    std::array<std::int16_t, codec::max_packet_samples> room;
    if (rate_hz_ > rate_hz) {
        const std::span<std::int16_t> wide = std::span(room).first(2 * out.size());
        take(wide);
        downsampler_.process(wide, out.data());
    } else {
        const std::span<std::int16_t> narrow = std::span(room).first(out.size() / 2);
        take(narrow);
        upsampler_.process(narrow, out.data());
    }
    return true;
}

/// Collect what has come, without letting more wait than has a use.
void ConferenceLine::fetch(std::size_t wanted) {
    while (const auto record = to_stream_.front()) {
        const std::size_t count =
            std::min(record->bytes.size() / sizeof(std::int16_t), graph::Mix::max_frame_samples);
        if (waiting_count_ + count > waiting_.size()) {
            std::copy(waiting_.begin() + static_cast<std::ptrdiff_t>(count),
                      waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_count_), waiting_.begin());
            waiting_count_ -= count;
        }
        std::memcpy(waiting_.data() + waiting_count_, record->bytes.data(), count * sizeof(std::int16_t));
        waiting_count_ += count;
        to_stream_.release();
    }
    const std::size_t most = std::min(wanted + most_waiting_ms * rate_hz_ / 1000, waiting_.size());
    if (waiting_count_ <= most) return;
    std::copy(waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_count_ - wanted),
              waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_count_), waiting_.begin());
    waiting_count_ = wanted;
    running_ = false;
}

void ConferenceLine::take(std::span<std::int16_t> out) {
    fetch(out.size());
    const auto fade = static_cast<std::int32_t>(std::min(fade_ms * rate_hz_ / 1000, out.size()));
    if (waiting_count_ < out.size()) {
        // The ticks of conference and stream are too near to one another: a frame more must wait from here
        // on.
        for (std::int32_t n = 0; n < static_cast<std::int32_t>(out.size()); ++n) {
            out[static_cast<std::size_t>(n)] =
                n < fade ? static_cast<std::int16_t>(last_sample_ * (fade - n) / (fade + 1))
                         : std::int16_t{0};
        }
        running_ = false;
        last_sample_ = 0;
        return;
    }
    std::copy_n(waiting_.begin(), out.size(), out.begin());
    std::copy(waiting_.begin() + static_cast<std::ptrdiff_t>(out.size()),
              waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_count_), waiting_.begin());
    waiting_count_ -= out.size();
    if (!running_) {
        for (std::int32_t n = 0; n < fade; ++n) {
            std::int16_t& sample = out[static_cast<std::size_t>(n)];
            sample = static_cast<std::int16_t>((sample * n + last_sample_ * (fade - n)) / fade);
        }
    }
    running_ = true;
    last_sample_ = out.back();
}

}  // namespace trunkline::engine
