#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "trunkline/signalling/derived.hpp"
#include "trunkline/signalling/engine.hpp"
#include "trunkline/wire/message.hpp"
#include "trunkline/wire/names.hpp"

using namespace trunkline;

namespace {

const std::string invite =
    "INVITE sip:b@h.example SIP/2.0\r\nv: SIP/2.0/UDP Gw.example:5070;branch=z9hG4bK1;Rport;x=y\r\n"
    "Via: SIP/2.0/UDP far;branch=z9hG4bK0\r\nMax-Forwards: 70\r\nf: \"A\" <sip:a@h>;tag=1;q\r\n"
    "TO:  <sip:b@h>\r\ni: c@h\r\nCSeq:  7   INVITE\r\nRecord-Route: <sip:p;lr>, <sip:q;lr>\r\n"
    "Timestamp: 5.1\r\nContent-Length: 3\r\n\r\nv=0 and more";

/// The INVITE with a line added, or another text in place of one.
std::string with(std::string_view line) {
    std::string data = invite;
    return data.insert(data.find("Max-Forwards"), std::string(line) + "\r\n");
}

std::string changed(std::string_view from, std::string_view to) {
    std::string data = invite;
    return data.replace(data.find(from), from.size(), to);
}

bool plain(const std::string& data) {
    wire::Message message;
    return wire::read_message(data, {}, message);
}

std::string stamped(const std::string& value, std::string_view host, std::uint16_t port) {
    const auto via = wire::read_via(value);
    REQUIRE(via);
    const auto stamp = wire::stamp_via(value, *via, host, port);
    return stamp ? stamp->text : value;
}

}  // namespace

TEST_CASE("names: long and compact, in any case") {
    using wire::Field;
    using wire::field_of;
    CHECK(field_of("Via") == Field::via);
    CHECK(field_of("V") == Field::via);
    CHECK(field_of("CALL-id") == Field::call_id);
    CHECK(field_of("Content-Length") == Field::content_length);
    CHECK(field_of("session-expires") == Field::session_expires);
    CHECK(field_of("x") == Field::session_expires);
    CHECK(field_of("Vi") == Field::other);
    CHECK(field_of("") == Field::other);
    CHECK(field_of("X-A-Very-Long-Name-Of-A-Field") == Field::other);
}

TEST_CASE("message: the fields of a plain request") {
    wire::Message message;
    REQUIRE(wire::read_message(invite, {}, message));
    CHECK(message.is_certain());
    CHECK(message.via_count == 2);
    CHECK(message.via.host == "Gw.example");
    CHECK(message.via.branch == "z9hG4bK1");
    CHECK(message.call_id == "c@h");
    CHECK(message.cseq.number == 7);
    CHECK(message.max_forwards == 70);
    CHECK(message.body == "v=0");
    CHECK(wire::tag_of(message.from->params) == "1");
    CHECK(wire::tag_of(message.to->params).empty());
    const auto fields = signalling::request_fields(message);
    CHECK(fields.port == 5070);
    CHECK(fields.from_tag == "1");
}

TEST_CASE("message: its memory is used again") {
    wire::Message message;
    REQUIRE(wire::read_message(invite, {}, message));
    const std::string response =
        "SIP/2.0 180 R\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK2\r\nFrom: <sip:a@h>\r\nTo: <tel:1>\r\nCall-ID: "
        "d\r\n"
        "CSeq: 1 INVITE\r\n\r\n";
    REQUIRE(wire::read_message(response, {}, message));
    CHECK(message.via_count == 1);
    CHECK_FALSE(message.uri);
    CHECK_FALSE(message.max_forwards);
    CHECK(message.body.empty());
    CHECK_FALSE(message.to);
    CHECK_FALSE(message.is_certain());
    const auto fields = signalling::response_fields(message);
    CHECK(fields.status == 180);
    CHECK(fields.to == "<tel:1>");
}

TEST_CASE("message: what could be read in two ways, or is malformed, is not plain") {
    for (const std::string& data : {with("From: <sip:c@h>"),
                                    with("t: <sip:c@h>"),
                                    with("Call-ID: d"),
                                    with("l: 0"),
                                    with("CSeq: 8 INVITE"),
                                    with("c: application/sdp\r\nContent-Type: text/plain"),
                                    with("x: 90\r\nSession-Expires: 90"),
                                    with("Via:"),
                                    with("Via: SIP/2.0/UDP a, SIP/2.0/UDP b"),
                                    changed("z9hG4bK1;", "z9hG4bK1;branch=2;"),
                                    changed("Content-Length: 3", "Content-Length: 99"),
                                    changed("Content-Length: 3", "Content-Length: x"),
                                    changed("7   INVITE", "7 BYE"),
                                    changed("7   INVITE", "x INVITE"),
                                    changed("i: c@h", "i: c h"),
                                    changed("i: c@h", "i:"),
                                    changed("i: c@h", "X: c@h"),
                                    changed("f: \"A\" <sip:a@h>;tag=1;q", "X: y"),
                                    changed("Max-Forwards: 70", "Max-Forwards: 256"),
                                    changed("Max-Forwards: 70", "Max-Forwards:")}) {
        CAPTURE(data);
        CHECK_FALSE(plain(data));
    }
    CHECK_FALSE(plain(with("Max-Forwards: 7")));
    CHECK(plain(with("X: a, b")));
}

