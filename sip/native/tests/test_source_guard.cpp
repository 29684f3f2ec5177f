#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "trunkline/signalling/endpoint.hpp"
#include "trunkline/signalling/scanners.hpp"
#include "trunkline/signalling/source_guard.hpp"

using namespace trunkline::signalling;

namespace {

using Answer = SourceGuard::Answer;
using Trust = SourceGuard::Trust;

const std::string invite = "INVITE sip:100@192.0.2.9 SIP/2.0\r\nUser-Agent: Honest/1.0\r\n\r\n";
const std::string scan = "OPTIONS sip:100@192.0.2.9 SIP/2.0\r\nUser-Agent: friendly-scanner\r\n\r\n";
const std::string gateway = "192.0.2.1", stranger = "198.51.100.7";

std::int64_t at(double seconds) {
    return std::llround(seconds * 1e9);
}

Endpoint peer(const std::string& host, std::uint16_t port = 5060) {
    const auto found = endpoint_of(host, port);
    REQUIRE(found);
    return *found;
}

/// A guard on virtual time, asked as the loop asks it: the application knows one gateway.
struct Stage {
    SourceGuard guard;
    int asked = 0;

    explicit Stage(const SourceLimits& limits = {}) : guard(limits) {}

    Answer judge(const std::string& data, const std::string& host, double now_s, bool is_datagram = true) {
        const Answer answer = guard.judge(data, peer(host), is_datagram, at(now_s));
        if (answer != Answer::ask) return answer;
        ++asked;
        const Trust trust = host == gateway ? Trust::yes : Trust::no;
        return guard.judge(data, peer(host), is_datagram, at(now_s), trust);
    }

    std::uint64_t count(Reason reason) const { return guard.rejected()[static_cast<std::size_t>(reason)]; }
};

std::string host_number(int number) {
    return "10.0." + std::to_string(number / 256) + "." + std::to_string(number % 256);
}

}  // namespace

TEST_CASE("source guard: the application is asked about a stranger once a second, about a gateway once") {
    Stage stage;
    for (int turn = 0; turn < 100; ++turn)
        CHECK(stage.judge(scan, gateway, 1) == Answer::known);
    CHECK(stage.asked == 1);
    for (int turn = 0; turn < 10; ++turn)
        CHECK(stage.judge(invite, stranger, 1 + turn * 0.25) == Answer::unknown);
    CHECK(stage.asked == 4);
    stage.guard.refresh(at(5));
    CHECK_FALSE(stage.guard.knows(peer(gateway)));
    CHECK(stage.judge(invite, gateway, 5) == Answer::known);
    CHECK(stage.asked == 5);
}

TEST_CASE("source guard: an unanswered question changes nothing") {
    Stage stage;
    for (int turn = 0; turn < 1000; ++turn)
        CHECK(stage.guard.judge(invite, peer(stranger), true, at(1)) == Answer::ask);
    CHECK(stage.guard.largest() == 0);
    CHECK(stage.judge(invite, stranger, 1) == Answer::unknown);
}

TEST_CASE("source guard: a stranger has a burst, then a rate, then a ban that is doubled each time") {
    Stage stage;
    int passed = 0;
    for (int turn = 0; turn < 25; ++turn)
        passed += stage.judge(invite, stranger, 1) == Answer::unknown;
    CHECK(passed == 20);
    CHECK(stage.count(Reason::rate) == 5);
    double now_s = 1;
    for (const double for_s : {60.0, 120.0, 240.0}) {
        while (stage.guard.banned(at(now_s)).empty())
            stage.judge(invite, stranger, now_s);
        const auto [bans, left_out] = stage.guard.take_bans();
        REQUIRE(bans.size() == 1);
        CHECK(bans[0].source == stranger);
        CHECK(bans[0].reason == Reason::rate);
        CHECK(bans[0].for_s == for_s);
        CHECK(stage.judge(invite, stranger, now_s + for_s - 0.5) == Answer::drop);
        now_s += for_s;
        CHECK(stage.judge(invite, stranger, now_s) == Answer::unknown);
    }
}

