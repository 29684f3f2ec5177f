#include "trunkline/graph/track_mixer.hpp"

#include <algorithm>

#include "trunkline/codec/codec.hpp"

namespace trunkline::graph {

void TrackMixer::stop_all() {
    for (PlaybackQueue& track : tracks_) {
        track.stop();
    }
}

bool TrackMixer::empty() const {
    return std::all_of(tracks_.begin(), tracks_.end(),
                       [](const PlaybackQueue& track) { return track.empty(); });
}

bool TrackMixer::add_to(std::span<std::int16_t> samples, std::uint32_t rate_hz) {
    std::array<std::int32_t, codec::max_packet_samples> sum;
    std::array<std::int16_t, codec::max_packet_samples> room;
    const auto played = std::span(room).first(samples.size());
    bool sounds = false;
    for (PlaybackQueue& track : tracks_) {
        if (!track.playing()) continue;
        if (!sounds) std::copy(samples.begin(), samples.end(), sum.begin());
        sounds = true;
        track.pull(played, rate_hz);
        for (std::size_t n = 0; n < samples.size(); ++n) {
            sum[n] += played[n];
        }
    }
    if (!sounds) return false;
    // Limited once, so that tracks which cancel each other out do not distort.
    for (std::size_t n = 0; n < samples.size(); ++n) {
        samples[n] = static_cast<std::int16_t>(std::clamp(sum[n], -32768, 32767));
    }
    return true;
}

}  // namespace trunkline::graph
