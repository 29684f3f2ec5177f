// RTCP, the latch and the source lock over real sockets.

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "peer.hpp"
#include "support.hpp"
#include "trunkline/rtp/rtcp.hpp"
#include "trunkline/rtp/wire.hpp"

using namespace trunkline;
using engine::EventKind;
using tests::Bench;
using tests::Peer;
using tests::towards;

namespace {

constexpr std::uint32_t far_ssrc = 0xFA12;

rtp::Header header(std::uint16_t sequence, std::uint32_t ssrc = far_ssrc) {
    return {0, false, sequence, sequence * 160U, ssrc};
}

std::vector<std::uint8_t> codes(std::uint8_t code) {
    return std::vector<std::uint8_t>(160, code);
}

/// A report of the far end, with or without a block about our packets.
std::vector<std::uint8_t> report(const std::vector<rtp::ReportBlock>& blocks, std::uint32_t ssrc = far_ssrc) {
    std::array<std::uint8_t, 300> room;
    rtp::RtcpWriter writer(room);
    writer.receiver_report(ssrc, blocks);
    writer.cname(ssrc, "far");
    return {writer.packet().begin(), writer.packet().end()};
}

/// Where the parts of a compound packet begin, by type.
std::vector<std::uint8_t> types_of(const std::vector<std::uint8_t>& packet) {
    std::vector<std::uint8_t> types;
    for (std::size_t at = 0; at + 4 <= packet.size(); at += 4 + 4U * rtp::read_u16(&packet[at + 2])) {
        types.push_back(packet[at + 1]);
    }
    return types;
}

}  // namespace

#if TRUNKLINE_HAVE_OPUS
TEST_CASE("Opus is sent twice as soon as the far end reports losses, and no longer than it does") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    auto settings = towards(peer.udp_port());
    settings.format = {codec::Codec::opus, 48000};
    settings.payload_type = 111;
    stream->connect(settings);
    stream->play(tests::playback(1, tests::tone(160, 8000, 80000)));
    const auto decoder = codec::make_decoder(settings.format);
    std::vector<std::int16_t> lost(320);
    // True if one of so many packets brings its predecessor with it.
    const auto redundant = [&](int packets) {
        for (int n = 0; n < packets; ++n) {
            const auto heard = peer.hear();
            REQUIRE(heard);
            if (decoder->recover(heard->payload, lost) > 0) return true;
        }
        return false;
    };
    CHECK_FALSE(redundant(10));
    const std::uint32_t ssrc = stream->snapshot().ssrc_out;
    peer.send_raw(stream->udp_port(), report({{ssrc, 26, 3, 9, 0, 0, 0}}));
    CHECK(redundant(50));
    for (std::uint32_t n = 1; n <= 20; ++n) {
        peer.send_raw(stream->udp_port(), report({{ssrc, 0, 3, 9 + n, 0, 0, 0}}));
    }
    REQUIRE(bench.until([&] { return stream->snapshot().far_reports == 21; }));
    // What was encoded before the last report may still be on its way.
    bool ends = false;
    for (int look = 0; look < 20 && !ends; ++look)
        ends = !redundant(10);
    CHECK(ends);
}
#endif

TEST_CASE("reports are exchanged on the port of RTP, and the round trip is measured") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->link(*stream);
    for (std::uint16_t n = 0; n < 10; ++n) {
        // The third is lost.
        if (n != 3) peer.send(stream->udp_port(), header(n), codes(1));
    }
    REQUIRE(bench.until([&] { return stream->snapshot().packets_out == 9; }));
    const auto packet = peer.hear_rtcp();
    REQUIRE(packet.size() > 52);
    CHECK(types_of(packet) == std::vector<std::uint8_t>{200, 202});
    CHECK(rtp::read_u32(&packet[4]) == stream->snapshot().ssrc_out);
    CHECK(rtp::read_u32(&packet[20]) == 9);
    CHECK(rtp::read_u32(&packet[24]) == 9 * 160);
    CHECK(rtp::read_u32(&packet[28]) == far_ssrc);
    CHECK(rtp::read_u32(&packet[32]) == (25U << 24 | 1));
    CHECK(rtp::read_u32(&packet[36]) == 9);
    const std::uint32_t middle = rtp::read_u32(&packet[10]);
    peer.send_raw(stream->udp_port(), report({{stream->snapshot().ssrc_out, 10, 3, 9, 80, middle, 0}}));
    REQUIRE(bench.until([&] { return stream->snapshot().round_trips == 1; }));
    const auto snapshot = stream->snapshot();
    CHECK(snapshot.rtcp_in == 1);
    CHECK(snapshot.rtcp_out == 1);
    CHECK(snapshot.round_trip_us < 2'000'000);
    CHECK(snapshot.sent_lost == 3);
    CHECK(snapshot.sent_jitter_us == 10'000);
    CHECK(snapshot.mos_sent > 100);
    CHECK(bench.until([&] { return stream->snapshot().mos_received > 100; }));
    const auto intervals = stream->intervals();
    REQUIRE(intervals.size() == 1);
    CHECK(intervals[0].expected == 10);
    CHECK(intervals[0].lost == 1);
    stream->close();
    const auto goodbye = peer.hear_rtcp();
    CHECK(types_of(goodbye) == std::vector<std::uint8_t>{200, 202, 203});
    CHECK(stream->intervals().size() == 1);
}

