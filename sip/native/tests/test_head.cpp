#include <doctest/doctest.h>

#include <random>
#include <string>
#include <string_view>

#include "trunkline/wire/fields.hpp"
#include "trunkline/wire/head.hpp"

using namespace trunkline::wire;

namespace {

const std::string invite =
    "INVITE sip:b@h.example SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nX-Empty:\r\nTo:  <sip:b@h> "
    "\t\r\n\r\nv=0";

bool plain(const std::string& data, const Limits& limits = {}) {
    Head head;
    return read_head(data, limits, head);
}

std::string with(std::string_view start, std::string_view header) {
    return std::string(start) + "\r\n" + std::string(header) + "\r\n\r\n";
}

/// What every reader makes of a head, so that a sanitizer sees all that is read.
std::size_t read_all(const std::string& data) {
    Head head;
    if (!read_head(data, {}, head)) return 0;
    std::size_t read = head.rest.size() + read_uri(head.uri).has_value();
    for (const Line& line : head.lines) {
        read += read_address(line.value).has_value() + read_via(line.value).has_value() +
                read_cseq(line.value).has_value() + read_uri(line.value).has_value();
    }
    return read + 1;
}

}  // namespace

TEST_CASE("wire: the head of a request") {
    Head head;
    REQUIRE(read_head(invite, {}, head));
    CHECK(head.is_request);
    CHECK(head.method == "INVITE");
    CHECK(head.uri == "sip:b@h.example");
    REQUIRE(head.lines.size() == 3);
    CHECK(head.lines[1].value.empty());
    CHECK(head.lines[2].name == "To");
    CHECK(head.lines[2].value == "<sip:b@h>");
    CHECK(head.rest == "v=0");
}

TEST_CASE("wire: the head of a response, with and without a phrase") {
    Head head;
    const std::string busy = with("SIP/2.0 486 Busy Here", "To: a");
    REQUIRE(read_head(busy, {}, head));
    CHECK_FALSE(head.is_request);
    CHECK(head.status == 486);
    CHECK(head.reason == "Busy Here");
    const std::string bare = with("SIP/2.0 200", "To: a");
    REQUIRE(read_head(bare, {}, head));
    CHECK(head.reason.empty());
}

TEST_CASE("wire: a head that is folded, has other line ends or bytes, or odd spaces is not plain") {
    for (const std::string& data :
         {std::string("\r\n") + invite, with("BYE sip:h SIP/2.0", "To: a\r\n b"),
          with("BYE sip:h SIP/2.0", "To: a\nb: c"), with("BYE sip:h SIP/2.0", "To: a\rb"),
          with("BYE sip:h SIP/2.0", "To : a"), with("BYE sip:h SIP/2.0", "To"),
          with("BYE sip:h SIP/2.0", "To: \xc3\xa9"), with("BYE  sip:h SIP/2.0", "To: a"),
          with("BYE sip:h SIP/3.0", "To: a"), with("BYE sip:h sip/2.0", "To: a"),
          with("B<E sip:h SIP/2.0", "To: a"), with("SIP/2.0 099 X", "To: a"), with("SIP/2.0 700 X", "To: a"),
          with("SIP/2.0 2000", "To: a"), std::string("BYE sip:h SIP/2.0\r\nTo: a\r\n"),
          std::string("BYE sip:h SIP/2.0\r\nTo: a\r"), std::string(), std::string("\r\n\r\n")}) {
        CAPTURE(data);
        CHECK_FALSE(plain(data));
    }
}

TEST_CASE("wire: every byte at every place of a line") {
    for (unsigned byte = 0; byte < 256; ++byte) {
        for (std::size_t place = 0; place < 20; ++place) {
            std::string value(20, 'v');
            value[place] = static_cast<char>(byte);
            const bool printable = (byte >= 0x20 && byte < 0x7f) || byte == '\t';
            CHECK(plain(with("SIP/2.0 200 OK", "X: v" + value + "v")) == printable);
        }
    }
}

TEST_CASE("wire: what is beyond a limit is not plain") {
    CHECK(plain(invite, {invite.size(), 3, 40, 40}));
    CHECK_FALSE(plain(invite, {invite.size() - 1, 3, 40, 40}));
    CHECK_FALSE(plain(invite, {invite.size(), 2, 40, 40}));
    CHECK_FALSE(plain(invite, {invite.size(), 3, 30, 40}));
    CHECK_FALSE(plain(invite, {invite.size(), 3, 40, 30}));
}

TEST_CASE("wire: mutated heads are read within their bytes") {
    std::mt19937 random(20261122);
    const std::string words[] = {"\r\n", " ", ";",       "=",    "<",     ">",  "\"",
                                 ":",    "@", "SIP/2.0", "sip:", ";tag=", "\t", ","};
    std::size_t read = 0;
    for (int round = 0; round < 200'000; ++round) {
        std::string data = invite;
        for (unsigned change = 0; change < 1 + random() % 4; ++change) {
            const std::size_t at = random() % (data.size() + 1);
            switch (random() % 4) {
                case 0:
                    data.insert(at, words[random() % std::size(words)]);
                    break;
                case 1:
                    data.erase(at, random() % 5);
                    break;
                case 2:
                    data.insert(at, 1, static_cast<char>(random()));
                    break;
                default:
                    data.resize(at);
            }
        }
        data.shrink_to_fit();
        read += read_all(data) != 0;
    }
    CHECK(read > 1000);
    CHECK(read < 199'000);
}
