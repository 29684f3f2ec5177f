#include "trunkline/rtp/sender.hpp"

#include <limits>

namespace trunkline::rtp {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
/// A jump of the relayed timestamps by more than this is a new run, not a pause.
constexpr std::uint32_t max_jump_s = 60;

/// A packet that is reflected comes back before so many others were sent.
constexpr std::uint16_t lately_packets = 500;

/// A clock of ours that is later than this stood still: nothing was to be sent.
constexpr std::int64_t max_stall_ns = 200'000'000;

/// How far a relayed stream may be sent behind its place after silence filled its pause.
constexpr std::int64_t max_lag_ns = 100'000'000;
/// A stream that comes later than that for so long has moved: its clock stood still, or its path is longer.
constexpr std::int64_t max_late_ns = 100'000'000;

bool is_before(std::uint16_t sequence, std::uint16_t other) {
    return static_cast<std::int16_t>(sequence - other) < 0;
}

}  // namespace

Header Sender::local(std::uint8_t payload_type, std::int64_t now_ns, Feed feed) {
    const bool paused = feed != Feed::transcoded && source_ != Source::none && idle_ns(now_ns) > max_stall_ns;
    if (source_ != source_of(feed) || paused) turn_to(source_of(feed), now_ns);
    Header header{payload_type, mark_next_, next_sequence_, next_timestamp_, ssrc_};
    mark_next_ = false;
    ++next_sequence_;
    return header;
}

void Sender::advance(std::uint32_t units, std::int64_t now_ns, Feed feed) {
    if (source_ != source_of(feed)) turn_to(source_of(feed), now_ns);
    next_timestamp_ += units;
    due_ns_ = now_ns + ns_of(units);
}

void Sender::rest(std::uint32_t units) {
    // Time that another source filled is counted when its turn ends.
    if (source_ != Source::own) return;
    next_timestamp_ += units;
    due_ns_ += ns_of(units);
    mark_next_ = true;
}

std::optional<Header> Sender::relayed(const Header& in, std::uint32_t units, std::int64_t now_ns) {
    const auto jump = static_cast<std::int32_t>(in.timestamp - newest_timestamp_);
    const auto limit = static_cast<std::int32_t>(max_jump_s * clock_hz_);
    const bool filled = source_ == Source::filler && relayed_before_;
    if ((source_ != Source::relay && !filled) || in.ssrc != relayed_ssrc_ || jump > limit || jump < -limit) {
        begin_relay(in, now_ns);
    } else if (filled ? !resume_relay(in, now_ns) : is_before(in.sequence, relay_begin_)) {
        return std::nullopt;
    }
    Header out = in;
    out.ssrc = ssrc_;
    out.sequence = static_cast<std::uint16_t>(in.sequence + sequence_offset_);
    out.timestamp = in.timestamp + timestamp_offset_ + lag_;
    out.marker = in.marker || mark_next_;
    mark_next_ = false;
    if (!is_before(out.sequence, next_sequence_)) {
        next_sequence_ = static_cast<std::uint16_t>(out.sequence + 1);
        // Keeps the begin within half the number space of the newest packet.
        const auto distance = static_cast<std::uint16_t>(in.sequence - relay_begin_);
        if (distance > 0x4000) relay_begin_ = static_cast<std::uint16_t>(in.sequence - 0x2000);
        newest_timestamp_ = in.timestamp;
        newest_sequence_ = in.sequence;
    }
    const std::uint32_t end = out.timestamp + units;
    if (static_cast<std::int32_t>(end - next_timestamp_) > 0) {
        next_timestamp_ = end;
        // What lags ends later, so that the next pause makes up for it.
        due_ns_ = now_ns + ns_of(units + lag_);
    }
    return out;
}

void Sender::end_relay() {
    if (source_ == Source::relay) source_ = Source::ended;
    relayed_before_ = false;
}

void Sender::restart(std::uint32_t ssrc, std::uint32_t clock_hz) {
    ssrc_ = ssrc;
    clock_hz_ = clock_hz;
    source_ = Source::none;
    relayed_before_ = false;
}

std::uint32_t Sender::timestamp_at(std::int64_t now_ns) const {
    if (source_ == Source::none) return next_timestamp_;
    // Before the end of the last packet or after it; in microseconds, which cannot overflow.
    const std::int64_t units = (now_ns - due_ns_) / 1000 * clock_hz_ / 1'000'000;
    return next_timestamp_ + static_cast<std::uint32_t>(units);
}

std::int64_t Sender::idle_ns(std::int64_t now_ns) const {
    return source_ == Source::none ? std::numeric_limits<std::int64_t>::max() : now_ns - due_ns_;
}

bool Sender::sent_lately(std::uint16_t sequence) const {
    const auto age = static_cast<std::uint16_t>(next_sequence_ - 1 - sequence);
    return age < lately_packets;
}

void Sender::turn_to(Source source, std::int64_t now_ns) {
    // The time nothing was sent shows in the timestamp, so that the far end keeps its clock (RFC 3550 5.1).
    if (source_ != Source::none && now_ns > due_ns_) {
        next_timestamp_ += static_cast<std::uint32_t>((now_ns - due_ns_) / 1000 * clock_hz_ / 1'000'000);
    }
    // Silence in a pause is no talk spurt (RFC 3551 4.1), unless nothing came before it.
    if (source != Source::filler || source_ == Source::none) mark_next_ = true;
    if (source == Source::own || source == Source::transcoded) relayed_before_ = false;
    source_ = source;
}

void Sender::begin_relay(const Header& in, std::int64_t now_ns) {
    turn_to(Source::relay, now_ns);
    relayed_ssrc_ = in.ssrc;
    relay_begin_ = in.sequence;
    sequence_offset_ = static_cast<std::uint16_t>(next_sequence_ - in.sequence);
    timestamp_offset_ = next_timestamp_ - in.timestamp;
    newest_timestamp_ = in.timestamp;
    relayed_before_ = true;
    lag_ = 0;
    late_since_ns_ = 0;
}

/// Go on with a relayed stream whose pause was filled: in its place, or behind the silence that was sent
/// there. False for a packet that comes too late.
bool Sender::resume_relay(const Header& in, std::int64_t now_ns) {
    // A straggler from before the pause.
    if (!is_before(newest_sequence_, in.sequence)) return false;
    const auto behind = static_cast<std::int32_t>(next_timestamp_ - (in.timestamp + timestamp_offset_));
    if (behind > 0 && ns_of(static_cast<std::uint32_t>(behind)) > max_lag_ns) {
        const bool first = late_since_ns_ == 0 || now_ns - late_ns_ > max_late_ns;
        if (first) late_since_ns_ = now_ns;
        late_ns_ = now_ns;
        // A talk spurt may begin after a pause in which its clock stood still.
        if (!in.marker && now_ns - late_since_ns_ < max_late_ns) return false;
        begin_relay(in, now_ns);
        return true;
    }
    source_ = Source::relay;
    relay_begin_ = in.sequence;
    sequence_offset_ = static_cast<std::uint16_t>(next_sequence_ - in.sequence);
    newest_timestamp_ = in.timestamp;
    lag_ = behind > 0 ? static_cast<std::uint32_t>(behind) : 0;
    late_since_ns_ = 0;
    return true;
}

Sender::Source Sender::source_of(Feed feed) {
    switch (feed) {
        case Feed::own:
            return Source::own;
        case Feed::transcoded:
            return Source::transcoded;
        case Feed::filler:
            break;
    }
    return Source::filler;
}

std::int64_t Sender::ns_of(std::uint32_t units) const {
    return units * second_ns / clock_hz_;
}

}  // namespace trunkline::rtp
