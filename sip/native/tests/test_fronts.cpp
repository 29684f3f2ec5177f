#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "trunkline/signalling/endpoint.hpp"
#include "trunkline/signalling/fronts.hpp"
#include "trunkline/signalling/source_guard.hpp"

using namespace trunkline::signalling;

namespace {

const std::string line = "INVITE sip:100@192.0.2.9 SIP/2.0\r\n";

Endpoint peer(const std::string& host, std::uint16_t port = 5060) {
    const auto found = endpoint_of(host, port);
    REQUIRE(found);
    return *found;
}

std::string named(const std::string& value) {
    return line + "From: <sip:a@b>\r\nX-Trunkline-Source: " + value + "\r\nTo: <sip:c@d>\r\n\r\nbody";
}

/// Host and port that a message of 192.0.2.1, which is a front, comes from.
std::string origin(const std::string& data) {
    static const Fronts fronts({"192.0.2.0/30"});
    const Endpoint found = fronts.origin_of(data, peer("192.0.2.1"));
    return found.size == 0 ? "nobody" : host_of(found) + " " + std::to_string(port_of(found));
}

}  // namespace

TEST_CASE("fronts: a network holds its addresses and no others") {
    const Fronts fronts({"192.0.2.8/29", "198.51.100.7", "2001:db8:1::/47", "0.0.0.0/32"});
    for (const char* const host :
         {"192.0.2.8", "192.0.2.15", "198.51.100.7", "2001:db8:1:ffff::1", "0.0.0.0"})
        CHECK(fronts.contain(peer(host)));
    for (const char* const host : {"192.0.2.7", "192.0.2.16", "198.51.100.6", "2001:db8:2::", "::"})
        CHECK_FALSE(fronts.contain(peer(host)));
    CHECK(Fronts({"0.0.0.0/0"}).contain(peer("203.0.113.9")));
    CHECK_FALSE(Fronts({"0.0.0.0/0"}).contain(peer("2001:db8::1")));
    CHECK_FALSE(Fronts().contain(peer("192.0.2.1")));
}

TEST_CASE("fronts: text that is no network is refused") {
    for (const char* const text :
         {"", "front.example", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/x", "::/129"})
        CHECK_THROWS_AS(Fronts({text}), std::invalid_argument);
}

TEST_CASE("fronts: the field of a front names the source") {
    CHECK(origin(named("udp:198.51.100.7:5080")) == "198.51.100.7 5080");
    CHECK(origin(named("  tls:[2001:db8::7]:5061 ; name=a.example")) == "2001:db8::7 5061");
    CHECK(origin(named("tcp:2001:db8::7:5061")) == "2001:db8::7 5061");
    CHECK(origin(line + "x-trunkline-source : udp:198.51.100.7:1\n\n") == "198.51.100.7 1");
}

TEST_CASE("fronts: a message without the field comes from the front itself") {
    CHECK(origin(line + "From: <sip:a@b>\r\n\r\n") == "192.0.2.1 5060");
    CHECK(origin(line + "\r\nX-Trunkline-Source: udp:198.51.100.7:5080\r\n") == "192.0.2.1 5060");
    CHECK(origin("") == "192.0.2.1 5060");
}

TEST_CASE("fronts: a field that cannot be read, or comes twice, names nobody") {
    for (const char* const value :
         {"", "udp", "udp:", "udp:198.51.100.7", "udp:host:5060", "udp:198.51.100.7:70000",
          "udp:198.51.100.7:5060x", ":", "::", "udp:[]:5060"})
        CHECK(origin(named(value)) == "nobody");
    CHECK(origin(named("udp:198.51.100.7:1" + std::string(600, ';'))) == "nobody");
    const std::string twice = "X-Trunkline-Source: udp:198.51.100.7:1\r\n";
    CHECK(origin(line + twice + twice + "\r\n") == "nobody");
}

TEST_CASE("fronts: from anybody else the field means nothing") {
    const Fronts fronts({"192.0.2.1/32"});
    const Endpoint stranger = peer("203.0.113.9", 5062);
    const Endpoint found = fronts.origin_of(named("udp:198.51.100.7:5080"), stranger);
    CHECK(host_of(found) == "203.0.113.9");
    CHECK(port_of(found) == 5062);
}

TEST_CASE("fronts: the guard bans whom a front forwards, and not the front") {
    SourceLimits limits;
    limits.ban_score = 10;
    limits.fronts = Fronts({"192.0.2.1/32"});
    SourceGuard guard(limits);
    const Endpoint front = peer("192.0.2.1");
    const auto judge = [&guard, &front](const std::string& data, SourceGuard::Trust trust) {
        return guard.judge(data, guard.origin_of(data, front), true, 1'000'000'000, trust);
    };
    for (int count = 0; count < 100; ++count)
        judge(named("udp:198.51.100.7:5080"), SourceGuard::Trust::no);
    CHECK(judge(named("udp:198.51.100.7:5080"), SourceGuard::Trust::no) == SourceGuard::Answer::drop);
    REQUIRE(guard.banned(1'000'000'000).size() == 1);
    CHECK(guard.banned(1'000'000'000)[0].first == "198.51.100.7");
    CHECK(judge(line + "\r\n", SourceGuard::Trust::yes) == SourceGuard::Answer::known);
    CHECK(judge(named("udp:203.0.113.5:5060"), SourceGuard::Trust::yes) == SourceGuard::Answer::known);
}
