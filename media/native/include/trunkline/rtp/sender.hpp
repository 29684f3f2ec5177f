#pragma once

#include <cstdint>
#include <optional>

#include "trunkline/rtp/packet.hpp"

namespace trunkline::rtp {

/// Where the audio of packets we make ourselves comes from: our own clock, the one of a linked stream that is
/// transcoded, or silence that fills a pause of a linked stream. Between two feeds time may have passed that
/// neither has counted.
enum class Feed : std::uint8_t { own, transcoded, filler };

/// Numbers the packets of one outgoing stream: one SSRC, unbroken sequence numbers and timestamps, whatever
/// the source of the audio is and however often it changes.
///
/// Packets of our own making (`local`, `advance`) count on from the last one. Relayed packets keep the
/// distances of the stream they come from, so that gaps and reordering stay visible to the far end, also
/// after a pause that was filled. All durations are in units of the RTP clock.
class Sender {
  public:
    Sender(std::uint32_t ssrc, std::uint16_t first_sequence, std::uint32_t first_timestamp,
           std::uint32_t clock_hz)
        : ssrc_(ssrc),
          clock_hz_(clock_hz),
          next_sequence_(first_sequence),
          next_timestamp_(first_timestamp) {}

    /// Number a packet of our own; the marker is set on the first after another source or a pause.
    Header local(std::uint8_t payload_type, std::int64_t now_ns, Feed feed = Feed::own);

    /// Let `units` of audio of our own pass, sent or not.
    void advance(std::uint32_t units, std::int64_t now_ns, Feed feed = Feed::own);

    /// Let `units` pass between packets of our own, if the last one was. The next begins a talk spurt.
    void rest(std::uint32_t units);

    /// What passed was not sent: the next packet begins a talk spurt (RFC 3551 4.1).
    void pause() { mark_next_ = true; }

    /// Renumber a packet of another stream, `units` long. Nothing for one that is older than the
    /// first relayed since the source changed: its number is taken. Nothing either for one that comes so
    /// late that silence was sent in its place.
    std::optional<Header> relayed(const Header& in, std::uint32_t units, std::int64_t now_ns);

    /// The stream that is relayed begins anew, under whatever numbers: what comes of it goes on from the last
    /// packet sent.
    void end_relay();

    /// Send under another SSRC, with timestamps of this clock; another clock takes another SSRC (RFC
    /// 7160 4.1).
    void restart(std::uint32_t ssrc, std::uint32_t clock_hz);

    /// Timestamp of the next local packet.
    std::uint32_t timestamp() const { return next_timestamp_; }

    /// Timestamp that belongs to the present, for sender reports (RFC 3550 6.4.1).
    std::uint32_t timestamp_at(std::int64_t now_ns) const;

    /// How long ago the audio ended that was sent last; negative before its end, very long without any.
    std::int64_t idle_ns(std::int64_t now_ns) const;

    /// True if what was sent last is of our own making: audio or digits, no silence that fills a pause.
    bool sends_own() const { return source_ == Source::own; }

    /// True if what was sent last fills a pause.
    bool fills() const { return source_ == Source::filler; }

    /// True if what was sent last is a linked stream's audio, encoded anew.
    bool transcodes() const { return source_ == Source::transcoded; }

    /// True if a packet with this number was sent a short while ago.
    bool sent_lately(std::uint16_t sequence) const;

    std::uint32_t ssrc() const { return ssrc_; }
    std::uint32_t clock_hz() const { return clock_hz_; }

  private:
    enum class Source : std::uint8_t { none, own, transcoded, filler, relay, ended };

    static Source source_of(Feed feed);

    void turn_to(Source source, std::int64_t now_ns);
    void begin_relay(const Header& in, std::int64_t now_ns);
    bool resume_relay(const Header& in, std::int64_t now_ns);
    std::int64_t ns_of(std::uint32_t units) const;

    std::uint32_t ssrc_;
    std::uint32_t clock_hz_;
    std::uint16_t next_sequence_;
    std::uint32_t next_timestamp_;
    std::int64_t due_ns_ = 0;  ///< When the audio of the last packet ends.
    Source source_ = Source::none;
    bool mark_next_ = false;
    std::uint32_t relayed_ssrc_ = 0;
    std::uint16_t relay_begin_ = 0;  ///< Sequence number of the first packet relayed, as received.
    std::uint16_t sequence_offset_ = 0;
    std::uint32_t timestamp_offset_ = 0;
    std::uint32_t newest_timestamp_ = 0;  ///< Of the relayed stream, as received.
    bool relayed_before_ = false;         ///< The relayed stream goes on once its pause is over.
    std::uint32_t lag_ = 0;           ///< How far relayed packets are sent behind their place, after silence.
    std::int64_t late_since_ns_ = 0;  ///< When packets began to come too late; 0 while they do not.
    std::int64_t late_ns_ = 0;        ///< When the last of them came.
    std::uint16_t newest_sequence_ = 0;  ///< Of the relayed stream, as received.
};

}  // namespace trunkline::rtp
