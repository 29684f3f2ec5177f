// RTP headers (RFC 3550 5.1), and the numbers of a source followed through whatever comes.

#include <algorithm>

#include "input.hpp"
#include "trunkline/rtp/jitter_meter.hpp"
#include "trunkline/rtp/packet.hpp"
#include "trunkline/rtp/sequence_tracker.hpp"

using namespace trunkline;

namespace {

void check_packet(std::vector<std::uint8_t> datagram) {
    (void)rtp::is_rtcp(datagram);
    const auto packet = rtp::parse(datagram);
    if (!packet) return;
    const auto payload = packet->payload;
    fuzz::require(payload.data() >= datagram.data() + rtp::header_bytes || payload.empty());
    fuzz::require(payload.data() + payload.size() <= datagram.data() + datagram.size());
    // What was read is what a plain header with the same fields says.
    std::vector<std::uint8_t> written(rtp::header_bytes + payload.size());
    rtp::write_header(written.data(), packet->header);
    std::copy(payload.begin(), payload.end(), written.begin() + rtp::header_bytes);
    const auto again = rtp::parse(written);
    fuzz::require(again && again->payload.size() == payload.size());
    fuzz::require(again->header.sequence == packet->header.sequence &&
                  again->header.ssrc == packet->header.ssrc);
    fuzz::require(again->header.timestamp == packet->header.timestamp);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    rtp::SequenceTracker sequence;
    rtp::JitterMeter jitter(8000);
    std::int64_t now_ns = 0;
    while (!input.empty()) {
        const std::uint8_t what = input.byte();
        if (what < 0x40) {
            check_packet(input.take(what));
        } else if (what == 0x40) {
            sequence.restart();
            jitter.restart();
        } else {
            const std::uint16_t number = input.word();
            now_ns += std::int64_t{what} * 1'000'000;
            if (sequence.note(number) != rtp::Arrival::duplicate) jitter.note(number * 160U, now_ns);
        }
        fuzz::require(sequence.lost() < std::uint64_t{1} << 40);
    }
    return 0;
}
