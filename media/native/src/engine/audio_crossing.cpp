#include "trunkline/engine/audio_crossing.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "trunkline/codec/format.hpp"

namespace trunkline::engine {

namespace {

/// The tag of a record says when the audio came and where it comes from.
constexpr unsigned origin_bits = 3;

}  // namespace

bool AudioCrossing::put(const graph::AudioChunk& chunk, std::int64_t now_ns) {
    const std::size_t size_bytes = chunk.samples.size_bytes();
    std::uint8_t* room = ring_.reserve(size_bytes);
    if (room == nullptr) return false;
    std::memcpy(room, chunk.samples.data(), size_bytes);
    ring_.commit(static_cast<std::uint64_t>(now_ns) << origin_bits | static_cast<std::uint64_t>(chunk.origin),
                 size_bytes);
    return true;
}

void AudioCrossing::pull(std::span<std::int16_t> frame) {
    std::array<std::int16_t, codec::max_packet_samples> samples;
    while (const auto record = ring_.front()) {
        const std::size_t count = std::min(record->bytes.size() / sizeof(std::int16_t), samples.size());
        std::memcpy(samples.data(), record->bytes.data(), count * sizeof(std::int16_t));
        const auto origin = static_cast<graph::Origin>(record->tag & ((1U << origin_bits) - 1));
        buffer_.put(std::span(samples).first(count), origin,
                    static_cast<std::int64_t>(record->tag >> origin_bits));
        ring_.release();
    }
    buffer_.pull(frame);
}

}  // namespace trunkline::engine
