#include "trunkline/graph/jitter_buffer.hpp"

#include <algorithm>

namespace trunkline::graph {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t ms_ns = 1'000'000;
/// A packet that comes so much quicker than all before it has timestamps that jumped.
constexpr std::int64_t max_early_ns = 200 * ms_ns;
/// Gaps are filled while what was handed out is not further ahead of real time than this: a sender whose
/// timestamps run too fast must not make us hand out more than it sends.
constexpr std::int64_t max_ahead_ns = 500 * ms_ns;
/// A run of late packets this long means that the path or the sender's timestamps have changed for good.
constexpr std::int64_t late_run_ns = 60 * ms_ns;
/// Fills are made up for after a stall of our own thread, but not more than this.
constexpr std::int64_t max_catch_up_ns = 2 * second_ns;
/// Concealment sounds like a voice for so long; then it fades, and from the second time on there is silence.
constexpr std::uint32_t conceal_full_ms = 40;
constexpr std::uint32_t conceal_max_ms = 100;
/// Over so much of the new sound a step between two origins is smoothed.
constexpr std::uint32_t join_ms = 4;
/// An Opus packet of so many bytes says that the sender falls silent (RFC 7587 3.1.3).
constexpr std::size_t opus_silent_bytes = 2;

}  // namespace

void JitterBuffer::use(codec::Decoder* decoder, std::int64_t now_ns) {
    if (decoder != nullptr && decoder_ != nullptr && decoder->format() == format_) {
        decoder_ = decoder;
        return;
    }
    const std::int64_t begin_ns = decoder_ == nullptr ? now_ns : covered_ns();
    decoder_ = decoder;
    started_ = false;
    store_.clear();
    noise_described_ = sender_pauses_ = false;
    concealed_run_ = packet_samples_ = 0;
    late_since_ns_ = 0;
    rate_hz_ = decoder == nullptr ? 0 : decoder->format().rate_hz();
    if (decoder == nullptr) return;
    format_ = decoder->format();
    sample_ns_ = second_ns / rate_hz_;
    position_ns_ = 0;
    spread_.begin(0, begin_ns);
}

void JitterBuffer::put(const rtp::Header& header, std::span<const std::uint8_t> payload, bool restarted,
                       std::int64_t now_ns) {
    take({header.sequence, header.marker, Content::audio, header.timestamp, payload}, restarted, now_ns);
}

void JitterBuffer::put_noise(const rtp::Header& header, std::span<const std::uint8_t> payload, bool restarted,
                             std::int64_t now_ns) {
    take({header.sequence, header.marker, Content::noise, header.timestamp, payload}, restarted, now_ns);
}

void JitterBuffer::skip(const rtp::Header& header) {
    if (!started_) return;
    const auto offset = static_cast<std::int16_t>(header.sequence - next_sequence_);
    if (offset < 0 || offset >= static_cast<int>(PacketStore::places)) return;
    if (offset == 0 && store_.at(header.sequence) == nullptr) {
        ++next_sequence_;
    } else {
        store_.insert({header.sequence, false, Content::none, header.timestamp, {}});
    }
}

void JitterBuffer::take(const StoredPacket& packet, bool restarted, std::int64_t now_ns) {
    if (decoder_ == nullptr || packet.payload.size() > codec::max_payload_bytes) return;
    if (!started_ || restarted) {
        if (started_) decoder_->reset();
        begin(packet.sequence, packet.timestamp, now_ns);
    }
    const auto offset = static_cast<std::int16_t>(packet.sequence - next_sequence_);
    if (offset >= static_cast<int>(PacketStore::places)) {
        // So many are missing that what came before the gap is old by now.
        store_.clear();
        next_sequence_ = packet.sequence;
    }
    // What the first packet after a pause says of the way is not to be trusted: some senders' timestamps
    // stand still meanwhile.
    const std::int64_t starts_ns = media_ns(packet.timestamp);
    if (!packet.marker && spread_.lag_ns(starts_ns, now_ns) > -max_early_ns) spread_.note(starts_ns, now_ns);
    if (offset < 0) {
        ++figures_.late;
    } else if (store_.at(packet.sequence) != nullptr) {
        return;
    } else if (!store_.insert(packet)) {
        ++figures_.overflowed;
    }
}

