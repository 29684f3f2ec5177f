#include "trunkline/rtp/rtcp_session.hpp"

#include <algorithm>
#include <utility>

namespace trunkline::rtp {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
/// A round trip longer than this is a far end's mistake.
constexpr std::uint32_t max_round_trip = 60U << 16;

/// Nanoseconds in units of 1/65536 s.
std::uint32_t in_middle_units(std::int64_t ns) {
    return static_cast<std::uint32_t>(ns / second_ns * 65536 + ns % second_ns * 65536 / second_ns);
}

}  // namespace

RtcpSession::RtcpSession(std::uint32_t ssrc, std::uint64_t seed, NtpTime ntp_at_zero)
    : ssrc_(ssrc), random_state_(seed), ntp_at_zero_(ntp_at_zero) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (char& letter : cname_) {
        letter = letters[random() >> 58];
    }
}

void RtcpSession::start(std::int64_t now_ns) {
    if (due_ns_ == never_ns) set_due(interval_ns / 2, now_ns);
}

NtpTime RtcpSession::ntp(std::int64_t now_ns) const {
    const auto whole_s = static_cast<std::uint64_t>(now_ns / second_ns);
    const auto rest_ns = static_cast<std::uint64_t>(now_ns % second_ns);
    return ntp_at_zero_ + (whole_s << 32) + (rest_ns << 32) / second_ns;
}

std::span<std::uint8_t> RtcpSession::report(std::span<std::uint8_t> room, const Outgoing& sent,
                                            Reception& reception, bool bye, std::int64_t now_ns) {
    RtcpWriter writer(room);
    write_report(writer, sent, reception, now_ns);
    writer.cname(ssrc_, cname());
    if (bye) {
        writer.bye(ssrc_);
        due_ns_ = never_ns;
    } else {
        set_due(interval_ns, now_ns);
    }
    return writer.packet();
}

void RtcpSession::write_report(RtcpWriter& writer, const Outgoing& sent, Reception& reception,
                               std::int64_t now_ns) {
    ReportBlock block;
    std::size_t blocks = 0;
    if (reception.news()) {
        blocks = 1;
        block = reception.report();
        if (last_sender_report_ && last_sender_report_->ssrc == block.ssrc) {
            block.last_report = last_sender_report_->middle;
            block.delay = in_middle_units(now_ns - last_sender_report_->arrival_ns);
        }
    }
    // A sender is who has sent since the report before the last (6.4).
    const bool sender = sent.packets != sent_packets_[1];
    sent_packets_ = {sent.packets, sent_packets_[0]};
    const NtpTime time = ntp(now_ns);
    if (sender) {
        const SenderInfo info{time, sent.rtp_timestamp,
                              static_cast<std::uint32_t>(sent.packets - before_.packets),
                              static_cast<std::uint32_t>(sent.payload_bytes - before_.payload_bytes)};
        writer.sender_report(ssrc_, info, {&block, blocks});
        remember_sent(middle_of(time));
    } else {
        writer.receiver_report(ssrc_, {&block, blocks});
    }
    if (far_extended_) write_extended(writer, sender, now_ns);
}

/// Measure the round trip also while one side sends nothing (RFC 3611 4.4, 4.5).
void RtcpSession::write_extended(RtcpWriter& writer, bool sender, std::int64_t now_ns) {
    if (!sender) {
        writer.reference_time(ssrc_, ntp(now_ns));
        remember_sent(middle_of(ntp(now_ns)));
    }
    if (last_reference_) {
        writer.reference_delay(ssrc_, {last_reference_->ssrc, last_reference_->middle,
                                       in_middle_units(now_ns - last_reference_->arrival_ns)});
    }
}

bool RtcpSession::take(std::span<const std::uint8_t> datagram, std::int64_t now_ns) {
    now_ns_ = now_ns;
    return read_rtcp(datagram, *this);
}

