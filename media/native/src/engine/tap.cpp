#include "trunkline/engine/tap.hpp"

#include <array>
#include <cstring>

#include "trunkline/dsp/g711.hpp"

namespace trunkline::engine {

namespace {

constexpr std::size_t frame_samples = Tap::frame_ms * 8;

}  // namespace

void Tap::put(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool restarted, bool marker,
              std::int64_t now_ns) {
    reader_.put(timestamp, samples, restarted, marker, now_ns);
    tick(now_ns);
}

void Tap::tick(std::int64_t now_ns) {
    std::array<std::int16_t, frame_samples> frame;
    while (reader_.next(frame, now_ns)) {
        hand_out(frame, now_ns);
    }
}

void Tap::hand_out(std::span<const std::int16_t> frame, std::int64_t now_ns) {
    std::array<std::int16_t, 2 * frame_samples> wide;
    if (format_.rate_hz == 16000) {
        upsampler_.process(frame, wide.data());
        frame = wide;
    }
    const std::size_t size_bytes = frame.size() * format_.sample_bytes();
    std::uint8_t* room = outlet_.reserve_frame(size_bytes);
    if (room == nullptr) return;
    switch (format_.encoding) {
        case graph::Encoding::l16:
            std::memcpy(room, frame.data(), size_bytes);
            break;
        case graph::Encoding::mulaw:
            dsp::encode(dsp::Law::mu, frame, room);
            break;
        case graph::Encoding::alaw:
            dsp::encode(dsp::Law::a, frame, room);
            break;
    }
    outlet_.commit_frame(id_, size_bytes, now_ns);
}

void Tap::mark_reached(std::uint32_t mark, bool cleared) {
    outlet_.emit({stream_, EventKind::mark_reached, cleared ? 1U : 0U, mark, 0});
}

void Tap::playout_drained() {
    outlet_.emit({stream_, EventKind::playout_drained, 0, 0, 0});
}

}  // namespace trunkline::engine
