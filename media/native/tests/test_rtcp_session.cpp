#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "support.hpp"
#include "trunkline/rtp/reception.hpp"
#include "trunkline/rtp/rtcp_session.hpp"

using namespace trunkline::rtp;
using trunkline::tests::ms;

namespace {

constexpr std::int64_t second = 1000 * ms;

/// One end on virtual time.
struct End {
    explicit End(std::uint32_t ssrc, std::uint64_t seed) : session(ssrc, seed, 0xE000000000000000) {}

    std::vector<std::uint8_t> report(std::int64_t now_ns, bool bye = false) {
        std::array<std::uint8_t, RtcpSession::max_bytes> room;
        const auto packet = session.report(room, sent, reception, bye, now_ns);
        REQUIRE_FALSE(packet.empty());
        return {packet.begin(), packet.end()};
    }

    /// Send `count` packets of 20 ms, of which the other hears all but the first `lost`.
    void speak(End& to, int count, int lost, std::int64_t now_ns) {
        for (int n = 0; n < count; ++n) {
            const Header header{0, false, sequence, timestamp, session.ssrc()};
            if (n >= lost) to.reception.note(header, true, now_ns + n * 20 * ms);
            ++sequence;
            timestamp += 160;
            ++sent.packets;
            sent.payload_bytes += 160;
        }
        sent.rtp_timestamp = timestamp;
    }

    RtcpSession session;
    Reception reception{8000};
    Outgoing sent;
    std::uint16_t sequence = 65500;
    std::uint32_t timestamp = 5;
};

}  // namespace