/// Begin a run of packets with this one.
void JitterBuffer::begin(std::uint16_t sequence, std::uint32_t timestamp, std::int64_t now_ns) {
    started_ = true;
    noise_described_ = sender_pauses_ = false;
    store_.clear();
    next_sequence_ = sequence;
    follow(timestamp, now_ns);
}

bool JitterBuffer::next(AudioChunk& chunk, std::int64_t now_ns) {
    if (decoder_ == nullptr) return false;
    note_time(now_ns);
    // A turn that hands out nothing takes a packet away or follows the one it will take away next.
    for (;;) {
        if (owed_ns_ >= fill_ns) {
            pay_owed(chunk);
            return true;
        }
        const StoredPacket* packet = started_ ? store_.at(next_sequence_) : nullptr;
        if (packet == nullptr) {
            packet = started_ ? store_.first(next_sequence_) : nullptr;
            // With no time missing before it, the packet need not wait for what its number says is missing.
            if (packet == nullptr || samples_until(packet->timestamp) > 0) {
                if (now_ns < covered_ns() + wait_ns()) return false;
                if (packet == nullptr) return fill_real_time(chunk, now_ns);
            }
        }
        if (play(*packet, chunk, now_ns)) return true;
    }
}

/// Keep account of how far ahead of real time the run is; what clocks drift apart is let go.
void JitterBuffer::note_time(std::int64_t now_ns) {
    const std::int64_t passed_ns = std::max<std::int64_t>(now_ns - asked_ns_, 0);
    asked_ns_ = now_ns;
    ahead_ns_ = std::max<std::int64_t>(ahead_ns_ - passed_ns - passed_ns / 100, 0);
}

/// Silence for time that passed while the sender's timestamps said something else.
void JitterBuffer::pay_owed(AudioChunk& chunk) {
    owed_ns_ -= fill_ns;
    const auto samples = static_cast<std::size_t>(fill_ns / sample_ns_);
    std::fill_n(samples_.begin(), samples, std::int16_t{0});
    figures_.silent_samples += samples;
    hand_out(std::span(samples_).first(samples), Origin::silence, chunk);
}

/// Nothing has come for long enough: the run goes on in real time.
bool JitterBuffer::fill_real_time(AudioChunk& chunk, std::int64_t now_ns) {
    const std::int64_t behind_ns = now_ns - covered_ns() - wait_ns();
    if (behind_ns > max_catch_up_ns) spread_.shift(behind_ns - max_catch_up_ns);
    fill(static_cast<std::size_t>(fill_ns / sample_ns_), started_, chunk);
    return true;
}

/// Hand out the packet, or a part of the gap before it; false when it gave nothing.
bool JitterBuffer::play(const StoredPacket& packet, AudioChunk& chunk, std::int64_t now_ns) {
    std::int64_t gap_samples = samples_until(packet.timestamp);
    if (gap_samples > 0 && packet.content != Content::none) {
        const std::int64_t lag_ns = spread_.lag_ns(media_ns(packet.timestamp), now_ns);
        if (lag_ns > -max_early_ns && ahead_ns_ < max_ahead_ns) {
            fill_gap(packet, gap_samples, chunk);
            return true;
        }
        timestamp_ = packet.timestamp;
        spliced_ = true;
        return false;
    }
    if (gap_samples < 0 && packet.content == Content::audio && packet.sequence == next_sequence_ &&
        last_origin_ == Origin::received) {
        // It follows what was just heard, whatever its sender's broken clock says.
        timestamp_ = packet.timestamp;
        gap_samples = 0;
    }
    const std::uint32_t samples = packet.content == Content::audio ? decoder_->samples(packet.payload) : 0;
    if (samples != 0 && -gap_samples >= samples && has_changed(packet, now_ns)) {
        follow(packet.timestamp, now_ns);
        return false;
    }
    // Its bytes stay where they are until the next packet is put.
    const StoredPacket taken = packet;
    next_sequence_ = static_cast<std::uint16_t>(taken.sequence + 1);
    store_.remove(taken.sequence);
    switch (taken.content) {
        case Content::none:
            return false;
        case Content::noise:
            if (const auto noise = codec::parse_noise(taken.payload)) {
                noise_.set(*noise);
                noise_described_ = true;
            }
            return false;
        case Content::audio:
            break;
    }
    if (samples == 0) {
        ++figures_.broken;
        return false;
    }
    if (-gap_samples < samples) return decode(taken, static_cast<std::size_t>(-gap_samples), chunk);
    ++figures_.late;
    return false;
}

