#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "trunkline/rtp/packet.hpp"
#include "trunkline/rtp/rtcp.hpp"

using namespace trunkline::rtp;

namespace {

/// Keeps what a compound packet said.
struct Listener final : RtcpHandler {
    void sender_report(std::uint32_t reporter, const SenderInfo& info) override {
        reporters.push_back(reporter);
        infos.push_back(info);
    }
    void receiver_report(std::uint32_t reporter) override { reporters.push_back(reporter); }
    void report_block(std::uint32_t, const ReportBlock& block) override { blocks.push_back(block); }
    void cname(std::uint32_t, std::string_view name) override { names.emplace_back(name); }
    void bye(std::uint32_t ssrc) override { byes.push_back(ssrc); }
    void reference_time(std::uint32_t, NtpTime time) override { times.push_back(time); }
    void reference_delay(std::uint32_t, const ReferenceDelay& item) override { delays.push_back(item); }
    void voip_metrics(std::uint32_t, const VoipMetrics& item) override { metrics.push_back(item); }

    std::vector<std::uint32_t> reporters, byes;
    std::vector<SenderInfo> infos;
    std::vector<ReportBlock> blocks;
    std::vector<std::string> names;
    std::vector<NtpTime> times;
    std::vector<ReferenceDelay> delays;
    std::vector<VoipMetrics> metrics;

    bool silent() const {
        return reporters.empty() && byes.empty() && blocks.empty() && names.empty() && times.empty() &&
               delays.empty() && metrics.empty();
    }
};

/// An empty receiver report of SSRC 1, with which a compound packet may begin.
const std::vector<std::uint8_t> empty_report{0x80, 201, 0, 1, 0, 0, 0, 1};

std::vector<std::uint8_t> after_report(std::vector<std::uint8_t> part) {
    part.insert(part.begin(), empty_report.begin(), empty_report.end());
    return part;
}

bool taken(const std::vector<std::uint8_t>& packet) {
    Listener listener;
    const bool well_formed = read_rtcp(packet, listener);
    CHECK(well_formed != listener.silent());
    return well_formed;
}

}  // namespace

TEST_CASE("a sender report is read as RFC 3550 lays it out") {
    const std::vector<std::uint8_t> packet{0x81, 200,  0,    12,   0x11, 0x22, 0x33, 0x44,  // SSRC
                                           0xE0, 1,    2,    3,    0x80, 0,    0,    0,    0, 0, 0x10, 0,
                                           0,    0,    0,    7,    0,    0,    4,    0x60,  // sender
                                           0xAA, 0xBB, 0xCC, 0xDD, 64,   0xFF, 0xFF, 0xFE, 0, 1, 0,    5,
                                           0,    0,    0,    80,   1,    2,    3,    4,    0, 1, 0x80, 0};
    Listener heard;
    REQUIRE(read_rtcp(packet, heard));
    CHECK(heard.reporters == std::vector<std::uint32_t>{0x11223344});
    REQUIRE(heard.infos.size() == 1);
    CHECK(heard.infos[0].ntp == 0xE001020380000000);
    CHECK(heard.infos[0].rtp_timestamp == 0x1000);
    CHECK(heard.infos[0].packets == 7);
    CHECK(heard.infos[0].payload_bytes == 1120);
    REQUIRE(heard.blocks.size() == 1);
    CHECK(heard.blocks[0].ssrc == 0xAABBCCDD);
    CHECK(heard.blocks[0].fraction_lost == 64);
    CHECK(heard.blocks[0].cumulative_lost == -2);
    CHECK(heard.blocks[0].highest_sequence == 0x10005);
    CHECK(heard.blocks[0].jitter == 80);
    CHECK(heard.blocks[0].last_report == 0x01020304);
    CHECK(heard.blocks[0].delay == 0x18000);
    CHECK(is_rtcp(packet));
}

TEST_CASE("what is written is read back") {
    std::array<std::uint8_t, 400> room;
    RtcpWriter writer(room);
    std::array<ReportBlock, 2> blocks{};
    blocks[0] = {7, 255, 0x7FFFFF, 0xFFFFFFFF, 1, 2, 3};
    blocks[1] = {8, 1, -0x800000, 5, 6, 7, 8};
    writer.sender_report(0xCAFE, {0x0123456789ABCDEF, 2, 3, 4}, blocks);
    // Each length of a name needs another padding.
    for (const char* name : {"", "a", "ab", "abc", "abcd"}) {
        writer.cname(0xCAFE, name);
    }
    writer.reference_time(0xCAFE, 99);
    writer.reference_delay(0xCAFE, {1, 2, 3});
    writer.bye(0xCAFE);
    REQUIRE_FALSE(writer.packet().empty());
    CHECK(writer.packet().size() % 4 == 0);
    Listener heard;
    REQUIRE(read_rtcp(writer.packet(), heard));
    REQUIRE(heard.blocks.size() == 2);
    CHECK(heard.blocks[0].cumulative_lost == 0x7FFFFF);
    CHECK(heard.blocks[0].fraction_lost == 255);
    CHECK(heard.blocks[0].highest_sequence == 0xFFFFFFFF);
    CHECK(heard.blocks[1].cumulative_lost == -0x800000);
    CHECK(heard.blocks[1].delay == 8);
    CHECK(heard.infos[0].ntp == 0x0123456789ABCDEF);
    CHECK(heard.names == std::vector<std::string>{"", "a", "ab", "abc", "abcd"});
    CHECK(heard.times == std::vector<NtpTime>{99});
    REQUIRE(heard.delays.size() == 1);
    CHECK(heard.delays[0].last_reference == 2);
    CHECK(heard.byes == std::vector<std::uint32_t>{0xCAFE});
}

