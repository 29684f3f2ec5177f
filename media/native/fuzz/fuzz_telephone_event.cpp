// Telephone events (RFC 4733): any order of packets and silences gives keys, each once, none longer than it
// was.

#include "input.hpp"
#include "trunkline/rtp/dtmf_receiver.hpp"

using namespace trunkline;

namespace {

void check(const std::optional<rtp::Digit>& digit) {
    if (digit) fuzz::require(rtp::event_of_key(digit->key).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    rtp::DtmfReceiver receiver;
    std::int64_t now_ns = 0;
    while (!input.empty()) {
        now_ns += std::int64_t{input.byte()} * 1'000'000;
        const std::uint32_t timestamp = input.word();
        const auto payload = input.take(input.byte() & 7);
        check(receiver.packet(timestamp, payload, now_ns));
        check(receiver.expire(now_ns));
    }
    check(receiver.expire(now_ns + 2 * rtp::DtmfReceiver::lost_end_ns));
    fuzz::require(!receiver.pressed());
    return 0;
}