/// True if a packet whose time is over belongs to a sender, or a path, that has changed for good.
bool JitterBuffer::has_changed(const StoredPacket& packet, std::int64_t now_ns) {
    if (late_since_ns_ == 0) late_since_ns_ = now_ns;
    return packet.marker || now_ns - late_since_ns_ >= late_run_ns;
}

/// Go on at another timestamp, as if what it belongs to had come in time.
void JitterBuffer::follow(std::uint32_t timestamp, std::int64_t now_ns) {
    owed_ns_ = std::clamp(owed_ns_ + now_ns - covered_ns(), -max_wait_ns, max_wait_ns);
    timestamp_ = timestamp;
    late_since_ns_ = 0;
    spliced_ = true;
    spread_.begin(position_ns_, now_ns);
}

void JitterBuffer::fill_gap(const StoredPacket& following, std::int64_t gap_samples, AudioChunk& chunk) {
    const bool lost = following.sequence != next_sequence_;
    if (lost && recover(following, gap_samples, chunk)) return;
    std::int64_t samples = std::min(gap_samples, fill_ns / sample_ns_);
    // Stop where the packet before the following one begins: that one may be recoverable.
    if (lost && gap_samples > packet_samples_) samples = std::min(samples, gap_samples - packet_samples_);
    fill(static_cast<std::size_t>(samples), lost, chunk);
}

/// Recover a packet from the copy in the following one.
bool JitterBuffer::recover(const StoredPacket& following, std::int64_t gap_samples, AudioChunk& chunk) {
    if (packet_samples_ == 0 || gap_samples > packet_samples_ || following.content != Content::audio) {
        return false;
    }
    const auto wanted = static_cast<std::size_t>(gap_samples);
    const std::size_t samples =
        decoder_->recover(following.payload, std::span(samples_).first(packet_samples_));
    if (samples < wanted || samples > samples_.size()) return false;
    ++figures_.recovered_packets;
    next_sequence_ = following.sequence;
    concealed_run_ = 0;
    hand_out(std::span(samples_).subspan(samples - wanted, wanted), Origin::recovered, chunk);
    advance(wanted);
    return true;
}

bool JitterBuffer::decode(const StoredPacket& packet, std::size_t overlap, AudioChunk& chunk) {
    const std::size_t samples =
        std::min<std::size_t>(decoder_->decode(packet.payload, samples_), samples_.size());
    if (samples == 0) {
        ++figures_.broken;
        return false;
    }
    late_since_ns_ = 0;
    noise_described_ = false;
    concealed_run_ = 0;
    packet_samples_ = static_cast<std::uint32_t>(samples);
    sender_pauses_ = format_.codec == codec::Codec::opus && packet.payload.size() <= opus_silent_bytes;
    if (overlap >= samples) return false;
    if (overlap != 0) spliced_ = true;
    hand_out(std::span(samples_).subspan(overlap, samples - overlap),
             sender_pauses_ ? Origin::noise : Origin::received, chunk);
    advance(samples - overlap);
    return true;
}

