#include <doctest/doctest.h>

#include <cstdint>
#include <random>

#include "support.hpp"
#include "trunkline/engine/latch.hpp"
#include "trunkline/engine/rtcp_path.hpp"

using namespace trunkline;
using engine::Latch;
using tests::ms;

namespace {

io::Address address(const char* host, std::uint16_t udp_port) {
    return *io::Address::parse(host, udp_port);
}

rtp::Header numbered(std::uint16_t sequence, std::uint32_t ssrc = 1) {
    return {0, false, sequence, sequence * 160U, ssrc};
}

/// Send packets in a row, 20 ms apart; how many were dropped before the first that was heard.
int dropped_until_heard(Latch& latch, const io::Address& source, std::int64_t& now_ns,
                        std::uint32_t ssrc = 1) {
    for (std::uint16_t n = 0; n < 200; ++n) {
        now_ns += 20 * ms;
        if (latch.accept(source, numbered(n, ssrc), now_ns)) return n;
    }
    return 200;
}

const auto signalled = address("198.51.100.1", 4000);
const auto thief = address("203.0.113.9", 5555);

}  // namespace

TEST_CASE("the signalled address is believed at once, and nobody else after it") {
    Latch latch;
    CHECK_FALSE(latch.accept(signalled, numbered(1), 0));
    latch.signal(signalled);
    CHECK(latch.remote() == signalled);
    CHECK(latch.accept(signalled, numbered(1), 0));
    std::int64_t now_ns = 0;
    for (std::uint16_t n = 0; n < 500; ++n) {
        now_ns += 20 * ms;
        CHECK_FALSE(latch.accept(thief, numbered(n), now_ns));
        CHECK_FALSE(latch.accept(address("198.51.100.1", 4002), numbered(n), now_ns));
        CHECK(latch.accept(signalled, numbered(n), now_ns));
    }
    CHECK(latch.remote() == signalled);
    CHECK(latch.moves() == 1);
}

TEST_CASE("a source that was not signalled must send packets in a row") {
    Latch latch;
    std::int64_t now_ns = 0;
    SUBCASE("two where only the port differs") {
        latch.signal(signalled);
        CHECK(dropped_until_heard(latch, address("198.51.100.1", 4008), now_ns) == 1);
    }
    SUBCASE("four in the same network") {
        latch.signal(signalled);
        CHECK(dropped_until_heard(latch, address("198.51.100.77", 4000), now_ns) == 3);
    }
    SUBCASE("four from anywhere, where a NAT must stand between") {
        latch.signal(address("10.1.2.3", 4000));
        CHECK(dropped_until_heard(latch, thief, now_ns) == 3);
        CHECK(latch.remote() == thief);
    }
    SUBCASE("as many and a moment later, where none need stand between") {
        latch.signal(signalled);
        CHECK(dropped_until_heard(latch, thief, now_ns) == 10);
    }
}

TEST_CASE("packets that do not follow one another prove nothing") {
    Latch latch;
    latch.signal(signalled);
    std::mt19937 random{7};
    const auto near = address("198.51.100.1", 4002);
    for (int n = 0; n < 1000; ++n) {
        CHECK_FALSE(latch.accept(near, numbered(static_cast<std::uint16_t>(n * 2)), n * ms));
        CHECK_FALSE(
            latch.accept(near, numbered(static_cast<std::uint16_t>(n * 2 + 1), random() | 1), n * ms));
    }
    CHECK(latch.remote() == signalled);
}

TEST_CASE("the signalled address wins while nobody has proved himself") {
    Latch latch;
    latch.signal(signalled);
    for (std::uint16_t n = 0; n < 8; ++n) {
        CHECK_FALSE(latch.accept(thief, numbered(n), n * 20 * ms));
    }
    CHECK(latch.accept(signalled, numbered(900), 170 * ms));
    CHECK_FALSE(latch.accept(thief, numbered(9), 500 * ms));
}

TEST_CASE("a likelier candidate is not kept waiting by others") {
    Latch latch;
    latch.signal(signalled);
    const auto near = address("198.51.100.1", 4002);
    std::int64_t now_ns = 0;
    for (std::uint16_t n = 0; n < 2; ++n) {
        for (std::uint16_t port = 1; port < 100; ++port) {
            CHECK_FALSE(latch.accept(address("203.0.113.9", port), numbered(port), now_ns));
        }
        now_ns += 20 * ms;
        CHECK(latch.accept(near, numbered(n), now_ns) == (n == 1));
    }
    CHECK(latch.remote() == near);
}

TEST_CASE("a stream is opened again by another signalled address alone") {
    Latch latch;
    latch.signal(signalled);
    latch.accept(signalled, numbered(1), 0);
    latch.signal(signalled);
    CHECK(latch.latched());
    latch.signal(thief);
    CHECK_FALSE(latch.latched());
    CHECK(latch.remote() == thief);
    CHECK(latch.accept(thief, numbered(1), 1 * ms));
    CHECK_FALSE(latch.accept(signalled, numbered(2), 2 * ms));
}

TEST_CASE("the wildcard address stops what is sent and forgets nothing") {
    for (const char* any : {"0.0.0.0", "::"}) {
        Latch latch;
        engine::RtcpPath path;
        latch.signal(signalled);
        path.signal(address("198.51.100.1", 4001));
        std::int64_t now_ns = 0;
        const auto behind_nat = address("198.51.100.1", 5555);
        dropped_until_heard(latch, behind_nat, now_ns);
        latch.signal(address(any, 4000));
        path.signal(address(any, 4001));
        CHECK_FALSE(latch.remote().reachable());
        CHECK_FALSE(path.remote(latch).reachable());
        CHECK(latch.accept(behind_nat, numbered(9), now_ns));
        CHECK(path.allows(address("198.51.100.1", 5556), false, latch, now_ns));
        CHECK_FALSE(latch.accept(thief, numbered(10), now_ns));
        latch.signal(signalled);
        CHECK(latch.remote() == behind_nat);
        CHECK(path.remote(latch) == address("198.51.100.1", 4001));
        CHECK(latch.moves() == 1);
    }
}

