// Datagrams at the browsers' socket: a source is the leg's that learnt it last, and nobody's once that is
// forgotten; what is told apart agrees with RFC 7983.

#include <array>
#include <map>
#include <memory>

#include "input.hpp"
#include "trunkline/engine/browser_table.hpp"

using namespace trunkline;
using engine::BrowserLeg;
using engine::Muxed;

namespace {

io::Address address_of(std::uint8_t number) {
    const char* host = (number & 0x80) != 0 ? "2001:db8::7" : "192.0.2.7";
    return *io::Address::parse(host, static_cast<std::uint16_t>(1000 + (number & 0x0F)));
}

void check(std::span<const std::uint8_t> datagram) {
    const Muxed kind = engine::demultiplex(datagram);
    const int first = datagram.empty() ? 255 : datagram[0];
    fuzz::require(kind != Muxed::stun || (first < 4 && datagram.size() >= 20));
    fuzz::require(kind != Muxed::dtls || (first >= 20 && first < 64 && datagram.size() >= 13));
    fuzz::require(kind != Muxed::rtp || (first >= 128 && first < 192 && datagram.size() >= 8));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    engine::BrowserTable table;
    std::array<std::unique_ptr<BrowserLeg>, 4> legs;
    for (auto& leg : legs)
        leg = std::make_unique<BrowserLeg>();
    std::map<std::uint8_t, const BrowserLeg*> owners;
    while (!input.empty()) {
        const std::uint8_t what = input.byte();
        auto& leg = legs[what & 3U];
        if ((what & 0xC0) == 0xC0) {
            check(input.take(input.byte()));
        } else if ((what & 0x80) != 0) {
            table.forget(*leg);
            std::erase_if(owners, [&](const auto& owner) { return owner.second == leg.get(); });
            // As the engine has it: a leg that was forgotten is destroyed.
            leg = std::make_unique<BrowserLeg>();
        } else {
            const std::uint8_t number = input.byte() & 0x8F;
            table.learn(*leg, address_of(number));
            owners[number] = leg.get();
        }
        fuzz::require(table.size() == owners.size());
        for (const auto& [number, owner] : owners)
            fuzz::require(table.find(address_of(number)) == owner);
        std::size_t sources = 0;
        for (const auto& each : legs)
            sources += each->sources.size();
        fuzz::require(sources == owners.size());
    }
    return 0;
}