/// Make up samples: noise in a pause, else something that hides a loss, then silence.
void JitterBuffer::fill(std::size_t samples, bool lost, AudioChunk& chunk) {
    const std::span<std::int16_t> out = std::span(samples_).first(samples);
    Origin origin = Origin::silence;
    if (noise_described_) {
        noise_.generate(out);
        origin = Origin::noise;
    } else if (sender_pauses_) {
        decoder_->conceal(out);
        origin = Origin::noise;
    } else if (lost && packet_samples_ != 0 && concealed_run_ < conceal_max_ms * rate_hz_ / 1000) {
        conceal(out);
        origin = Origin::concealed;
    } else {
        std::fill(out.begin(), out.end(), std::int16_t{0});
    }
    (origin == Origin::concealed ? figures_.concealed_samples : figures_.silent_samples) += samples;
    hand_out(out, origin, chunk);
    advance(samples);
}

/// The decoder knows best how its sound goes on; that it ends is seen to here.
void JitterBuffer::conceal(std::span<std::int16_t> out) {
    decoder_->conceal(out);
    const std::uint32_t full = conceal_full_ms * rate_hz_ / 1000;
    const std::uint32_t most = conceal_max_ms * rate_hz_ / 1000;
    for (std::int16_t& sample : out) {
        const std::uint32_t age = concealed_run_++;
        if (age <= full) continue;
        const std::int64_t left = age < most ? most - age : 0;
        sample = static_cast<std::int16_t>(sample * left / (most - full));
    }
}

void JitterBuffer::hand_out(std::span<std::int16_t> out, Origin origin, AudioChunk& chunk) {
    join(out, origin);
    last_origin_ = origin;
    last_sample_ = out.back();
    ahead_ns_ += static_cast<std::int64_t>(out.size()) * sample_ns_;
    chunk = {out, origin};
}

/// Between sounds that have nothing to do with one another there is a step; spread it, so that it does not
/// click.
void JitterBuffer::join(std::span<std::int16_t> samples, Origin origin) {
    const bool continuous = origin == last_origin_ || (is_heard(origin) && is_heard(last_origin_));
    if (continuous && !spliced_) return;
    spliced_ = false;
    const auto length =
        static_cast<std::int32_t>(std::min<std::size_t>(join_ms * rate_hz_ / 1000, samples.size()));
    const std::int32_t step = last_sample_ - samples.front();
    for (std::int32_t n = 0; n < length; ++n) {
        std::int16_t& sample = samples[static_cast<std::size_t>(n)];
        sample =
            static_cast<std::int16_t>(std::clamp(sample + step * (length - n) / (length + 1), -32768, 32767));
    }
}

void JitterBuffer::advance(std::size_t samples) {
    timestamp_ += static_cast<std::uint32_t>(samples * format_.clock_hz / rate_hz_);
    position_ns_ += static_cast<std::int64_t>(samples) * sample_ns_;
}

/// Long enough for nearly all packets, and for the next one to come, which may carry the lost one.
std::int64_t JitterBuffer::wait_ns() const {
    if (!started_) return 0;
    const std::int64_t packet_ns = packet_samples_ * sample_ns_;
    const std::int64_t least_ns = std::max(min_wait_ns, packet_ns + 5 * ms_ns);
    return std::clamp(spread_.spread_ns() + 5 * ms_ns, least_ns, max_wait_ns);
}

std::int64_t JitterBuffer::media_ns(std::uint32_t timestamp) const {
    return position_ns_ + static_cast<std::int32_t>(timestamp - timestamp_) * second_ns / format_.clock_hz;
}

/// Samples between the audio handed out and this timestamp; negative when it is over.
std::int64_t JitterBuffer::samples_until(std::uint32_t timestamp) const {
    return std::int64_t{static_cast<std::int32_t>(timestamp - timestamp_)} * rate_hz_ / format_.clock_hz;
}

DecodingFigures JitterBuffer::figures() const {
    DecodingFigures figures = figures_;
    figures.wait_ms = static_cast<std::uint32_t>(wait_ns() / ms_ns);
    return figures;
}

}  // namespace trunkline::graph
