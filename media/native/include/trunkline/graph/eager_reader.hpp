#pragma once

#include <cstdint>
#include <span>

#include "trunkline/graph/sample_ring.hpp"

namespace trunkline::graph {

/// A jitter buffer for a consumer that needs every frame but no clock (an agent's socket).
///
/// Audio in order passes at once. A gap is waited for, then filled with silence, as is a sender that stops:
/// the consumer sees an unbroken run of frames that follows real time, and adds no delay while the network is
/// well.
class EagerReader {
  public:
    /// How long a missing packet is waited for.
    static constexpr std::int64_t patience_ns = 40'000'000;

    /// Start the run of frames; silence is handed out until the first audio comes.
    explicit EagerReader(std::int64_t now_ns) : covered_ns_(now_ns) {}

    /// Take in decoded audio. `restarted`: its timestamps have nothing to do with earlier ones. `marker`: the
    /// sender says that it was silent before (RFC 3551 4.1).
    void put(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool restarted, bool marker,
             std::int64_t now_ns);

    /// Fill `out` with the next frame, if one is due; ask until none is.
    bool next(std::span<std::int16_t> out, std::int64_t now_ns);

    /// Packets that came too late to be heard.
    std::uint64_t late() const { return late_; }

    /// Samples that were handed out as silence because audio was missing.
    std::uint64_t filled_samples() const { return filled_samples_; }

  private:
    void put_late(std::uint32_t timestamp, std::span<const std::int16_t> samples, bool marker,
                  std::int64_t now_ns);
    bool fill(std::span<std::int16_t> out, std::int64_t now_ns);

    SampleRing ring_;
    bool started_ = false;
    std::int64_t covered_ns_;         ///< Until when what was handed out or received lasts.
    std::int64_t waiting_ns_ = 0;     ///< Since when audio lies behind a gap; 0 when none does.
    std::int64_t first_late_ns_ = 0;  ///< Start of a run of late packets; 0 outside one.
    std::uint32_t heard_ = 0;         ///< End of the audio last handed out that was really received.
    std::uint64_t late_ = 0;
    std::uint64_t filled_samples_ = 0;
};

}  // namespace trunkline::graph