TEST_CASE("after silence, a NAT that changed its mind is followed, and the signalled address") {
    Latch latch;
    latch.signal(signalled);
    std::int64_t now_ns = 0;
    const auto behind_nat = address("198.51.100.1", 5555);
    dropped_until_heard(latch, behind_nat, now_ns);
    REQUIRE(latch.remote() == behind_nat);
    CHECK_FALSE(latch.accept(signalled, numbered(1), now_ns + Latch::silence_ns - 1));
    now_ns += Latch::silence_ns;
    SUBCASE("elsewhere in its network, once it is proved") {
        const auto moved = address("198.51.100.8", 6666);
        CHECK(dropped_until_heard(latch, moved, now_ns) == 3);
        CHECK(latch.remote() == moved);
    }
    SUBCASE("not from another network") {
        CHECK(dropped_until_heard(latch, thief, now_ns) == 200);
        CHECK(latch.remote() == behind_nat);
    }
    SUBCASE("the signalled address at once") {
        CHECK(latch.accept(signalled, numbered(1), now_ns));
        CHECK(latch.remote() == signalled);
    }
}

TEST_CASE("nothing is sent to our own ports, nor learnt from them") {
    Latch latch(address("198.51.100.200", 20000));
    for (const std::uint16_t port : {20000, 20001}) {
        latch.signal(address("198.51.100.200", port));
        CHECK_FALSE(latch.remote().reachable());
        std::int64_t now_ns = 0;
        CHECK(dropped_until_heard(latch, address("198.51.100.200", port), now_ns) == 200);
    }
    latch.signal(address("198.51.100.200", 20002));
    CHECK(latch.remote().reachable());
    CHECK(Latch(address("0.0.0.0", 20000)).is_own(address("127.0.0.1", 20001)));
    CHECK(Latch(address("::", 20000)).is_own(address("::1", 20000)));
    CHECK_FALSE(Latch(address("::", 20000)).is_own(address("2001:db8::1", 20000)));
}

TEST_CASE("nothing is sent to groups, to all, or nowhere") {
    for (const char* host : {"224.0.0.1", "239.255.1.1", "240.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1",
                             "::", "::ffff:224.0.0.1", "::ffff:255.255.255.255", "::ffff:0.0.0.0"}) {
        CAPTURE(host);
        CHECK_FALSE(address(host, 4000).reachable());
    }
    for (const char* host : {"223.255.255.255", "10.0.0.1", "127.0.0.1", "2001:db8::1"}) {
        CAPTURE(host);
        CHECK(address(host, 4000).reachable());
        CHECK_FALSE(address(host, 0).reachable());
    }
    for (const char* host : {"10.1.1.1", "172.31.0.1", "192.168.1.1", "100.64.0.1", "100.127.9.9",
                             "169.254.1.1", "127.9.9.9", "fd00::1", "fe80::1", "::1"}) {
        CAPTURE(host);
        CHECK(address(host, 1).is_private());
    }
    for (const char* host :
         {"11.0.0.1", "172.32.0.1", "192.169.0.1", "100.128.0.1", "100.63.0.1", "2001:db8::1"}) {
        CAPTURE(host);
        CHECK_FALSE(address(host, 1).is_private());
    }
}

TEST_CASE("reports go the way of the audio") {
    Latch rtp;
    rtp.signal(signalled);
    engine::RtcpPath path;
    SUBCASE("on its port") {
        CHECK(path.remote(rtp) == signalled);
        CHECK(path.allows(signalled, true, rtp, 0));
        CHECK_FALSE(path.allows(thief, true, rtp, 0));
        CHECK_FALSE(path.allows(address("198.51.100.1", 4001), true, rtp, 0));
    }
    SUBCASE("on a port of their own") {
        const auto reports = address("198.51.100.1", 4001);
        path.signal(reports);
        CHECK(path.remote(rtp) == reports);
        CHECK(path.allows(reports, false, rtp, 0));
        CHECK(path.allows(signalled, true, rtp, 0));
        CHECK_FALSE(path.allows(thief, false, rtp, 0));
        // Another port of the same host, as a NAT makes it, and from then on no other.
        const auto mapped = address("198.51.100.1", 61000);
        REQUIRE(path.allows(mapped, false, rtp, 0));
        path.heard(mapped, false, 0);
        CHECK(path.remote(rtp) == mapped);
        CHECK_FALSE(path.allows(reports, false, rtp, 1 * ms));
        CHECK(path.allows(reports, false, rtp, engine::RtcpPath::silence_ns));
        path.signal(reports);
        CHECK(path.remote(rtp) == mapped);
        path.signal(std::nullopt);
        CHECK(path.remote(rtp) == signalled);
    }
    SUBCASE("to where the audio comes from, when that is elsewhere") {
        path.signal(address("10.0.0.7", 4001));
        rtp.signal(address("10.0.0.7", 4000));
        std::int64_t now_ns = 0;
        dropped_until_heard(rtp, thief, now_ns);
        CHECK(path.remote(rtp) == address("203.0.113.9", 5556));
        CHECK(path.allows(address("203.0.113.9", 1234), false, rtp, 0));
    }
}