TEST_CASE("source guard: when nobody can be asked, a new source waits and a banned one does not") {
    Stage stage;
    const auto later = [&stage](const std::string& host, double now_s) {
        return stage.guard.judge(invite, peer(host), true, at(now_s), Trust::later);
    };
    CHECK(later(stranger, 1) == Answer::ask);
    CHECK(stage.judge(invite, stranger, 1) == Answer::unknown);
    int passed = 0;
    for (int turn = 0; turn < 100; ++turn)
        passed += later(stranger, 3) == Answer::unknown;
    CHECK(passed == 20);
    CHECK(stage.judge(scan, "198.51.100.8", 3) == Answer::drop);
    for (int turn = 0; turn < 100; ++turn)
        CHECK(later("198.51.100.8", 3 + turn * 0.5) == Answer::drop);
    stage.guard.trust(peer("198.51.100.9"), at(3));
    stage.guard.refresh(at(4));
    CHECK(later("198.51.100.9", 4) == Answer::known);
}

TEST_CASE(
    "source guard: who answers a request is trusted, but not this process or whom a front does not name") {
    SourceLimits limits;
    limits.fronts = Fronts({"192.0.2.50"});
    Stage stage(limits);
    const std::string answer = "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 192.0.2.9\r\n";
    stage.guard.set_own(peer("192.0.2.9"));
    for (const char* const host : {stranger.c_str(), "192.0.2.9"})
        stage.guard.trust_sender(answer + "\r\n", peer(host), at(1));
    stage.guard.trust_sender(answer + "X-Trunkline-Source: nobody\r\n\r\n", peer("192.0.2.50"), at(1));
    CHECK(stage.guard.known() == std::vector{stranger});
    stage.guard.trust_sender(answer + "X-Trunkline-Source: udp:203.0.113.4:5060\r\n\r\n", peer("192.0.2.50"),
                             at(1));
    CHECK(stage.guard.knows(peer("203.0.113.4")));
    stage.guard.trust_sender(answer, peer("192.0.2.9", 5061), at(1));
    CHECK(stage.guard.knows(peer("192.0.2.9")));
}

TEST_CASE("source guard: forged sources neither grow it nor drive out bans and trust") {
    SourceLimits limits;
    limits.max_sources = 1000;
    Stage stage(limits);
    for (int turn = 0; turn < 20; ++turn)
        stage.guard.on_auth_failure(peer("203.0.113.1"), false, at(1));
    stage.guard.trust(peer("203.0.113.2"), at(1));
    for (int number = 0; number < 100'000; ++number) {
        const std::string host = std::to_string(1 + number % 200) + "." + std::to_string(number / 65536) +
                                 "." + std::to_string(number / 256 % 256) + "." +
                                 std::to_string(number % 256);
        stage.judge(number % 2 == 0 ? scan : invite, host, 1 + number * 1e-4);
    }
    CHECK(stage.guard.largest() <= 1000);
    CHECK(stage.judge(invite, "203.0.113.1", 12) == Answer::drop);
    stage.guard.refresh(at(12));
    CHECK(stage.judge(invite, "203.0.113.2", 12) == Answer::known);
    CHECK(stage.judge(invite, gateway, 12) == Answer::known);
}

TEST_CASE("source guard: all unknown sources together have a rate; the gateway is beside it") {
    Stage stage;
    int passed = 0;
    for (int number = 0; number < 5000; ++number)
        passed += stage.judge(invite, host_number(number), 100) == Answer::unknown;
    CHECK(passed == 1000);
    CHECK(stage.count(Reason::crowd) == 4000);
    CHECK(stage.guard.banned(at(100)).empty());
    CHECK(stage.judge(invite, gateway, 100) == Answer::known);
}

TEST_CASE("source guard: under severe overload an unknown INVITE by UDP is dropped, and nothing else") {
    Stage stage;
    stage.guard.set_severe(true);
    CHECK(stage.judge(invite, stranger, 1) == Answer::drop);
    CHECK(stage.judge(invite, stranger, 1, false) == Answer::unknown);
    CHECK(stage.judge("OPTIONS sip:x SIP/2.0\r\n\r\n", stranger, 1) == Answer::unknown);
    CHECK(stage.judge(invite, gateway, 1) == Answer::known);
    CHECK(stage.count(Reason::overload) == 1);
    stage.guard.set_severe(false);
    CHECK(stage.judge(invite, stranger, 1) == Answer::unknown);
}

