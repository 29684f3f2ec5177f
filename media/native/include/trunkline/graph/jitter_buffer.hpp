#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trunkline/codec/codec.hpp"
#include "trunkline/codec/comfort_noise.hpp"
#include "trunkline/graph/audio_chunk.hpp"
#include "trunkline/graph/jitter_estimator.hpp"
#include "trunkline/graph/packet_store.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/util/node.hpp"

namespace trunkline::graph {

/// Counters of a jitter buffer.
struct DecodingFigures {
    std::uint64_t late = 0;               ///< Packets that came too late to be heard.
    std::uint64_t overflowed = 0;         ///< Packets there was no room for.
    std::uint64_t broken = 0;             ///< Packets that could not be decoded.
    std::uint64_t recovered_packets = 0;  ///< Lost packets that a later one carried.
    std::uint64_t concealed_samples = 0;  ///< Samples made up to hide losses.
    std::uint64_t silent_samples = 0;     ///< Samples of silence or comfort noise put where nothing came.
    std::uint32_t wait_ms = 0;            ///< How long a missing packet is waited for at present.
};

/// First stage of receiving: packets in, one unbroken run of samples out, on the sender's clock.
///
/// Audio in order passes at once. A gap is waited for as long as the arrivals measured warrant, then what was
/// lost is recovered or concealed; pauses are filled with silence or the noise the sender described. When the
/// sender stops, the run goes on in real time. Everything is bounded, and allocated when the buffer is made.
class JitterBuffer final : public util::Node {
  public:
    /// Bounds of how long a packet is waited for beyond the time it could have come.
    static constexpr std::int64_t min_wait_ns = 20'000'000;
    static constexpr std::int64_t max_wait_ns = 200'000'000;
    /// Length of a fill, and the tick `next` should be asked at when nothing comes.
    static constexpr std::int64_t fill_ns = 20'000'000;

    /// Decode with this; not owned. The first call begins the run, with silence until the first packet; one
    /// for another format begins anew. Null hands out nothing any more.
    void use(codec::Decoder* decoder, std::int64_t now_ns);

    /// Process a packet of audio. `restarted`: its sequence number and timestamp have nothing to do with
    /// earlier ones.
    void put(const rtp::Header& header, std::span<const std::uint8_t> payload, bool restarted,
             std::int64_t now_ns);

    /// Process comfort noise (RFC 3389); it holds until the next audio.
    void put_noise(const rtp::Header& header, std::span<const std::uint8_t> payload, bool restarted,
                   std::int64_t now_ns);

    /// A packet that is for somebody else, such as a telephone event, took this number: nothing is missing.
    void skip(const rtp::Header& header);

    /// The next chunk, if one is due; ask until none is, after each packet and at a tick of 20 ms. Its
    /// samples are valid until the next call.
    bool next(AudioChunk& chunk, std::int64_t now_ns);

    /// Rate of the samples handed out; 0 without a decoder.
    std::uint32_t rate_hz() const { return rate_hz_; }

    /// Figures so far.
    DecodingFigures figures() const;

  private:
    void take(const StoredPacket& packet, bool restarted, std::int64_t now_ns);
    void begin(std::uint16_t sequence, std::uint32_t timestamp, std::int64_t now_ns);
    void follow(std::uint32_t timestamp, std::int64_t now_ns);
    void note_time(std::int64_t now_ns);
    void pay_owed(AudioChunk& chunk);
    bool fill_real_time(AudioChunk& chunk, std::int64_t now_ns);
    bool play(const StoredPacket& packet, AudioChunk& chunk, std::int64_t now_ns);
    void fill_gap(const StoredPacket& following, std::int64_t gap_samples, AudioChunk& chunk);
    bool recover(const StoredPacket& following, std::int64_t gap_samples, AudioChunk& chunk);
    bool decode(const StoredPacket& packet, std::size_t overlap, AudioChunk& chunk);
    bool has_changed(const StoredPacket& packet, std::int64_t now_ns);
    void fill(std::size_t samples, bool lost, AudioChunk& chunk);
    void conceal(std::span<std::int16_t> out);
    void hand_out(std::span<std::int16_t> out, Origin origin, AudioChunk& chunk);
    void join(std::span<std::int16_t> samples, Origin origin);
    void advance(std::size_t samples);

    std::int64_t wait_ns() const;
    std::int64_t media_ns(std::uint32_t timestamp) const;
    std::int64_t samples_until(std::uint32_t timestamp) const;
    std::int64_t covered_ns() const { return position_ns_ + spread_.fastest_ns(); }

    codec::Decoder* decoder_ = nullptr;
    codec::Format format_;
    std::uint32_t rate_hz_ = 0;
    std::int64_t sample_ns_ = 1;

    PacketStore store_;
    JitterEstimator spread_;
    bool started_ = false;
    std::uint16_t next_sequence_ = 0;
    std::uint32_t timestamp_ = 0;       ///< Of the sample to be handed out next, in the sender's units.
    std::int64_t position_ns_ = 0;      ///< The same as a time that never jumps.
    std::int64_t owed_ns_ = 0;          ///< Real time that a jump of the timestamps left out.
    std::int64_t asked_ns_ = 0;         ///< When `next` was asked last.
    std::int64_t ahead_ns_ = 0;         ///< How far ahead of real time the run is.
    std::int64_t late_since_ns_ = 0;    ///< Start of a run of late packets; 0 outside one.
    std::uint32_t packet_samples_ = 0;  ///< Of the last packet decoded.
    std::uint32_t concealed_run_ = 0;   ///< Samples made up since something was heard.
    bool noise_described_ = false;      ///< The sender pauses, and its noise is known.
    bool sender_pauses_ = false;        ///< The decoder itself makes the noise of a pause (Opus).
    bool spliced_ = false;              ///< What comes next does not continue what went before.
    Origin last_origin_ = Origin::silence;
    std::int16_t last_sample_ = 0;
    codec::NoiseGenerator noise_;
    std::array<std::int16_t, codec::max_packet_samples> samples_;
    DecodingFigures figures_;
};

}  // namespace trunkline::graph
