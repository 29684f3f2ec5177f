// Bytes of an agent, in pieces, with audio that is told by what is around it or by a description: whatever
// comes, the reading end passes on no more than came, ends at most once, and waits only for what it was told
// to wait for.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "input.hpp"
#include "trunkline/websocket/inbound.hpp"

using namespace trunkline;

namespace {

constexpr std::size_t max_message_bytes = 4096;

class Listener final : public websocket::InboundListener {
  public:
    bool audio(std::span<const std::uint8_t> bytes, bool) override {
        passed += bytes.size();
        fuzz::require(!ended);
        return bytes.size() % 2 == 0;
    }
    void message(websocket::MessageKind kind, std::uint16_t code,
                 std::span<const std::uint8_t> bytes) override {
        using websocket::MessageKind;
        fuzz::require(!ended);
        const bool data = kind == MessageKind::text || kind == MessageKind::binary;
        if (data) fuzz::require(bytes.size() <= max_message_bytes);
        if (data) ++unhandled;
        ended = kind == MessageKind::close || kind == MessageKind::violation || kind == MessageKind::abuse;
        fuzz::require(ended || code == 0);
    }
    void ping(std::span<const std::uint8_t> payload) override {
        fuzz::require(!ended && payload.size() <= websocket::max_control_bytes);
    }

    std::size_t passed = 0;
    std::size_t unhandled = 0;
    bool ended = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    Listener listener;
    websocket::Inbound inbound(max_message_bytes, listener);
    const std::size_t piece = 1 + data[0];
    std::string before = (data[1] & 1) != 0 ? "<" : "";
    std::string after = (data[1] & 1) != 0 ? ">" : "";
    if ((data[1] & 8) != 0) {
        using Event = websocket::AudioEvent;
        const std::vector<Event::Member> members{{"/a", Event::Kind::audio, "", 0}};
        auto event = std::make_unique<Event>(members, (data[1] & 1) != 0);
        inbound.learn(event);
    } else {
        inbound.learn(before, after);
    }
    inbound.play((data[1] & 2) != 0);
    std::int64_t now_ns = 1;
    for (std::size_t at = 2; at < size; at += piece) {
        inbound.receive({data + at, std::min(piece, size - at)}, now_ns);
        while (!inbound.wants_more()) {
            now_ns += 60'000'000;
            inbound.resume(now_ns);
            const std::size_t waiting = std::exchange(listener.unhandled, 0);
            for (std::size_t n = 0; n < waiting; ++n)
                inbound.handled(1000, now_ns);
            fuzz::require(waiting != 0 || !inbound.paused() || now_ns < 60'000'000'000);
        }
        if (at == (data[1] >> 2)) inbound.close(now_ns);
    }
    fuzz::require(listener.passed <= size);
    return 0;
}
