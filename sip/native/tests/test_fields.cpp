#include <doctest/doctest.h>

#include <string_view>

#include "trunkline/wire/fields.hpp"

using namespace trunkline::wire;

TEST_CASE("wire: the parts of a plain URI") {
    const auto uri = read_uri("sip:+9180;ext=1@H.example:5062;transport=udp;lr");
    REQUIRE(uri);
    CHECK(uri->user == "+9180;ext=1");
    CHECK(uri->host == "H.example");
    CHECK(uri->port == 5062);
    REQUIRE(uri->params.count == 2);
    CHECK(uri->params.items[0].value == "udp");
    CHECK_FALSE(uri->params.items[1].has_value);
}

TEST_CASE("wire: a URI that could be read in two ways, or needs more than reading, is not plain") {
    for (const std::string_view text :
         {"",          "sip:",        "sip",           "SIP:a@h",     "tel:+91",
          "sip:@h",    "sip:a:b@h",   "sip:a%41@h",    "sip:a@b@h",   "sip:h?a=b",

          "sip:h:0",   "sip:h:65536", "sip:h:",        "sip:[::1]",   "sip:h;",
          "sip:h;;lr", "sip:h lr",    "sip:h;a=\"b\"", "sip:h;a=b,c", "sip:h;1;2;3;4;5;6;7;8;9"}) {
        CAPTURE(text);
        CHECK_FALSE(read_uri(text));
    }
}

TEST_CASE("wire: an address with its name and tag") {
    const auto address = read_address("\"Asha Rao\" <sip:a@h>;tag=4fe1");
    REQUIRE(address);
    CHECK(address->display_name == "Asha Rao");
    CHECK(address->uri.user == "a");
    REQUIRE(address->params.count == 1);
    CHECK(address->params.items[0].value == "4fe1");
    CHECK(read_address("Asha, R. <sip:a@h>")->display_name == "Asha, R.");
    CHECK(read_address("<sip:h>")->display_name.empty());
}

TEST_CASE("wire: an address without brackets, with escapes, or with two tags is not plain") {
    for (const std::string_view text :
         {"sip:a@h", "\"a\\\"b\" <sip:h>", "\"a <sip:h>", "\"a\" b <sip:h>", "a\" <sip:h>", "a> <sip:h>",
          "<sip:h", "<sip:h>;tag", "<sip:h>;tag=", "<sip:h>;tag=1;Tag=2", "<sip:h>;a=\"b\"",
          "<sip:h>, <sip:i>", "<sip:h>x"}) {
        CAPTURE(text);
        CHECK_FALSE(read_address(text));
    }
}

TEST_CASE("wire: the parameters of a Via that have fields of their own") {
    const auto via =
        read_via("SIP/2.0/UDP h.example:5066;Branch=z9hG4bK1;rport=5070;received=192.0.2.1;alias");
    REQUIRE(via);
    CHECK(via->transport == "UDP");
    CHECK(via->port == 5066);
    CHECK(via->branch == "z9hG4bK1");
    CHECK(via->rport == 5070);
    CHECK(via->received == "192.0.2.1");
    CHECK(via->params.count == 1);
    CHECK(read_via("SIP/2.0/TCP h;rport")->rport == 0);
    CHECK_FALSE(read_via("SIP/2.0/TCP h")->rport);
}

TEST_CASE("wire: a Via that says where to answer twice, or wrongly, is not plain") {
    for (const std::string_view text :
         {"SIP/2.0/UDP", "SIP/2.0/UDP ", "SIP/2.0/udp h", "SIP/3.0/UDP h", "SIP / 2.0 / UDP h",
          "SIP/2.0/UDP  h", "SIP/2.0/UDP h;branch",
          "SIP/2.0/UDP h;branch=", "SIP/2.0/UDP h;branch=a;branch=b", "SIP/2.0/UDP h;rport=0",
          "SIP/2.0/UDP h;rport=65536", "SIP/2.0/UDP h;rport;rport", "SIP/2.0/UDP h;received",
          "SIP/2.0/UDP h;received=::1", "SIP/2.0/UDP h:99999", "SIP/2.0/UDP h ;rport"}) {
        CAPTURE(text);
        CHECK_FALSE(read_via(text));
    }
}

TEST_CASE("wire: sequence numbers up to the largest there is") {
    CHECK(read_cseq("2147483647 INVITE")->number == 2147483647);
    CHECK(read_cseq("00000000000000000001 \t BYE")->method == "BYE");
    for (const std::string_view text :
         {"2147483648 INVITE", "1", "1 ", "-1 BYE", "1 B<E", "000000000000000000001 A"}) {
        CAPTURE(text);
        CHECK_FALSE(read_cseq(text));
    }
}