TEST_CASE("reports go from port to port where they have ports of their own") {
    Bench bench;
    Peer peer;
    Peer reports;
    auto stream = bench.open();
    auto settings = towards(peer.udp_port());
    settings.rtcp_remote = *io::Address::parse("127.0.0.1", reports.udp_port());
    stream->connect(settings);
    const auto odd = static_cast<std::uint16_t>(stream->udp_port() + 1);
    const auto packet = reports.hear_rtcp();
    CHECK(types_of(packet) == std::vector<std::uint8_t>{201, 202});
    reports.send_raw(odd, report({}));
    CHECK(bench.until([&] { return stream->snapshot().rtcp_in == 1; }));
    // What is no RTCP, comes from elsewhere, or is malformed, is counted and changes nothing.
    Peer stranger("127.0.1.9");
    stranger.send_raw(odd, report({}));
    reports.send(odd, header(1), codes(1));
    reports.send_raw(odd, {0x80, 200, 0, 1, 0, 0, 0, 1});
    CHECK(bench.until([&] { return stream->snapshot().dropped_invalid == 2; }));
    CHECK(stream->snapshot().dropped_foreign == 1);
    CHECK(stream->snapshot().rtcp_in == 1);
    CHECK(stream->snapshot().packets_in == 0);
    CHECK(peer.hears_nothing());
    stream->close();
    CHECK(types_of(reports.hear_rtcp()) == std::vector<std::uint8_t>{201, 202, 203});
    // The odd port is free again, once the engine is through with it.
    CHECK(bench.until([&] {
        try {
            return Peer("127.0.0.1", odd).udp_port() == odd;
        } catch (const std::runtime_error&) {
            return false;
        }
    }));
}

TEST_CASE("a stream that never said anything says no goodbye") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->close();
    CHECK(peer.hear_raw(200).empty());
}

TEST_CASE("on hold, reports are a sign of life") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    auto settings = towards(peer.udp_port());
    settings.receive = false;
    stream->connect(settings);
    stream->set_media_timeout(10'000'000, 600'000'000);
    for (int n = 0; n < 6; ++n) {
        peer.send_raw(stream->udp_port(), report({}));
        bench.fetch(100);
        bench.fetch(100);
    }
    CHECK_FALSE(bench.heard_of(EventKind::media_timeout));
    const auto event = bench.expect(EventKind::media_timeout);
    REQUIRE(event);
    CHECK(event->a == 1);
    CHECK(event->b >= 600);
}

TEST_CASE("another network must prove itself before anything is sent there") {
    Bench bench;
    Peer signalled;
    Peer real("127.0.1.1");
    auto stream = bench.open();
    stream->connect(towards(signalled.udp_port()));
    stream->link(*stream);
    for (std::uint16_t n = 0; n < 3; ++n) {
        real.send(stream->udp_port(), header(n), codes(1));
    }
    CHECK(bench.until([&] { return stream->snapshot().dropped_foreign == 3; }));
    CHECK(real.hears_nothing());
    real.send(stream->udp_port(), header(3), codes(7));
    const auto heard = real.hear();
    REQUIRE(heard);
    CHECK(heard->payload == codes(7));
    signalled.send(stream->udp_port(), header(4), codes(9));
    CHECK(bench.until([&] { return stream->snapshot().dropped_foreign == 4; }));
}

