#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "support.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"
#include "trunkline/rtp/dtmf_sender.hpp"

using namespace trunkline;
using tests::ms;

namespace {

std::array<std::uint8_t, 4> event(std::uint8_t code, std::uint16_t duration, bool ended) {
    return {code, static_cast<std::uint8_t>(ended ? 0x8A : 0x0A), static_cast<std::uint8_t>(duration >> 8),
            static_cast<std::uint8_t>(duration)};
}

}  // namespace

TEST_CASE("a press is told once, with its end bit") {
    rtp::DtmfReceiver receiver;
    CHECK_FALSE(receiver.packet(1000, event(5, 160, false), 0));
    CHECK(receiver.pressed());
    CHECK_FALSE(receiver.packet(1000, event(5, 320, false), 20 * ms));
    const auto digit = receiver.packet(1000, event(5, 800, true), 40 * ms);
    REQUIRE(digit);
    CHECK(digit->key == '5');
    CHECK(digit->duration_ms == 100);
    CHECK_FALSE(receiver.packet(1000, event(5, 800, true), 41 * ms));
    CHECK_FALSE(receiver.packet(1000, event(5, 800, true), 42 * ms));
    CHECK_FALSE(receiver.pressed());
}

TEST_CASE("the same key twice is two presses") {
    rtp::DtmfReceiver receiver;
    CHECK(receiver.packet(1000, event(1, 800, true), 0));
    CHECK(receiver.packet(3000, event(1, 800, true), 100 * ms));
}

TEST_CASE("a press whose end was lost is told when the next begins") {
    rtp::DtmfReceiver receiver;
    receiver.packet(1000, event(11, 640, false), 0);
    const auto digit = receiver.packet(5000, event(10, 160, false), 100 * ms);
    REQUIRE(digit);
    CHECK(digit->key == '#');
    CHECK(digit->duration_ms == 80);
    CHECK(receiver.packet(5000, event(10, 800, true), 200 * ms)->key == '*');
}

TEST_CASE("a press whose end was lost is told after a while") {
    rtp::DtmfReceiver receiver;
    receiver.packet(1000, event(15, 640, false), 0);
    CHECK_FALSE(receiver.expire(100 * ms));
    const auto digit = receiver.expire(rtp::DtmfReceiver::lost_end_ns);
    REQUIRE(digit);
    CHECK(digit->key == 'D');
    CHECK_FALSE(receiver.expire(10'000 * ms));
    CHECK_FALSE(receiver.packet(1000, event(15, 800, true), 300 * ms));
}

TEST_CASE("packets of an earlier press that come late add nothing") {
    rtp::DtmfReceiver receiver;
    receiver.packet(9000, event(1, 800, true), 0);
    CHECK_FALSE(receiver.packet(1000, event(2, 800, true), 1 * ms));
}

TEST_CASE("a very long press is one, in segments") {
    rtp::DtmfReceiver receiver;
    receiver.packet(0, event(3, 0xFFFF, false), 0);
    CHECK_FALSE(receiver.packet(0xFFFF, event(3, 1, false), 20 * ms));
    const auto digit = receiver.packet(0xFFFF, event(3, 8000, true), 1000 * ms);
    REQUIRE(digit);
    CHECK(digit->duration_ms == (0xFFFF + 8000) / 8);
}

TEST_CASE("what is no key and what is cut off is ignored") {
    rtp::DtmfReceiver receiver;
    CHECK_FALSE(receiver.packet(1, event(16, 800, true), 0));
    const std::array<std::uint8_t, 3> cut{1, 0x80, 0};
    CHECK_FALSE(receiver.packet(1, cut, 0));
    CHECK_FALSE(receiver.pressed());
}

TEST_CASE("digits that are sent are received") {
    rtp::DtmfSender sender;
    rtp::DtmfReceiver receiver;
    const std::string digits = "19w*#Ad";
    sender.start(digits, 100, 60);
    std::string heard;
    std::uint32_t timestamp = 4000;
    int first_packets = 0;
    for (int frame = 0; sender.busy() && frame < 1000; ++frame) {
        if (const auto packet = sender.step(160)) {
            first_packets += packet->first ? 1 : 0;
            const auto digit =
                receiver.packet(timestamp - packet->age_samples, packet->payload, frame * 20 * ms);
            if (digit) {
                heard += digit->key;
                CHECK(digit->duration_ms == 100);
            }
        }
        timestamp += 160;
    }
    CHECK(heard == "19*#AD");
    CHECK(first_packets == 6);
}

TEST_CASE("the end of a press is sent three times, then there is a gap") {
    rtp::DtmfSender sender;
    const std::string digits = "1";
    sender.start(digits, 60, 100);
    std::vector<int> frames;  // 0: audio, 1: event, 2: event with end bit
    while (sender.busy()) {
        const auto packet = sender.step(160);
        frames.push_back(!packet ? 0 : (packet->payload[1] & 0x80) != 0 ? 2 : 1);
    }
    CHECK(frames == std::vector<int>{1, 1, 2, 2, 2, 0, 0, 0});
}

TEST_CASE("a pause is as long as it says") {
    rtp::DtmfSender sender;
    const std::string digits = "wW";
    sender.start(digits, 100, 50);
    int frames = 0;
    while (sender.busy()) {
        CHECK_FALSE(sender.step(160));
        ++frames;
    }
    CHECK(frames == 75);
}
