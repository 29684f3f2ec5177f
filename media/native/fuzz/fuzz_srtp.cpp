// SRTP and SRTCP (RFC 3711): what is not made with the key is never taken and left as it was, whatever the
// order of packets, SSRCs and changes of key.

#include <algorithm>
#include <memory>
#include <optional>

#include "input.hpp"
#include "trunkline/engine/event_queue.hpp"
#include "trunkline/engine/srtp.hpp"

using namespace trunkline;
using engine::SrtpContext;
using engine::SrtpKind;
using engine::SrtpOpened;
using engine::SrtpVerdict;

namespace {

engine::SrtpKey key_of(std::uint8_t number) {
    engine::SrtpKey key;
    key.suite = static_cast<engine::SrtpSuite>(number % 4);
    key.bytes.fill(number);
    return key;
}

/// A far end and what listens to it.
class Session {
  public:
    explicit Session(engine::EventQueue& event_queue) : event_queue_(event_queue) { change_key(0); }

    void change_key(std::uint8_t number) {
        sent_ = SrtpContext::make(key_of(number), SrtpContext::Direction::sent, std::nullopt);
        received_.use(
            SrtpContext::make(key_of(number), SrtpContext::Direction::received, std::nullopt).release(),
            event_queue_);
    }

    /// Bytes of somebody without the key.
    void hear_stranger(SrtpKind kind, std::vector<std::uint8_t> bytes) {
        const std::vector<std::uint8_t> before = bytes;
        const SrtpOpened opened = received_.open(kind, bytes, event_queue_);
        fuzz::require(opened.verdict != SrtpVerdict::authentic && bytes == before);
    }

    /// A packet of the far end, one byte of it changed when `flip` says so.
    void hear(SrtpKind kind, const std::vector<std::uint8_t>& plain, std::size_t at, std::uint8_t flip) {
        std::vector<std::uint8_t> packet = plain;
        packet.resize(plain.size() + SrtpContext::max_growth_bytes);
        packet.resize(sent_->protect(kind, packet, plain.size()));
        // A number that was used is not sent under again.
        if (packet.empty()) return;
        packet[at % packet.size()] ^= flip;
        const SrtpOpened opened = received_.open(kind, packet, event_queue_);
        if (opened.verdict != SrtpVerdict::authentic) return;
        fuzz::require(flip == 0 && opened.size_bytes == plain.size());
        fuzz::require(std::equal(plain.begin(), plain.end(), packet.begin()));
    }

  private:
    engine::EventQueue& event_queue_;
    std::unique_ptr<SrtpContext> sent_;
    engine::SrtpReceiver received_;
};

std::vector<std::uint8_t> rtp_packet(fuzz::Input& input) {
    const std::uint16_t sequence = input.word();
    const std::uint8_t ssrc = input.byte();
    std::vector<std::uint8_t> packet{0x80, 0, static_cast<std::uint8_t>(sequence >> 8),
                                     static_cast<std::uint8_t>(sequence)};
    packet.resize(12U + input.byte() % 64, ssrc);
    return packet;
}

std::vector<std::uint8_t> rtcp_packet(fuzz::Input& input) {
    std::vector<std::uint8_t> packet{0x80, 201, 0, 1};
    packet.resize(8, input.byte());
    return packet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (!engine::srtp_ready()) return 0;
    static engine::Notifier notifier;
    static engine::EventQueue event_queue(notifier);
    {
        fuzz::Input input(data, size);
        Session session(event_queue);
        while (!input.empty()) {
            const std::uint8_t what = input.byte();
            const SrtpKind kind = what % 4 == 0 ? SrtpKind::rtcp : SrtpKind::rtp;
            if (what < 0x60) {
                session.hear_stranger(kind, input.take(input.byte()));
            } else if (what < 0xF8) {
                const auto plain = kind == SrtpKind::rtp ? rtp_packet(input) : rtcp_packet(input);
                const std::size_t at = input.byte();
                session.hear(kind, plain, at, what % 8 == 1 ? input.byte() : 0);
            } else {
                session.change_key(input.byte());
            }
        }
    }
    util::NodeStack::destroy(event_queue.spent().take_newest_first());
    return 0;
}
