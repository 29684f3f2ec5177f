#include <doctest/doctest.h>

#include "support.hpp"
#include "trunkline/rtp/sender.hpp"

using namespace trunkline;
using tests::ms;

namespace {

rtp::Sender make() {
    return {0xCAFE, 1000, 50000, 8000};
}

rtp::Header from_far(std::uint16_t sequence, std::uint32_t timestamp, bool marker = false) {
    return {0, marker, sequence, timestamp, 0xBEEF};
}

}  // namespace

TEST_CASE("local audio counts on and marks its first packet") {
    auto sender = make();
    for (std::uint32_t n = 0; n < 5; ++n) {
        const auto header = sender.local(0, n * 20 * ms);
        CHECK(header.sequence == 1000 + n);
        CHECK(header.timestamp == 50000 + n * 160);
        CHECK(header.marker == (n == 0));
        CHECK(header.ssrc == 0xCAFE);
        sender.advance(160, n * 20 * ms);
    }
}

TEST_CASE("relayed packets keep their distances") {
    auto sender = make();
    const auto first = sender.relayed(from_far(7, 100), 160, 0);
    REQUIRE(first);
    CHECK(first->sequence == 1000);
    CHECK(first->timestamp == 50000);
    CHECK(first->marker);
    CHECK(first->ssrc == 0xCAFE);
    // Packet 8 is lost, 10 comes before 9.
    CHECK(sender.relayed(from_far(10, 580), 160, 60 * ms)->sequence == 1003);
    const auto late = sender.relayed(from_far(9, 420), 160, 61 * ms);
    CHECK(late->sequence == 1002);
    CHECK(late->timestamp == 50320);
    CHECK_FALSE(late->marker);
    CHECK(sender.relayed(from_far(11, 740), 160, 80 * ms)->sequence == 1004);
}

TEST_CASE("a change of source leaves no hole in the numbers and keeps the clock") {
    auto sender = make();
    sender.relayed(from_far(7, 100), 160, 0);
    // 100 ms of nothing, then local audio: the timestamp shows the pause.
    const auto local = sender.local(0, 120 * ms);
    CHECK(local.sequence == 1001);
    CHECK(local.timestamp == 50000 + 120 * 8);
    CHECK(local.marker);
    sender.advance(160, 120 * ms);
    // Back to the relayed stream, which has gone on.
    const auto back = sender.relayed(from_far(13, 1060), 160, 140 * ms);
    CHECK(back->sequence == 1002);
    CHECK(back->timestamp == 50000 + 140 * 8);
    CHECK(back->marker);
    // A straggler from before the change would take the number of local audio.
    CHECK_FALSE(sender.relayed(from_far(12, 900), 160, 141 * ms));
}

TEST_CASE("another relayed source starts a new run") {
    auto sender = make();
    sender.relayed(from_far(7, 100), 160, 0);
    rtp::Header other = from_far(40000, 99999);
    other.ssrc = 1;
    const auto header = sender.relayed(other, 160, 20 * ms);
    CHECK(header->sequence == 1001);
    CHECK(header->timestamp == 50160);
}

TEST_CASE("a leap of the relayed timestamps is not passed on") {
    auto sender = make();
    sender.relayed(from_far(7, 100), 160, 0);
    const auto header = sender.relayed(from_far(8, 100 + 8000 * 3600), 160, 20 * ms);
    CHECK(header->sequence == 1001);
    CHECK(header->timestamp == 50160);
}

TEST_CASE("a relayed stream that numbers its packets anew goes on from the last one") {
    // Under the same SSRC, and with timestamps that go on: lower numbers, and such as a receiver of SRTP
    // would take for old ones (RFC 3711 3.3.1).
    for (const std::uint16_t anew : {std::uint16_t{500}, std::uint16_t{45'000}}) {
        auto sender = make();
        REQUIRE(sender.relayed(from_far(1000, 100), 160, 0));
        sender.end_relay();
        for (std::uint16_t n = 0; n < 3; ++n) {
            const auto header = sender.relayed(from_far(static_cast<std::uint16_t>(anew + n), 260 + n * 160U),
                                               160, (n + 1) * 20 * ms);
            REQUIRE(header);
            CHECK(header->sequence == 1001 + n);
            CHECK(header->timestamp == 50160 + n * 160);
        }
    }
}

TEST_CASE("a long relay goes on across many wraps of the sequence numbers") {
    auto sender = make();
    std::uint16_t expected = 1000;
    for (std::uint32_t n = 0; n < 200'000; ++n) {
        const auto header =
            sender.relayed(from_far(static_cast<std::uint16_t>(n), n * 160), 160, n * 20 * ms);
        REQUIRE(header);
        REQUIRE(header->sequence == expected++);
    }
}

TEST_CASE("silence in a pause of the relayed stream is no talk spurt, and the stream goes on at its place") {
    auto sender = make();
    REQUIRE(sender.relayed(from_far(7, 100), 160, 0));
    CHECK(sender.idle_ns(60 * ms) == 40 * ms);
    const auto silence = sender.local(0, 60 * ms, rtp::Feed::filler);
    CHECK(silence.sequence == 1001);
    CHECK(silence.timestamp == 50000 + 60 * 8);
    CHECK_FALSE(silence.marker);
    sender.advance(160, 60 * ms, rtp::Feed::filler);
    CHECK(sender.fills());
    // A straggler, and the same packet again.
    CHECK_FALSE(sender.relayed(from_far(6, 100 - 160), 160, 70 * ms));
    CHECK_FALSE(sender.relayed(from_far(7, 100), 160, 70 * ms));
    const auto back = sender.relayed(from_far(8, 100 + 100 * 8), 160, 100 * ms);
    REQUIRE(back);
    CHECK(back->sequence == 1002);
    CHECK(back->timestamp == 50000 + 100 * 8);
    CHECK_FALSE(back->marker);
}

TEST_CASE("what silence has taken the place of follows behind it, or is dropped when it is too late") {
    auto sender = make();
    REQUIRE(sender.relayed(from_far(7, 100), 160, 0));
    for (std::int64_t at = 40; at < 240; at += 20) {
        sender.local(0, at * ms, rtp::Feed::filler);
        sender.advance(160, at * ms, rtp::Feed::filler);
    }
    CHECK_FALSE(sender.relayed(from_far(8, 260), 160, 240 * ms));
    const auto late = sender.relayed(from_far(15, 100 + 160 * 8), 160, 240 * ms);
    REQUIRE(late);
    CHECK(late->sequence == 1011);
    CHECK(late->timestamp == 50000 + 240 * 8);
    const auto next = sender.relayed(from_far(16, 100 + 160 * 9), 160, 241 * ms);
    CHECK(next->timestamp == 50000 + 260 * 8);
    // The next pause makes up for it: 80 ms behind, of which 59 ms pass before the silence begins.
    CHECK(sender.idle_ns(400 * ms) == (400 - 241 - 20 - 80) * ms);
}

TEST_CASE("a clock that stood still goes on where the time is") {
    auto sender = make();
    sender.local(0, 0);
    sender.advance(160, 0);
    const auto after = sender.local(0, 1020 * ms);
    CHECK(after.sequence == 1001);
    CHECK(after.timestamp == 50000 + 1020 * 8);
    CHECK(after.marker);
}