TEST_CASE("the round trip is measured through reports, both ways") {
    End a{1, 10};
    End b{2, 20};
    a.speak(b, 50, 0, 0);
    b.speak(a, 50, 0, 0);
    // 30 ms there, 40 ms back.
    b.session.take(a.report(2 * second), 2 * second + 30 * ms);
    a.session.take(b.report(4 * second), 4 * second + 40 * ms);
    REQUIRE(a.session.round_trip_us());
    CHECK(*a.session.round_trip_us() == doctest::Approx(70'000).epsilon(0.001));
    b.speak(a, 1, 0, 4 * second);
    b.session.take(a.report(5 * second), 5 * second + 30 * ms);
    REQUIRE(b.session.round_trip_us());
    CHECK(*b.session.round_trip_us() == doctest::Approx(70'000).epsilon(0.001));
}

TEST_CASE("loss and the highest number are told across the wrap") {
    End a{1, 10};
    End b{2, 20};
    a.speak(b, 10, 0, 0);
    a.session.take(b.report(1 * second), 1 * second);
    CHECK(a.session.far_report()->cumulative_lost == 0);
    a.speak(b, 40, 10, 2 * second);
    const auto packet = b.report(3 * second);
    // Ten of forty, in 1/256.
    CHECK(packet[12] == 64);
    a.session.take(packet, 3 * second);
    CHECK(a.session.far_report()->cumulative_lost == 10);
    CHECK(a.session.far_report()->highest_sequence == 0x10000 + 65549 - 65536);
}

TEST_CASE("more duplicates than losses make the loss negative and the fraction zero") {
    End a{1, 10};
    End b{2, 20};
    for (const std::uint16_t sequence : {1, 2, 2, 3, 3}) {
        b.reception.note({0, false, sequence, sequence * 160U, 1}, true, sequence * 20 * ms);
    }
    const ReportBlock block = b.reception.report();
    CHECK(block.cumulative_lost == -2);
    CHECK(block.fraction_lost == 0);
}

TEST_CASE("a sender report names the time of its timestamp and counts what was sent") {
    End a{1, 10};
    End b{2, 20};
    a.speak(b, 7, 0, 0);
    const auto packet = a.report(90 * second + 500 * ms);
    CHECK(packet[1] == 200);
    CHECK(packet[0] == 0x80);
    const std::vector<std::uint8_t> expected{0xE0, 0,    0, 90, 0x80, 0, 0, 0, 0, 0,
                                             4,    0x65, 0, 0,  0,    7, 0, 0, 4, 0x60};
    CHECK(std::vector<std::uint8_t>(packet.begin() + 8, packet.begin() + 28) == expected);
}

TEST_CASE("who sends no more becomes a receiver after two reports") {
    End a{1, 10};
    End b{2, 20};
    a.speak(b, 5, 0, 0);
    CHECK(a.report(1 * second)[1] == 200);
    CHECK(a.report(6 * second)[1] == 200);
    CHECK(a.report(11 * second)[1] == 201);
    // Nothing came since its last report either, so that it has nothing to say.
    CHECK(b.report(12 * second)[0] == 0x81);
    CHECK(b.report(17 * second)[0] == 0x80);
}

TEST_CASE("reports come every five seconds on average, the first earlier, and never in step") {
    double sum_s = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        End end{1, seed};
        CHECK(end.session.due_ns() == RtcpSession::never_ns);
        end.session.start(0);
        const std::int64_t first_ns = end.session.due_ns();
        CHECK(first_ns > 1250 * ms);
        CHECK(first_ns < 3750 * ms);
        end.session.start(10 * second);
        CHECK(end.session.due_ns() == first_ns);
        end.report(first_ns);
        const std::int64_t gap_ns = end.session.due_ns() - first_ns;
        CHECK(gap_ns > 2500 * ms);
        CHECK(gap_ns < 7500 * ms);
        sum_s += static_cast<double>(gap_ns) / 1e9;
    }
    CHECK(sum_s / 400 == doctest::Approx(5.0).epsilon(0.03));
}

TEST_CASE("a goodbye ends the reports and is heard") {
    End a{1, 10};
    End b{2, 20};
    a.session.start(0);
    const auto packet = a.report(1 * second, true);
    CHECK(a.session.due_ns() == RtcpSession::never_ns);
    b.session.take(packet, 1 * second);
    CHECK(b.session.far_bye());
    b.session.take(a.report(2 * second), 2 * second);
    CHECK_FALSE(b.session.far_bye());
}

TEST_CASE("each stream has a name of its own that tells nothing") {
    End a{1, 10};
    End b{1, 11};
    CHECK(a.session.cname().size() == 16);
    CHECK(a.session.cname() != b.session.cname());
}

TEST_CASE("reports under our own SSRC are a collision; another SSRC begins its counts anew") {
    End a{1, 10};
    End b{1, 20};
    a.speak(b, 5, 0, 0);
    // What comes back from a mirror is not the far end's.
    a.session.take(a.report(1 * second), 1 * second);
    CHECK_FALSE(a.session.collided());
    b.speak(a, 5, 0, 0);
    a.session.take(b.report(2 * second), 2 * second);
    CHECK(a.session.collided());
    CHECK_FALSE(a.session.collided());
    a.session.change_ssrc(77, a.sent);
    CHECK_FALSE(a.session.far_report());
    a.speak(b, 3, 0, 2 * second);
    const auto packet = a.report(3 * second);
    CHECK(packet[23] == 3);
}

TEST_CASE("a round trip made up by the far end is not believed") {
    End a{1, 10};
    End b{2, 20};
    a.speak(b, 5, 0, 0);
    a.report(10 * second);
    std::array<std::uint8_t, 100> room;
    const auto tell = [&](std::uint32_t last, std::uint32_t delay) {
        RtcpWriter writer(room);
        const std::array<ReportBlock, 1> blocks{ReportBlock{1, 0, 0, 1, 0, last, delay}};
        writer.receiver_report(2, blocks);
        REQUIRE(a.session.take(writer.packet(), 11 * second));
    };
    const std::uint32_t told = middle_of(a.session.ntp(10 * second));
    tell(told - 5000, 0);
    CHECK_FALSE(a.session.round_trip_us());
    tell(told, 0xFFFFFFF0);
    CHECK_FALSE(a.session.round_trip_us());
    tell(told, 2 << 16);
    REQUIRE(a.session.round_trip_us());
    CHECK(*a.session.round_trip_us() == 0);
    tell(told, 1 << 15);
    CHECK(*a.session.round_trip_us() == 500'000);
}

TEST_CASE("who only listens still measures the round trip when both speak extended reports") {
    End a{1, 10};
    End b{2, 20};
    std::array<std::uint8_t, 100> room;
    RtcpWriter writer(room);
    writer.receiver_report(2, {});
    writer.reference_time(2, b.session.ntp(1 * second));
    REQUIRE(a.session.take(writer.packet(), 1 * second));
    const auto packet = a.report(2 * second);
    // b never sent that time itself, so it does not believe it; but it learns that a speaks these.
    REQUIRE(b.session.take(packet, 2 * second));
    CHECK_FALSE(b.session.round_trip_us());
    a.session.take(b.report(3 * second), 3 * second + 25 * ms);
    b.session.take(a.report(4 * second), 4 * second + 25 * ms);
    REQUIRE(b.session.round_trip_us());
    CHECK(*b.session.round_trip_us() == doctest::Approx(50'000).epsilon(0.001));
}

TEST_CASE("packets that the far end throws away are told by its VoIP metrics") {
    End a{1, 10};
    std::vector<std::uint8_t> packet{0x81, 201, 0, 7, 0, 0, 0, 2, 0, 0, 0, 1, 51, 0, 0, 9};
    packet.insert(packet.end(), 16, 0);
    packet.insert(packet.end(), {0x80, 207, 0, 10, 0, 0, 0, 2, 7, 0, 0, 8, 0, 0, 0, 1, 10, 26});
    packet.insert(packet.end(), 26, 0);
    REQUIRE(a.session.take(packet, second));
    REQUIRE(a.session.far_report());
    CHECK(a.session.far_report()->discard_rate == 26);
    CHECK(a.session.far_report()->fraction_lost == 51);
    CHECK(a.session.far_report()->cumulative_lost == 9);
}

TEST_CASE("another source must prove itself and wait until the first is silent") {
    Reception reception{8000};
    const auto note = [&](std::uint32_t ssrc, std::uint16_t sequence, std::int64_t at_ms) {
        return reception.note({0, false, sequence, sequence * 160U, ssrc}, true, at_ms * ms);
    };
    CHECK(note(1, 10, 0) == Verdict::restarted);
    CHECK(note(1, 11, 20) == Verdict::heard);
    // Forged beside a living stream, in order even.
    for (std::uint16_t n = 0; n < 50; ++n) {
        CHECK(note(2, n, 21 + n) == Verdict::suspect);
        if (n % 20 == 19) CHECK(note(1, static_cast<std::uint16_t>(12 + n / 20), 22 + n) == Verdict::heard);
    }
    CHECK(reception.suspects() == 50);
    // The far end changes over.
    CHECK(note(3, 500, 80) == Verdict::suspect);
    CHECK(note(3, 501, 100) == Verdict::suspect);
    CHECK(note(3, 502, 150) == Verdict::restarted);
    CHECK(note(3, 503, 170) == Verdict::heard);
    CHECK(reception.ssrc() == 3);
    CHECK(note(1, 14, 190) == Verdict::suspect);
    CHECK(reception.sequence().lost() == 0);
    reception.reopen();
    CHECK(note(4, 9, 200) == Verdict::restarted);
}

TEST_CASE("bursts are counted as they are closed, parted and filled") {
    SequenceTracker tracker;
    const auto note = [&](int sequence) { tracker.note(static_cast<std::uint16_t>(sequence)); };
    note(0);
    note(4);
    CHECK(tracker.bursts() == 1);
    note(2);  // 1 and 3 are still missing.
    CHECK(tracker.bursts() == 2);
    note(1);
    CHECK(tracker.bursts() == 1);
    note(3);
    CHECK(tracker.bursts() == 0);
    CHECK(tracker.lost() == 0);
    note(7);
    note(5);
    CHECK(tracker.bursts() == 1);
    CHECK(tracker.lost() == 1);
}
