// Encrypted streams over loopback sockets.

#include <doctest/doctest.h>

#include "trunkline/engine/srtp.hpp"

#if TRUNKLINE_HAVE_SRTP

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "secret_peer.hpp"
#include "trunkline/rtp/wire.hpp"

using namespace trunkline;
using namespace trunkline::tests;

TEST_SUITE("srtp") {
    TEST_CASE("an encrypted and a plain stream are linked") {
        Bench bench;
        SecretPeer left(1, 2);
        Peer right;
        auto a = bench.open();
        auto b = bench.open(a.get());
        a->connect(secretly(left, 2, 1));
        b->connect(towards(right.udp_port()));
        REQUIRE(a->link(*b));
        for (std::uint16_t n = 0; n < 20; ++n) {
            left.send(a->udp_port(), n, codes(static_cast<std::uint8_t>(n)));
            const auto heard = right.hear();
            REQUIRE(heard);
            CHECK(heard->payload == codes(static_cast<std::uint8_t>(n)));
            right.send(b->udp_port(), {0, false, n, n * 160U, 5}, codes(static_cast<std::uint8_t>(n + 50)));
            const auto opened = left.hear();
            REQUIRE(opened);
            CHECK(opened->payload == codes(static_cast<std::uint8_t>(n + 50)));
            CHECK(opened->header.ssrc == a->snapshot().ssrc_out);
        }
        CHECK(a->snapshot().dropped_unauthentic == 0);
    }

    TEST_CASE("two encrypted streams are linked, each under its own keys") {
        Bench bench;
        SecretPeer left(1, 2), right(3, 4);
        auto a = bench.open();
        auto b = bench.open(a.get());
        a->connect(secretly(left, 2, 1));
        b->connect(secretly(right, 4, 3));
        REQUIRE(a->link(*b));
        for (std::uint16_t n = 0; n < 20; ++n) {
            left.send(a->udp_port(), n, codes(7));
            const auto heard = right.hear();
            REQUIRE(heard);
            CHECK(heard->payload == codes(7));
            right.send(b->udp_port(), n, codes(8));
            REQUIRE(left.hear());
        }
    }

    TEST_CASE("what is not authentic is dropped, counted and moves no latch") {
        Bench bench;
        SecretPeer left(1, 2), stranger(9, 2);
        Peer right;
        auto a = bench.open();
        auto b = bench.open(a.get());
        a->connect(secretly(left, 2, 1));
        b->connect(towards(right.udp_port()));
        a->link(*b);
        stranger.send(a->udp_port(), 1, codes(66));
        stranger.socket.send(a->udp_port(), {0, false, 2, 320, secret_ssrc}, codes(66));
        stranger.socket.send_raw(a->udp_port(), {});
        stranger.socket.send_raw(a->udp_port(), {0x80, 201, 0, 1, 0, 0, 0, 1});
        CHECK(bench.until([&] { return a->snapshot().dropped_unauthentic == 4; }));
        CHECK(a->snapshot().rtcp_in == 0);
        const Bytes once = left.sealed(10, codes(7));
        left.socket.send_raw(a->udp_port(), once);
        left.socket.send_raw(a->udp_port(), once);
        const auto heard = right.hear();
        REQUIRE(heard);
        CHECK(heard->payload == codes(7));
        CHECK(bench.until([&] { return a->snapshot().duplicates == 1; }));
        CHECK(right.hears_nothing());
        right.send(b->udp_port(), {0, false, 1, 160, 5}, codes(9));
        REQUIRE(left.hear());
    }

    TEST_CASE("counters go on when a session changes and the keys do not") {
        Bench bench;
        SecretPeer left(1, 2);
        auto a = bench.open();
        a->connect(secretly(left, 2, 1));
        a->link(*a);
        const Bytes first = left.sealed(1, codes(7));
        left.socket.send_raw(a->udp_port(), first);
        REQUIRE(left.hear());
        MediaSettings held = secretly(left, 2, 1);
        held.send = false;
        a->connect(held);
        left.send(a->udp_port(), 2, codes(7));
        CHECK(left.socket.hears_nothing());
        a->connect(secretly(left, 2, 1));
        // The window remembers, so the keys were not set anew.
        left.socket.send_raw(a->udp_port(), first);
        CHECK(bench.until([&] { return a->snapshot().duplicates == 1; }));
        left.send(a->udp_port(), 3, codes(8));
        const auto heard = left.hear();
        REQUIRE(heard);
        CHECK(heard->payload == codes(8));
    }

    TEST_CASE("a far end that changes its key is heard under both, then under the new one alone") {
        Bench bench;
        SecretPeer left(1, 2);
        auto a = bench.open();
        a->connect(secretly(left, 2, 1));
        a->link(*a);
        left.send(a->udp_port(), 1, codes(7));
        REQUIRE(left.hear());
        a->connect(secretly(left, 2, 5));
        left.send(a->udp_port(), 2, codes(7));
        REQUIRE(left.hear());
        const Bytes late = left.sealed(3, codes(7));
        left.sent = SrtpContext::make(key_of(5), SrtpContext::Direction::sent, secret_ssrc);
        left.send(a->udp_port(), 4, codes(8));
        const auto heard = left.hear();
        REQUIRE(heard);
        CHECK(heard->payload == codes(8));
        left.socket.send_raw(a->udp_port(), late);
        CHECK(bench.until([&] { return a->snapshot().dropped_unauthentic == 1; }));
    }

    TEST_CASE("a session may turn to encryption and back") {
        Bench bench;
        SecretPeer left(1, 2);
        auto a = bench.open();
        a->connect(towards(left.socket.udp_port()));
        a->link(*a);
        left.socket.send(a->udp_port(), {0, false, 1, 160, secret_ssrc}, codes(7));
        REQUIRE(left.socket.hear());
        a->connect(secretly(left, 2, 1));
        left.send(a->udp_port(), 2, codes(7));
        REQUIRE(left.hear());
        a->connect(towards(left.socket.udp_port()));
        left.socket.send(a->udp_port(), {0, false, 3, 480, secret_ssrc}, codes(9));
        const auto heard = left.socket.hear();
        REQUIRE(heard);
        CHECK(heard->payload == codes(9));
        MediaSettings half = towards(left.socket.udp_port());
        half.srtp_send = key_of(1);
        CHECK_THROWS_AS(a->connect(half), std::invalid_argument);
    }

    TEST_CASE("a key that is taken up again is sent under with another SSRC") {
        Bench bench;
        SecretPeer left(1, 2);
        auto a = bench.open();
        a->link(*a);
        a->connect(secretly(left, 2, 1));
        left.send(a->udp_port(), 1, codes(7));
        const auto first = left.hear();
        REQUIRE(first);
        a->connect(towards(left.socket.udp_port()));
        left.socket.send(a->udp_port(), {0, false, 2, 320, secret_ssrc}, codes(7));
        REQUIRE(left.socket.hear());
        a->connect(secretly(left, 2, 1));
        left.send(a->udp_port(), 3, codes(7));
        const auto again = left.hear();
        REQUIRE(again);
        CHECK(again->header.ssrc != first->header.ssrc);
        CHECK(again->header.ssrc == a->snapshot().ssrc_out);
        // Reports count from zero, too: they must not lie under the keystream of the first ones either.
        a->close();
        Bytes farewell = left.socket.hear_rtcp();
        REQUIRE(farewell.size() > 8);
        CHECK(rtp::read_u32(&farewell[4]) == again->header.ssrc);
        CHECK(left.received->open(SrtpKind::rtcp, farewell).verdict == SrtpVerdict::authentic);
    }

    TEST_CASE("reports of an encrypted stream leave encrypted") {
        Bench bench;
        SecretPeer left(1, 2);
        auto a = bench.open();
        a->connect(secretly(left, 2, 1));
        a->link(*a);
        left.send(a->udp_port(), 1, codes(7));
        REQUIRE(left.hear());
        // The end of a stream is told at once; other reports come after seconds.
        a->close();
        Bytes farewell = left.socket.hear_rtcp();
        REQUIRE(!farewell.empty());
        const auto opened = left.received->open(SrtpKind::rtcp, farewell);
        CHECK(opened.verdict == SrtpVerdict::authentic);
        CHECK(opened.size_bytes == farewell.size() - 14);
    }

    TEST_CASE("reports of an encrypted stream are encrypted, on the port of RTP and on their own") {
        for (const bool shared : {true, false}) {
            CAPTURE(shared);
            Bench bench;
            SecretPeer left(1, 2);
            Peer reports;
            auto a = bench.open();
            auto settings = secretly(left, 2, 1);
            if (!shared) settings.rtcp_remote = *io::Address::parse("127.0.0.1", reports.udp_port());
            a->connect(settings);
            Bytes report = (shared ? left.socket : reports).hear_rtcp();
            REQUIRE_FALSE(report.empty());
            const auto opened = left.received->open(SrtpKind::rtcp, report);
            CHECK(opened.verdict == SrtpVerdict::authentic);
            // On a port of its own too, nothing is believed that is not encrypted.
            const Bytes forged{0x80, 201, 0, 1, 0, 0, 0xab, 0xcd};
            const auto odd = static_cast<std::uint16_t>(a->udp_port() + 1);
            (shared ? left.socket : reports).send_raw(shared ? a->udp_port() : odd, forged);
            CHECK(bench.until([&] { return a->snapshot().dropped_unauthentic == 1; }));
            CHECK(a->snapshot().rtcp_in == 0);
        }
    }

    TEST_CASE("RTCP of an encrypted stream is opened too") {
        Bench bench;
        SecretPeer left(1, 2);
        auto a = bench.open();
        a->connect(secretly(left, 2, 1));
        Bytes report{0x80, 201, 0, 1, 0, 0, 0xab, 0xcd};
        left.socket.send_raw(a->udp_port(), left.protect(SrtpKind::rtcp, report));
        CHECK(bench.until([&] { return a->snapshot().rtcp_in == 1; }));
    }
}

#endif
