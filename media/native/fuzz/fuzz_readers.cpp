// Buffers behind the first stage of receiving: whatever comes when, a mixer and a recorder get their frames.

#include <algorithm>
#include <array>
#include <memory>

#include "input.hpp"
#include "trunkline/graph/aligned_track.hpp"
#include "trunkline/graph/playout_buffer.hpp"

using namespace trunkline;

namespace {

constexpr std::int64_t ms_ns = 1'000'000;
constexpr std::size_t longest_chunk = 960;

/// A side of a recording, handed over as the recorder does it.
class Side {
  public:
    Side(std::uint32_t rate_hz, graph::AlignedTrack::Run run)
        : per_ms_(rate_hz / 1000), frame_(20 * per_ms_), track_(rate_hz, run) {}

    void hand_over(std::int64_t now_ms) {
        const std::int64_t until = (now_ms - graph::AlignedTrack::lag_ms) * per_ms_;
        const std::int64_t due = (until - track_.pulled()) / frame_;
        if (due > 40) track_.skip((due - 40) * frame_);
        std::array<std::int16_t, 320> room;
        while (track_.pulled() + frame_ <= until) {
            track_.pull(std::span(room).first(static_cast<std::size_t>(frame_)));
        }
    }

    void put(std::span<const std::int16_t> samples, std::int64_t now_ms) {
        hand_over(now_ms);
        track_.put(samples, (now_ms + 20) * per_ms_);
    }

  private:
    std::int64_t per_ms_;
    std::int64_t frame_;
    graph::AlignedTrack track_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t kind = input.byte();
    const std::uint32_t rate_hz = (kind & 1) != 0 ? 16'000 : 8'000;
    const auto run = (kind & 2) != 0 ? graph::AlignedTrack::Run::broken : graph::AlignedTrack::Run::unbroken;
    const auto reader = std::make_unique<graph::PlayoutBuffer>(rate_hz);
    Side side(rate_hz, run);
    std::array<std::int16_t, longest_chunk> chunk{};
    std::int64_t now_ms = 1000;
    while (!input.empty()) {
        const std::uint8_t what = input.byte();
        now_ms += (what & 0x80) != 0 ? input.word() : what & 0x1F;
        if ((what & 0x40) != 0) {
            std::array<std::int16_t, 320> frame;
            fuzz::require(reader->pull(std::span(frame).first(rate_hz / 50)) <= rate_hz / 50);
            side.hand_over(now_ms);
            continue;
        }
        const std::size_t count = std::min<std::size_t>(input.byte() * std::size_t{4}, longest_chunk);
        const unsigned level = unsigned{input.byte()} << 8;
        for (std::size_t n = 0; n < count; ++n) {
            chunk[n] = static_cast<std::int16_t>(static_cast<std::uint16_t>(level * (n % 7)));
        }
        const auto origin = static_cast<graph::Origin>(what >> 5 & 1);
        reader->put(std::span(chunk).first(count), origin, now_ms * ms_ns);
        side.put(std::span(chunk).first(count), now_ms);
    }
    return 0;
}