TEST_CASE("source guard: our own address and port pass without trust, those beside it do not") {
    Stage stage;
    stage.guard.set_own(peer(stranger, 5070));
    for (int turn = 0; turn < 1000; ++turn)
        CHECK(stage.guard.judge(invite, peer(stranger, 5070), true, at(1)) == Answer::unknown);
    CHECK(stage.judge(scan, stranger, 1) == Answer::drop);
    CHECK(stage.guard.judge(invite, peer(stranger, 5070), true, at(1)) == Answer::unknown);
    CHECK_FALSE(stage.guard.knows(peer(stranger, 5070)));
    stage.guard.set_own(std::nullopt);
    CHECK(stage.guard.judge(invite, peer(stranger, 5070), true, at(1)) == Answer::drop);
}

TEST_CASE("source guard: a banned source has no connection until the application trusts it") {
    Stage stage;
    CHECK(stage.guard.judge_connection(peer(stranger), at(1)) == Answer::unknown);
    stage.judge(scan, stranger, 1);
    CHECK(stage.guard.judge_connection(peer(stranger), at(1.5)) == Answer::drop);
    CHECK(stage.guard.judge_connection(peer(stranger), at(2)) == Answer::ask);
    CHECK(stage.guard.judge_connection(peer(stranger), at(2), Trust::no) == Answer::drop);
    CHECK(stage.guard.judge_connection(peer(stranger), at(3), Trust::yes) == Answer::known);
    CHECK(stage.guard.banned(at(3)).empty());
}

TEST_CASE("source guard: an IPv6 network of 64 bits is one source, a mapped address is an IPv4 address") {
    Stage stage;
    int passed = 0;
    for (int number = 1; number <= 30; ++number)
        passed += stage.judge(invite, "2001:db8:1:2::" + std::to_string(number), 1) == Answer::unknown;
    CHECK(passed == 20);
    CHECK(stage.judge(scan, "2001:db8:1:3::1", 1) == Answer::drop);
    CHECK(stage.guard.take_bans().first.at(0).source == "2001:db8:1:3::/64");
    CHECK(stage.guard.judge(invite, peer("::ffff:192.0.2.1"), true, at(1), Trust::yes) == Answer::known);
    CHECK(stage.guard.known().at(0) == gateway);
    CHECK(stage.guard.knows(peer(gateway)));
    CHECK(Source::host_of({}).text().empty());
    CHECK(Source::host_of(peer("fe80::1%lo")).text() == "fe80::1%lo");
}

TEST_CASE("source guard: a scanner is known by its name in the first User-Agent or Server alone") {
    const auto named = [](const std::string& head) { return names_scanner("OPTIONS x SIP/2.0\r\n" + head); };
    for (const char* agent : {"friendly-scanner", "SIPVicious", "sip-scan", "VaxSIPUserAgent/3.1",
                              "x svmap/1", "the gulp!", "iWar", "xiwar", "nmap"}) {
        CAPTURE(agent);
        CHECK(named(std::string("User-Agent: ") + agent + "\r\n\r\n"));
        CHECK(named(std::string("sErVeR \t:") + agent));
    }
    for (const char* agent : {"SIPp", "Asterisk PBX", "xsvmap", "svmapper_", "smaps", "iwarp", "nmap2", ""}) {
        CAPTURE(agent);
        CHECK(named(std::string("User-Agent: ") + agent + "\r\n\r\n") == (agent == std::string("svmapper_")));
    }
    CHECK_FALSE(named("Subject: sipcli\r\n\r\n"));
    CHECK_FALSE(named("User-Agent: x\r\nServer: sipcli\r\n\r\n"));
    CHECK_FALSE(named("User-Agent x: sipcli\r\n"));
    CHECK_FALSE(named("User-Agent:" + std::string(200, ' ') + "sipcli\r\n"));
    CHECK_FALSE(named("A: " + std::string(2048, 'a') + "\r\nUser-Agent: sipcli\r\n"));
    CHECK_FALSE(names_scanner("\nUser-Agent"));
    CHECK_FALSE(names_scanner(""));
}
