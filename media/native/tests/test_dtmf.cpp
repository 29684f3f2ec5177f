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

TEST_CASE("durations are counted in the clock of the stream") {
    rtp::DtmfReceiver receiver(48000);
    const auto digit = receiver.packet(1000, event(5, 4800, true), 0);
    REQUIRE(digit);
    CHECK(digit->duration_ms == 100);
    rtp::DtmfSender sender;
    sender.start("7", 100, 50, 16000);
    int packets = 0;
    std::uint32_t longest = 0;
    for (int n = 0; sender.busy(); ++n) {
        REQUIRE(n < 100);
        const auto packet = sender.step(320);
        if (!packet) continue;
        ++packets;
        longest = std::max<std::uint32_t>(longest, packet->payload[2] << 8U | packet->payload[3]);
    }
    CHECK(packets == 7);
    CHECK(longest == 1600);
}

TEST_CASE("a press longer than the duration field is sent in segments and told as one") {
    rtp::DtmfSender sender;
    rtp::DtmfReceiver receiver(48000);
    sender.start("3", 4000, 50, 48000);
    std::uint32_t now = 77;
    int segments = 0;
    int digits = 0;
    std::uint32_t last_timestamp = 0;
    for (int n = 0; sender.busy(); ++n) {
        REQUIRE(n < 400);
        if (const auto packet = sender.step(960)) {
            const std::uint32_t timestamp = now - packet->age_samples;
            CHECK(packet->first == (n == 0));
            if (timestamp != last_timestamp) ++segments;
            last_timestamp = timestamp;
            if (const auto digit = receiver.packet(timestamp, packet->payload, n * 20 * ms)) {
                ++digits;
                CHECK(digit->key == '3');
                CHECK(digit->duration_ms == 4000);
            }
        }
        now += 960;
    }
    CHECK(segments == 3);
    CHECK(digits == 1);
}

TEST_CASE("a press in segments whose packets are partly lost is still one") {
    rtp::DtmfReceiver receiver;
    receiver.packet(1000, event(1, 65440, false), 0);
    CHECK_FALSE(receiver.packet(1000 + 0xFFFF, event(1, 160, false), 20 * ms));
    const auto digit = receiver.packet(1000 + 0xFFFF, event(1, 800, true), 40 * ms);
    REQUIRE(digit);
    CHECK(digit->duration_ms == (0xFFFF + 800) / 8);
}

TEST_CASE("flash and other events are passed over, also within a press") {
    rtp::DtmfReceiver receiver;
    receiver.packet(1000, event(4, 160, false), 0);
    CHECK_FALSE(receiver.packet(1500, event(16, 800, true), 10 * ms));
    CHECK_FALSE(receiver.packet(1600, event(200, 800, true), 12 * ms));
    CHECK(receiver.packet(1000, event(4, 800, true), 20 * ms)->key == '4');
}

TEST_CASE("timestamps that jumped back do not make the keys unheard") {
    rtp::DtmfReceiver receiver;
    CHECK(receiver.packet(0x70000000, event(4, 800, true), 0));
    CHECK_FALSE(receiver.packet(0x70000000 - 8000, event(4, 800, true), 0));
    CHECK(receiver.packet(1000, event(5, 800, true), 100 * ms));
    CHECK_FALSE(receiver.packet(900, event(6, 800, false), 200 * ms));
    CHECK_FALSE(receiver.pressed());
    CHECK_FALSE(receiver.restart());
    CHECK_FALSE(receiver.packet(900, event(6, 640, false), 200 * ms));
    const auto digit = receiver.restart();
    REQUIRE(digit);
    CHECK(digit->key == '6');
}
