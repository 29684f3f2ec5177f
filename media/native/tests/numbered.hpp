#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "support.hpp"
#include "trunkline/codec/codec.hpp"
#include "trunkline/graph/jitter_buffer.hpp"

namespace trunkline::tests {

/// A codec for tests: every sample of a packet is the number in its first byte. The second byte counts units
/// of 10 ms; a third one that is not 0 says that the packet before can be recovered. Concealment is the
/// number 99.
class NumberDecoder final : public codec::Decoder {
  public:
    static constexpr std::int16_t concealed = 99;

    explicit NumberDecoder(codec::Format format = {}) : Decoder(format) {}

    std::uint32_t samples(std::span<const std::uint8_t> payload) const override {
        return payload.size() < 2 || payload[1] > 6 ? 0 : payload[1] * format().rate_hz() / 100;
    }

    std::uint32_t decode(std::span<const std::uint8_t> payload, std::span<std::int16_t> out) override {
        const std::uint32_t count = samples(payload);
        std::fill_n(out.begin(), count, payload[0]);
        return count;
    }

    std::uint32_t recover(std::span<const std::uint8_t> following, std::span<std::int16_t> out) override {
        if (following.size() < 3 || following[2] == 0) return 0;
        std::fill(out.begin(), out.end(), following[0] - 1);
        return static_cast<std::uint32_t>(out.size());
    }

    void conceal(std::span<std::int16_t> out) override { std::fill(out.begin(), out.end(), concealed); }

    void reset() override { ++resets; }

    int resets = 0;
};

/// Feeds a decoding buffer with numbered packets of 20 ms, and keeps what comes out: the number in the middle
/// of each chunk.
struct BufferBench {
    explicit BufferBench(codec::Format format = {}) : decoder(format) { buffer.use(&decoder, 0); }

    void put(int number, std::int64_t now_ns, bool marker = false, bool restarted = false) {
        put_at(number, static_cast<std::uint16_t>(number), stamp(number), now_ns, marker, restarted);
    }

    void put_at(int number, std::uint16_t sequence, std::uint32_t timestamp, std::int64_t now_ns,
                bool marker = false, bool restarted = false) {
        const std::vector<std::uint8_t> payload{static_cast<std::uint8_t>(number), 2,
                                                static_cast<std::uint8_t>(recoverable ? 1 : 0)};
        buffer.put({0, marker, sequence, timestamp, 1}, payload, restarted, now_ns);
        take(now_ns);
    }

    std::uint32_t stamp(int number) const {
        return first_timestamp + static_cast<std::uint32_t>(number) * decoder.format().clock_hz / 50;
    }

    void take(std::int64_t now_ns) {
        graph::AudioChunk chunk;
        while (buffer.next(chunk, now_ns)) {
            heard.push_back(chunk.samples[chunk.samples.size() / 2]);
            origins.push_back(chunk.origin);
            samples += chunk.samples.size();
        }
    }

    void take_until(std::int64_t from_ms, std::int64_t until_ms) {
        for (std::int64_t at = from_ms; at <= until_ms; at += 5) {
            take(at * ms);
        }
    }

    /// Begin anew with what was heard.
    std::vector<int> flush() { return std::exchange(heard, {}); }

    std::uint32_t first_timestamp = 0xFFFFFE00;  // The timestamps wrap on the way.
    bool recoverable = false;
    NumberDecoder decoder;
    graph::JitterBuffer buffer;
    std::vector<int> heard;
    std::vector<graph::Origin> origins;
    std::size_t samples = 0;
};

}  // namespace trunkline::tests