TEST_CASE("message: an address or a URI that is not plain is left to others") {
    wire::Message message;
    const std::string phone = changed("INVITE sip:b@h.example", "INVITE tel:+911");
    REQUIRE(wire::read_message(phone, {}, message));
    CHECK_FALSE(message.is_certain());
    const std::string bare = changed("<sip:b@h>", "sip:b@h;tag=x");
    REQUIRE(wire::read_message(bare, {}, message));
    CHECK_FALSE(message.is_certain());
}

TEST_CASE("Via: the source of a request is added, and all else stays as written (RFC 3581 4)") {
    const std::string via = "SIP/2.0/UDP 192.0.2.1:5070;branch=z9hG4bK1";
    CHECK(stamped(via, "192.0.2.1", 9) == via);
    CHECK(stamped(via, "192.0.2.2", 9) == via + ";received=192.0.2.2");
    CHECK(stamped(via + ";Rport;X=1", "192.0.2.1", 9) == via + ";Rport=9;X=1;received=192.0.2.1");
    CHECK(stamped(via + ";rport=7;received=192.0.2.9", "192.0.2.2", 9) ==
          via + ";rport=9;received=192.0.2.2");
    CHECK(stamped(via + ";received=192.0.2.2", "192.0.2.2", 9) == via + ";received=192.0.2.2");
    CHECK(stamped(via + ";Received=192.0.2.2", "192.0.2.1", 9) == via);
    CHECK(stamped(via, "fe80::1%eth0", 9) == via + ";received=fe80::1");
    CHECK(stamped("SIP/2.0/UDP Gw.Example", "gw.example", 9) == "SIP/2.0/UDP Gw.Example");
}

TEST_CASE("derived: a 100 repeats the fields of its INVITE byte for byte (RFC 3261 8.2.6)") {
    wire::Message message;
    REQUIRE(wire::read_message(invite, {}, message));
    CHECK(signalling::make_trying(message, "SIP/2.0/UDP new") ==
          "SIP/2.0 100 Trying\r\nVia: SIP/2.0/UDP new\r\nVia: SIP/2.0/UDP far;branch=z9hG4bK0\r\n"
          "From: \"A\" <sip:a@h>;tag=1;q\r\nTo: <sip:b@h>\r\nCall-ID: c@h\r\nCSeq: 7   INVITE\r\n"
          "Timestamp: 5.1\r\nContent-Length: 0\r\n\r\n");
}

TEST_CASE("derived: ACK and CANCEL have branch, route and number of their INVITE (RFC 3261 9.1, 17.1.1.3)") {
    const std::string ours =
        "INVITE sip:b@h;x=1 SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1;rport\r\nVia: SIP/2.0/UDP b\r\n"
        "Route: <sip:p;lr>\r\nMax-Forwards: 69\r\nFrom: \"\xC3\xA9\" <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\n"
        "Call-ID: c\r\nCSeq: 7 INVITE\r\nSession-ID: 5\r\nContact: <sip:a>\r\nContent-Length: 3\r\n\r\nTo: "
        "x\r\n";
    const std::string common =
        " sip:b@h;x=1 SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1;rport\r\nRoute: <sip:p;lr>\r\n"
        "From: \"\xC3\xA9\" <sip:a@h>;tag=1\r\nCall-ID: c\r\nSession-ID: 5\r\n";
    CHECK(signalling::make_ack(ours, "<sip:b@h>;tag=2") ==
          "ACK" + common +
              "To: <sip:b@h>;tag=2\r\nCSeq: 7 ACK\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n");
    CHECK(signalling::make_cancel(ours, "") ==
          "CANCEL" + common +
              "To: <sip:b@h>\r\nCSeq: 7 CANCEL\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n");
    CHECK(signalling::make_cancel(ours, "SIP;cause=200") ==
          "CANCEL" + common +
              "To: <sip:b@h>\r\nCSeq: 7 CANCEL\r\nMax-Forwards: 70\r\nReason: SIP;cause=200\r\n"
              "Content-Length: 0\r\n\r\n");
    CHECK_FALSE(signalling::make_ack("", "").empty());
    CHECK_FALSE(signalling::make_ack("garbage\r\n\r\n", "").empty());
}