void RtcpSession::change_ssrc(std::uint32_t ssrc, const Outgoing& sent) {
    ssrc_ = ssrc;
    before_ = sent;
    sent_packets_ = {sent.packets, sent.packets};
    far_report_.reset();
}

bool RtcpSession::collided() {
    return std::exchange(collided_, false);
}

void RtcpSession::sender_report(std::uint32_t reporter, const SenderInfo& info) {
    if (reporter == ssrc_) {
        collided_ = collided_ || !was_sent(middle_of(info.ntp));
        return;
    }
    far_bye_ = false;
    last_sender_report_ = {reporter, middle_of(info.ntp), now_ns_};
}

void RtcpSession::receiver_report(std::uint32_t reporter) {
    if (reporter != ssrc_) far_bye_ = false;
}

void RtcpSession::report_block(std::uint32_t reporter, const ReportBlock& block) {
    if (reporter == ssrc_ || block.ssrc != ssrc_) return;
    far_report_ = {block.cumulative_lost, block.highest_sequence, block.jitter, block.fraction_lost,
                   discard_rate_};
    if (block.last_report != 0) measure(block.last_report, block.delay);
}

void RtcpSession::bye(std::uint32_t ssrc) {
    if (ssrc != ssrc_) far_bye_ = true;
}

void RtcpSession::reference_time(std::uint32_t reporter, NtpTime time) {
    if (reporter == ssrc_) return;
    far_extended_ = true;
    last_reference_ = {reporter, middle_of(time), now_ns_};
}

void RtcpSession::reference_delay(std::uint32_t reporter, const ReferenceDelay& item) {
    if (reporter == ssrc_) return;
    far_extended_ = true;
    if (item.ssrc == ssrc_ && item.last_reference != 0) measure(item.last_reference, item.delay);
}

void RtcpSession::voip_metrics(std::uint32_t reporter, const VoipMetrics& metrics) {
    if (reporter == ssrc_ || metrics.ssrc != ssrc_) return;
    far_extended_ = true;
    discard_rate_ = metrics.discard_rate;
    if (far_report_) far_report_->discard_rate = discard_rate_;
}

/// SplitMix64: even and cheap; nobody gains by guessing what it gives.
std::uint64_t RtcpSession::random() {
    std::uint64_t value = random_state_ += 0x9E3779B97F4A7C15;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
}

/// Half to one and a half of the mean, so that the two ends do not keep step. The mean needs no correction,
/// because there are no others to reconsider for (RFC 3550 6.3.1).
void RtcpSession::set_due(std::int64_t mean_ns, std::int64_t now_ns) {
    const double factor = 0.5 + static_cast<double>(random() >> 11) / static_cast<double>(1ULL << 53);
    due_ns_ = now_ns + static_cast<std::int64_t>(static_cast<double>(mean_ns) * factor);
}

/// Time there and back, from a time we sent and how long the far end kept it (RFC 3550 6.4.1).
void RtcpSession::measure(std::uint32_t sent_middle, std::uint32_t delay) {
    if (!was_sent(sent_middle)) return;
    const std::uint32_t took = middle_of(ntp(now_ns_)) - sent_middle - delay;
    // Clocks that differ by a hair make it fall below nothing.
    const std::uint32_t round_trip = static_cast<std::int32_t>(took) < 0 ? 0 : took;
    if (round_trip > max_round_trip || delay > max_round_trip) return;
    round_trip_us_ = static_cast<std::uint32_t>(std::uint64_t{round_trip} * 1'000'000 >> 16);
}

void RtcpSession::remember_sent(std::uint32_t middle) {
    sent_middles_[next_middle_] = middle;
    next_middle_ = (next_middle_ + 1) % sent_middles_.size();
}

bool RtcpSession::was_sent(std::uint32_t middle) const {
    return std::find(sent_middles_.begin(), sent_middles_.end(), middle) != sent_middles_.end();
}

}  // namespace trunkline::rtp
