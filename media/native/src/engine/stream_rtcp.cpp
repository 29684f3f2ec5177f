// RTCP of a stream: what comes, what is due, and the quality that is measured by it.

#include <time.h>

#include <algorithm>
#include <array>

#include "trunkline/engine/random.hpp"
#include "trunkline/engine/stream.hpp"

namespace trunkline::engine {

namespace {

/// Seconds from 1900, where NTP begins to count, to 1970.
constexpr std::uint64_t ntp_epoch_s = 2'208'988'800;
/// Our SSRC is changed no more often than this.
constexpr std::int64_t collision_interval_ns = 1'000'000'000;

/// Wall-clock time at the zero of the engine's clock. Reports keep to it, so that a wall clock that is set
/// does not reach them.
rtp::NtpTime ntp_at_zero(std::int64_t now_ns) {
    timespec wall{};
    clock_gettime(CLOCK_REALTIME, &wall);
    const std::int64_t zero_ns = std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec - now_ns;
    const auto seconds = static_cast<std::uint64_t>(zero_ns / 1'000'000'000) + ntp_epoch_s;
    const auto rest_ns = static_cast<std::uint64_t>(zero_ns % 1'000'000'000);
    return (seconds << 32) + (rest_ns << 32) / 1'000'000'000;
}

}  // namespace

RtcpState::RtcpState(Stream& stream, std::uint32_t ssrc, std::int64_t now_ns)
    : session(ssrc, random_value<std::uint64_t>(), ntp_at_zero(now_ns)), meter(now_ns), stream_(stream) {}

bool RtcpState::receive(io::ReceiveBatch& batch, io::SendBatch&, std::int64_t now_ns) {
    const std::size_t count = socket.receive(batch);
    for (std::size_t n = 0; n < count; ++n) {
        const bool whole = !batch.truncated(n);
        const auto datagram = whole ? batch.datagram(n) : std::span<std::uint8_t>();
        stream_.take_rtcp_only(datagram, batch.source(n), now_ns);
    }
    return count == io::batch_datagrams;
}

void Stream::open_rtcp(io::UdpSocket socket) {
    rtcp_.socket = std::move(socket);
}

/// The port for RTCP takes nothing else.
void Stream::take_rtcp_only(std::span<std::uint8_t> datagram, const io::Address& source,
                            std::int64_t now_ns) {
    if (rtp::is_rtcp(datagram)) {
        take_rtcp(datagram, source, false, now_ns);
    } else {
        figures_.dropped_invalid.add(1);
    }
}

void Stream::take_rtcp(std::span<std::uint8_t> datagram, const io::Address& source, bool shared,
                       std::int64_t now_ns) {
    if (!connected_) {
        figures_.dropped_unwanted.add(1);
        return;
    }
    if (!rtcp_.path.allows(source, shared, latch_, now_ns)) {
        figures_.dropped_foreign.add(1);
        return;
    }
    // What came on the port of RTP was opened there.
    if (!shared) datagram = media_socket_.open(datagram);
    if (datagram.empty()) return;
    if (!rtcp_.session.take(datagram, now_ns)) {
        figures_.dropped_invalid.add(1);
        return;
    }
    rtcp_.path.heard(source, shared, now_ns);
    rtcp_.heard_ns = now_ns;
    if (!settings_.receive) silence_reported_ = false;
    figures_.rtcp_in.add(1);
    note_far_report();
    if (rtcp_.session.collided() && !reflecting_) change_ssrc(now_ns);
}

/// Put down what the far end says about our packets.
void Stream::note_far_report() {
    const auto& far = rtcp_.session.far_report();
    if (const auto round_trip_us = rtcp_.session.round_trip_us()) {
        figures_.round_trip_us.set(*round_trip_us);
        figures_.round_trips.add(1);
    }
    if (!far) return;
    // A codec that can repeat itself does so by as much as is lost.
    if (send_path_ != nullptr) send_path_->note_loss(far->fraction_lost);
    const rtp::QualityContext context = quality_context();
    const auto jitter_us = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(far->jitter * 1'000'000ULL / context.clock_hz, 10'000'000));
    const auto sent = static_cast<std::uint32_t>(figures_.packets_out.get());
    const auto lost = std::min(static_cast<std::uint32_t>(std::max(far->cumulative_lost, 0)), sent);
    figures_.sent_lost.set(lost);
    figures_.sent_jitter_us.set(jitter_us);
    figures_.far_reports.add(1);
    figures_.mos_sent.set(rtp::score_sent(sent, lost, far->discard_rate, jitter_us, context));
}

void Stream::check_rtcp(std::int64_t now_ns) {
    if (!connected_) return;
    figures_.mos_received.set(rtp::score_received(received_totals(), quality_context()));
    if (rtcp_.session.ssrc() != sender_.ssrc()) follow_ssrc();
    if (now_ns >= rtcp_.session.due_ns()) send_report(false, now_ns);
}

void Stream::send_report(bool bye, std::int64_t now_ns) {
    rtcp_.history.push(
        rtcp_.meter.close(received_totals(), rtcp_.session.far_report(), quality_context(), now_ns));
    std::array<std::uint8_t, rtp::RtcpSession::max_bytes + io::protection_bytes> room;
    const auto report = rtcp_.session.report(std::span(room).first(rtp::RtcpSession::max_bytes),
                                             outgoing(now_ns), reception_, bye, now_ns);
    const io::Address to = rtcp_.path.remote(latch_);
    if (!to.reachable()) return;
    rtcp_.spoken = true;
    const bool own_socket = rtcp_.path.separate() && rtcp_.socket.descriptor() >= 0;
    media_socket_.send_rtcp(room.data(), report.size(), own_socket ? &rtcp_.socket : nullptr, to);
}

/// Say goodbye, if anything was ever said (RFC 3550 6.3.7).
void Stream::say_goodbye(std::int64_t now_ns) {
    if (!connected_ || (!rtcp_.spoken && figures_.packets_out.get() == 0)) return;
    send_report(true, now_ns);
}

rtp::Outgoing Stream::outgoing(std::int64_t now_ns) const {
    rtp::Outgoing sent;
    sent.packets = figures_.packets_out.get();
    const std::uint64_t header_bytes = sent.packets * rtp::header_bytes;
    sent.payload_bytes = std::max(figures_.bytes_out.get(), header_bytes) - header_bytes;
    sent.rtp_timestamp = sender_.timestamp_at(now_ns);
    return sent;
}

rtp::ReceivedTotals Stream::received_totals() const {
    const rtp::SequenceTracker& sequence = reception_.sequence();
    return {sequence.expected(), sequence.lost(), figures_.late.get(), sequence.bursts(),
            reception_.jitter_us()};
}

rtp::QualityContext Stream::quality_context() const {
    return {settings_.format.codec, settings_.format.clock_hz, settings_.ptime_ms,
            rtcp_.session.round_trip_us()};
}

/// The far end uses our SSRC: take another, after saying goodbye under the old one (RFC 3550 8.2).
void Stream::change_ssrc(std::int64_t now_ns) {
    // Who follows us to every SSRC does not do so by chance.
    if (figures_.collisions.get() != 0 && now_ns - collided_ns_ < collision_interval_ns) return;
    collided_ns_ = now_ns;
    figures_.collisions.add(1);
    say_goodbye(now_ns);
    sender_.restart(rtcp_.session.random_ssrc(), sender_.clock_hz());
    figures_.ssrc_out.set(sender_.ssrc());
    follow_ssrc();
    rtcp_.session.start(now_ns);
}

/// Report under the SSRC that is sent with.
void Stream::follow_ssrc() {
    rtcp_.session.change_ssrc(sender_.ssrc(), outgoing(0));
    rtcp_.meter.forget_far();
}

}  // namespace trunkline::engine
