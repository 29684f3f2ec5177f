#include <doctest/doctest.h>

#include <vector>

#include "trunkline/rtp/packet.hpp"

using namespace trunkline::rtp;

namespace {

std::vector<std::uint8_t> plain() {
    std::vector<std::uint8_t> bytes{0x80, 0x80, 0x12, 0x34, 0x00, 0x01, 0x02, 0x03, 0xDE, 0xAD, 0xBE, 0xEF};
    bytes.insert(bytes.end(), {1, 2, 3, 4});
    return bytes;
}

}  // namespace

TEST_CASE("a plain packet is parsed field by field") {
    auto bytes = plain();
    const auto packet = parse(bytes);
    REQUIRE(packet);
    CHECK(packet->header.payload_type == 0);
    CHECK(packet->header.marker);
    CHECK(packet->header.sequence == 0x1234);
    CHECK(packet->header.timestamp == 0x00010203);
    CHECK(packet->header.ssrc == 0xDEADBEEF);
    CHECK(packet->payload.size() == 4);
    CHECK(packet->payload[0] == 1);
}

TEST_CASE("a written header is read back") {
    std::vector<std::uint8_t> bytes(header_bytes + 1);
    const Header header{101, true, 65535, 0xFFFFFFFF, 1};
    write_header(bytes.data(), header);
    const auto packet = parse(bytes);
    REQUIRE(packet);
    CHECK(packet->header.payload_type == 101);
    CHECK(packet->header.marker);
    CHECK(packet->header.sequence == 65535);
    CHECK(packet->header.timestamp == 0xFFFFFFFF);
    CHECK(packet->header.ssrc == 1);
}

TEST_CASE("contributing sources and an extension are skipped") {
    auto bytes = plain();
    bytes[0] = 0x92;  // Extension, two contributing sources.
    const std::vector<std::uint8_t> between{0, 0, 0, 1, 0, 0, 0, 2, 0xBE, 0xDE, 0, 1, 9, 9, 9, 9};
    bytes.insert(bytes.begin() + 12, between.begin(), between.end());
    const auto packet = parse(bytes);
    REQUIRE(packet);
    CHECK(packet->payload.size() == 4);
    CHECK(packet->payload[3] == 4);
}

TEST_CASE("padding is taken off") {
    auto bytes = plain();
    bytes[0] = 0xA0;
    bytes.insert(bytes.end(), {0, 0, 3});
    const auto packet = parse(bytes);
    REQUIRE(packet);
    CHECK(packet->payload.size() == 4);
}

TEST_CASE("what does not add up is refused") {
    auto bytes = plain();
    SUBCASE("too short") {
        bytes.resize(11);
    }
    SUBCASE("empty") {
        bytes.clear();
    }
    SUBCASE("another version") {
        bytes[0] = 0x40;
    }
    SUBCASE("contributing sources beyond the end") {
        bytes[0] = 0x8F;
    }
    SUBCASE("extension beyond the end") {
        bytes[0] = 0x90;
        bytes[14] = 0xFF;
    }
    SUBCASE("extension header cut off") {
        bytes[0] = 0x90;
        bytes.resize(14);
    }
    SUBCASE("padding longer than the payload") {
        bytes[0] = 0xA0;
        bytes.back() = 5;
    }
    SUBCASE("padding of no length") {
        bytes[0] = 0xA0;
        bytes.back() = 0;
    }
    CHECK_FALSE(parse(bytes));
}

TEST_CASE("RTCP on the RTP port is told apart") {
    std::vector<std::uint8_t> bytes{0x80, 200, 0, 1, 0, 0, 0, 1};
    CHECK(is_rtcp(bytes));
    bytes[1] = 0x80 | 101;
    CHECK_FALSE(is_rtcp(bytes));
    bytes[1] = 0;
    CHECK_FALSE(is_rtcp(bytes));
}
