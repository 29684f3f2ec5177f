// Headers, masks and texts of WebSocket frames.

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "trunkline/websocket/frame.hpp"
#include "trunkline/websocket/frame_template.hpp"

using namespace trunkline::websocket;

namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string written(const FrameTemplate& text, const FrameValues& values) {
    std::string out(text.size(values), '?');
    text.write(values, reinterpret_cast<std::uint8_t*>(out.data()));
    return out;
}

}  // namespace

TEST_CASE("a header that is written is read again") {
    for (const std::size_t size : {0U, 1U, 125U, 126U, 65535U, 65536U, 1U << 20}) {
        CAPTURE(size);
        std::array<std::uint8_t, max_header_bytes> room{};
        const std::size_t written = write_header(Opcode::binary, size, 0x04030201, room.data());
        CHECK(written == header_size(size));
        const auto header = read_header(std::span(room).first(written));
        REQUIRE(header.has_value());
        CHECK(header->final);
        CHECK(header->masked);
        CHECK(header->reserved == 0);
        CHECK(header->opcode == 2);
        CHECK(header->header_bytes == written);
        CHECK(header->payload_bytes == size);
        for (std::size_t part = 0; part < written; ++part)
            CHECK(!read_header(std::span(room).first(part)));
    }
}

TEST_CASE("the longest length there is does not overflow") {
    std::vector<std::uint8_t> bytes(10, 0xff);
    bytes[0] = 0x81;
    bytes[1] = 127;
    const auto header = read_header(bytes);
    REQUIRE(header.has_value());
    CHECK(header->payload_bytes == ~std::uint64_t{0});
}

TEST_CASE("a mask is the key over and over, and undone by itself") {
    for (std::size_t size = 0; size < 40; ++size) {
        std::vector<std::uint8_t> payload(size);
        std::array<std::uint8_t, max_header_bytes> room{};
        const std::size_t header = write_header(Opcode::text, size, 0xdeadbeef, room.data());
        mask(payload, 0xdeadbeef);
        for (std::size_t n = 0; n < size; ++n)
            CHECK(payload[n] == room[header - 4 + n % 4]);
        mask(payload, 0xdeadbeef);
        CHECK(payload == std::vector<std::uint8_t>(size));
    }
}

TEST_CASE("UTF-8 is recognised") {
    for (const std::string text :
         {"", "plain", "\xc3\xa9", "\xe0\xa4\x85", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"})
        CHECK(is_utf8(bytes_of(text)));
    for (const std::string text : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                   "\xc3", "\xe0\xa4", "\x80", "\xf0\x8f\xbf\xbf", "\xe1\x80\x7f"})
        CHECK(!is_utf8(bytes_of(text)));
}

TEST_CASE("codes of a close frame") {
    for (const std::uint16_t code : {1000, 1001, 1003, 1007, 1011, 1014, 3000, 4999})
        CHECK(is_close_code(code));
    for (const std::uint16_t code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535})
        CHECK(!is_close_code(code));
}

TEST_CASE("a template is filled in") {
    const FrameTemplate text("{\"n\":\"\x01\",\"c\":\x02,\"t\":\"\x03\",\"p\":\"\x04\"}");
    CHECK(text.numbered());
    const std::vector<std::uint8_t> audio{1, 2, 3, 4};
    CHECK(written(text, {7, 0, 1'732'099'203'000, audio}) ==
          "{\"n\":\"7\",\"c\":0,\"t\":\"1732099203000\",\"p\":\"AQIDBA==\"}");
    CHECK(written(text, {~std::uint64_t{0}, 10, 9, {}}) ==
          "{\"n\":\"18446744073709551615\",\"c\":10,\"t\":\"9\",\"p\":\"\"}");
}

TEST_CASE("a text without places is written as it is") {
    const FrameTemplate text("{\"event\":\"\xc3\xa9\"}");
    CHECK(!text.numbered());
    CHECK(written(text, {1, 2, 3, {}}) == "{\"event\":\"\xc3\xa9\"}");
    CHECK(written(FrameTemplate(), {}).empty());
}
