// From the numbers of a far end to those of the stream that is relayed to: whatever comes, no number is sent
// twice, and what is heard is sent on.

#include <array>
#include <optional>

#include "input.hpp"
#include "trunkline/rtp/reception.hpp"
#include "trunkline/rtp/sender.hpp"

using namespace trunkline;

namespace {

/// The packets sent last.
class Sent {
  public:
    void note(std::uint16_t sequence) {
        for (const std::optional<std::uint16_t>& before : last_) {
            fuzz::require(before != sequence);
        }
        last_[at_++ % last_.size()] = sequence;
    }

  private:
    std::array<std::optional<std::uint16_t>, 256> last_;
    std::size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    rtp::Reception reception(8000);
    rtp::Sender sender(1, input.word(), 0, 8000);
    Sent sent;
    rtp::Header header;
    std::int64_t now_ns = 1'000'000'000;
    while (!input.empty()) {
        const std::uint8_t what = input.byte();
        now_ns += std::int64_t{what & 0x0FU} * 10'000'000;
        if ((what & 0xF0) == 0xF0) {
            sent.note(sender.local(0, now_ns).sequence);
            sender.advance(160, now_ns);
            continue;
        }
        // Mostly in order; else anywhere near, or anywhere.
        header.sequence = static_cast<std::uint16_t>(header.sequence + 1);
        header.timestamp += 160;
        if ((what & 0x80) != 0) header.sequence = static_cast<std::uint16_t>(header.sequence - input.byte());
        if ((what & 0x40) != 0) header.sequence = input.word();
        if ((what & 0x20) != 0) header.timestamp = std::uint32_t{input.word()} << 16 | input.word();
        if ((what & 0x10) != 0) header.ssrc = input.byte();
        const rtp::Verdict verdict = reception.note(header, true, now_ns);
        if (verdict == rtp::Verdict::suspect || verdict == rtp::Verdict::duplicate) continue;
        if (verdict == rtp::Verdict::restarted) sender.end_relay();
        const auto relayed = sender.relayed(header, 160, now_ns);
        fuzz::require(verdict != rtp::Verdict::restarted || relayed);
        if (relayed) sent.note(relayed->sequence);
    }
    return 0;
}
