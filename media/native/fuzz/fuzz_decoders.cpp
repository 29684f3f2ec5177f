// Payloads of every codec, from a far end that means harm: nothing is written beyond the room there is.

#include <array>
#include <memory>

#include "input.hpp"
#include "trunkline/codec/codec.hpp"

using namespace trunkline;

namespace {

constexpr std::array<codec::Format, 6> formats{{
    {codec::Codec::pcmu, 8000},
    {codec::Codec::pcma, 8000},
    {codec::Codec::g722, 8000},
    {codec::Codec::l16, 8000},
    {codec::Codec::l16, 16000},
    {codec::Codec::opus, 48000},
}};

void drive(codec::Decoder& decoder, fuzz::Input& input) {
    while (!input.empty()) {
        const std::uint8_t what = input.byte();
        const auto payload = input.take(what & 0x80 ? input.word() : what & 0x3F);
        std::vector<std::int16_t> room(codec::max_packet_samples);
        const std::uint32_t expected = decoder.samples(payload);
        fuzz::require(expected <= codec::max_packet_samples);
        if ((what & 0x40) != 0) {
            fuzz::require(decoder.recover(payload, room) <= room.size());
            decoder.conceal(room);
        } else {
            fuzz::require(decoder.decode(payload, room) <= room.size());
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    fuzz::Input input(data, size);
    if (const auto decoder = codec::make_decoder(formats[input.byte() % formats.size()]))
        drive(*decoder, input);
    return 0;
}