TEST_CASE("thousands of forged packets beside a stream are not heard and go nowhere") {
    Bench bench;
    Peer peer;
    Peer listener;
    Peer near;
    Peer elsewhere("127.0.2.2");
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(peer.udp_port()));
    b->connect(towards(listener.udp_port()));
    a->link(*b);
    int heard = 0;
    int forged = 0;
    for (std::uint16_t n = 0; n < 50; ++n) {
        peer.send(a->udp_port(), header(n), codes(1));
        for (std::uint16_t m = 0; m < 200; ++m) {
            const auto number = static_cast<std::uint16_t>(n * 200 + m);
            // In order from elsewhere, under the stream's own SSRC and another, and from its very address.
            if (m % 3 == 0) near.send(a->udp_port(), header(number), codes(66));
            if (m % 3 == 1) elsewhere.send(a->udp_port(), header(number, 5), codes(66));
            if (m % 3 == 2) peer.send(a->udp_port(), header(number, 0xBAD), codes(66));
            ++forged;
            if (m % 50 == 49) bench.fetch(1);
        }
        while (const auto packet = listener.hear(n == 49 ? 300 : 1)) {
            CHECK(packet->payload == codes(1));
            ++heard;
        }
    }
    const auto snapshot = a->snapshot();
    CHECK(heard >= 45);
    CHECK(snapshot.dropped_foreign > 0);
    CHECK(snapshot.suspects > 0);
    // What the kernel had no room for is counted by nobody.
    CHECK(snapshot.dropped_foreign + snapshot.suspects <= static_cast<std::uint64_t>(forged));
    CHECK(snapshot.ssrc_changes == 1);
    CHECK(near.hears_nothing());
    CHECK(elsewhere.hears_nothing());
}

TEST_CASE("a far end that chose our SSRC makes us take another") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    stream->link(*stream);
    peer.send(stream->udp_port(), header(1), codes(1));
    const auto before = peer.hear();
    REQUIRE(before);
    // A number far from ours.
    const auto other = static_cast<std::uint16_t>(before->header.sequence + 20'000);
    stream->connect(towards(peer.udp_port()));
    for (std::uint16_t n = 0; n < 8; ++n) {
        peer.send(stream->udp_port(), header(static_cast<std::uint16_t>(other + n), before->header.ssrc),
                  codes(2));
        bench.fetch(25);
    }
    CHECK(bench.until([&] { return stream->snapshot().collisions == 1; }));
    CHECK(stream->snapshot().ssrc_out != before->header.ssrc);
    // The old SSRC took its leave.
    const auto goodbye = peer.hear_rtcp();
    CHECK(types_of(goodbye).back() == 203);
    CHECK(rtp::read_u32(&goodbye[4]) == before->header.ssrc);
    const auto after = peer.hear();
    REQUIRE(after);
    CHECK(after->header.ssrc == stream->snapshot().ssrc_out);
}

TEST_CASE("a far end that follows us to every SSRC does not drive us on") {
    Bench bench;
    Peer peer;
    auto stream = bench.open();
    stream->connect(towards(peer.udp_port()));
    for (int n = 0; n < 100; ++n) {
        const auto ours = static_cast<std::uint32_t>(stream->snapshot().ssrc_out);
        peer.send(stream->udp_port(), header(static_cast<std::uint16_t>(40'000 + n), ours), codes(2));
        bench.fetch(3);
    }
    const std::uint64_t collisions = stream->snapshot().collisions;
    CHECK(collisions >= 1);
    CHECK(collisions <= 3 * static_cast<std::uint64_t>(tests::patience()));
}

TEST_CASE("a far end that sends our packets back is heard, two of them do not drive packets in a circle") {
    Bench bench;
    Peer left;
    Peer right;
    auto a = bench.open();
    auto b = bench.open(a.get());
    a->connect(towards(left.udp_port()));
    b->connect(towards(right.udp_port()));
    a->link(*b);
    left.send(a->udp_port(), header(1), codes(1));
    auto packet = right.hear();
    REQUIRE(packet);
    // Right reflects, and left hears it.
    right.send(b->udp_port(), packet->header, packet->payload);
    packet = left.hear();
    REQUIRE(packet);
    CHECK(packet->payload == codes(1));
    CHECK(b->snapshot().collisions == 0);
    // Left reflects that as well. It must end here.
    left.send(a->udp_port(), packet->header, packet->payload);
    CHECK(right.hears_nothing());
}
