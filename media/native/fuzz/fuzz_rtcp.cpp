// RTCP (RFC 3550 6, RFC 3611): compound packets read and taken in by a session that reports all the while.

#include <array>

#include "input.hpp"
#include "trunkline/rtp/rtcp_session.hpp"

using namespace trunkline;

namespace {

/// Checks that whatever is told lies within the packet, and lies within its range.
class Checker final : public rtp::RtcpHandler {
  public:
    void sender_report(std::uint32_t, const rtp::SenderInfo&) override { ++told; }
    void receiver_report(std::uint32_t) override { ++told; }
    void report_block(std::uint32_t, const rtp::ReportBlock& block) override {
        fuzz::require(block.cumulative_lost >= -(1 << 23) && block.cumulative_lost < 1 << 23);
        ++told;
    }
    void cname(std::uint32_t, std::string_view name) override {
        fuzz::require(name.size() <= 255);
        for (const char character : name)
            sum += static_cast<unsigned char>(character);
    }
    void bye(std::uint32_t) override { ++told; }
    void reference_time(std::uint32_t, rtp::NtpTime) override { ++told; }
    void reference_delay(std::uint32_t, const rtp::ReferenceDelay&) override { ++told; }
    void voip_metrics(std::uint32_t, const rtp::VoipMetrics&) override { ++told; }

    unsigned told = 0;
    unsigned sum = 0;  ///< Of the bytes of names, so that they are really read.
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    rtp::RtcpSession session(0x1234, 1, rtp::NtpTime{3'900'000'000} << 32);
    rtp::Reception reception(8000);
    std::int64_t now_ns = 0;
    session.start(now_ns);
    while (!input.empty()) {
        now_ns += std::int64_t{input.byte()} * 50'000'000;
        const auto datagram = input.take(input.word() & 0x3FF);
        Checker checker;
        const bool read = rtp::read_rtcp(datagram, checker);
        fuzz::require(read || checker.told == 0);
        fuzz::require(session.take(datagram, now_ns) == read);
        if (now_ns >= session.due_ns()) {
            std::array<std::uint8_t, rtp::RtcpSession::max_bytes> room;
            const auto report = session.report(room, {100, 16000, 160 * 100}, reception, false, now_ns);
            fuzz::require(!report.empty() && rtp::read_rtcp(report, checker));
            fuzz::require(session.due_ns() > now_ns);
        }
    }
    return 0;
}