TEST_CASE("a packet that does not fit is not written at all") {
    std::array<std::uint8_t, 20> room;
    RtcpWriter writer(room);
    writer.receiver_report(1, {});
    writer.cname(1, "much too long for the room");
    writer.bye(1);
    CHECK(writer.packet().empty());
}

TEST_CASE("types that are not known are skipped, also within extended reports") {
    CHECK(taken(after_report({0x80, 204, 0, 2, 0, 0, 0, 1, 'n', 'a', 'm', 'e'})));
    CHECK(taken(after_report({0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2})));
    CHECK(taken(after_report({0x80, 222, 0, 0})));
    CHECK(taken(after_report({0x80, 207, 0, 3, 0, 0, 0, 1, 42, 0, 0, 1, 1, 2, 3, 4})));
}

TEST_CASE("VoIP metrics are read") {
    std::vector<std::uint8_t> part{0x80, 207, 0, 10, 0, 0, 0, 1, 7, 0, 0, 8, 0, 0, 0, 9};
    part.insert(part.end(), {26, 13, 0, 0, 0, 0, 0, 0, 0, 120, 0, 60});
    part.insert(part.end(), {127, 127, 127, 16, 82, 127, 41, 40, 0, 0, 0, 0, 0, 0, 0, 0});
    Listener heard;
    REQUIRE(read_rtcp(after_report(part), heard));
    REQUIRE(heard.metrics.size() == 1);
    CHECK(heard.metrics[0].ssrc == 9);
    CHECK(heard.metrics[0].loss_rate == 26);
    CHECK(heard.metrics[0].discard_rate == 13);
    CHECK(heard.metrics[0].round_trip_ms == 120);
    CHECK(heard.metrics[0].end_system_ms == 60);
    CHECK(heard.metrics[0].r_factor == 82);
    CHECK(heard.metrics[0].mos_cq == 40);
}

TEST_CASE("malformed packets say nothing") {
    CHECK(taken(empty_report));
    CHECK_FALSE(taken({}));
    CHECK_FALSE(taken({0x80, 201, 0}));
    CHECK_FALSE(taken({0x80, 201, 0, 0}));
    CHECK_FALSE(taken({0x40, 201, 0, 1, 0, 0, 0, 1}));                // version 1
    CHECK_FALSE(taken({0x80, 202, 0, 1, 0, 0, 0, 1}));                // begins with no report
    CHECK_FALSE(taken({0xA0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4}));    // padding on the first
    CHECK_FALSE(taken({0x81, 201, 0, 1, 0, 0, 0, 1}));                // a block that is not there
    CHECK_FALSE(taken({0x80, 200, 0, 1, 0, 0, 0, 1}));                // no room for sender information
    CHECK_FALSE(taken({0x80, 201, 0, 9, 0, 0, 0, 1}));                // longer than the datagram
    CHECK_FALSE(taken(after_report({0x80, 203})));                    // half a header
    CHECK_FALSE(taken(after_report({0x41, 203, 0, 1, 0, 0, 0, 1})));  // version 1 in the middle
    CHECK_FALSE(taken(after_report({0x82, 203, 0, 1, 0, 0, 0, 1})));  // two goodbyes, one SSRC
    CHECK_FALSE(taken(after_report({0x81, 202, 0, 2, 0, 0, 0, 1, 1, 9, 'x', 0})));    // name too long
    CHECK_FALSE(taken(after_report({0x81, 202, 0, 2, 0, 0, 0, 1, 1, 2, 'x', 'y'})));  // no end of the list
    CHECK_FALSE(taken(after_report({0x80, 207, 0, 2, 0, 0, 0, 1, 4, 0, 0, 2})));      // block too long
    CHECK_FALSE(taken(after_report({0xA1, 203, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3})));      // odd padding
    CHECK_FALSE(taken(after_report({0xA1, 203, 0, 2, 0, 0, 0, 1, 0, 0, 0, 12})));     // more than all
    CHECK(taken(after_report({0xA1, 203, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4})));
}

TEST_CASE("no bytes make the reader stumble") {
    std::mt19937 random{3550};
    std::array<std::uint8_t, 400> room;
    RtcpWriter writer(room);
    const std::array<ReportBlock, 1> blocks{};
    writer.sender_report(1, {}, blocks);
    writer.cname(1, "name");
    writer.reference_delay(1, {1, 2, 3});
    writer.bye(1);
    const std::vector<std::uint8_t> good(writer.packet().begin(), writer.packet().end());
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::uint8_t> packet = good;
        for (int change = 0; change < 4; ++change) {
            packet[random() % packet.size()] = static_cast<std::uint8_t>(random());
        }
        packet.resize(random() % (packet.size() + 1));
        packet.shrink_to_fit();
        taken(packet);
    }
}
