// The first stage of receiving: packets of any numbers, timestamps and payloads at any time give an unbroken
// run.

#include <array>
#include <memory>

#include "input.hpp"
#include "trunkline/codec/codec.hpp"
#include "trunkline/graph/jitter_buffer.hpp"

using namespace trunkline;

namespace {

constexpr std::array<codec::Format, 3> formats{{
    {codec::Codec::pcmu, 8000},
    {codec::Codec::l16, 16000},
    {codec::Codec::opus, 48000},
}};

/// Hand out all that is due; how much is bounded by the time that went by and what was put in.
void drain(graph::JitterBuffer& buffer, std::int64_t now_ns) {
    graph::AudioChunk chunk;
    for (int chunks = 0; buffer.next(chunk, now_ns); ++chunks) {
        fuzz::require(chunks < 2000);
        fuzz::require(!chunk.samples.empty() && chunk.samples.size() <= codec::max_packet_samples);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    fuzz::Input input(data, size);
    const auto decoder = codec::make_decoder(formats[input.byte() % formats.size()]);
    if (!decoder) return 0;
    auto buffer = std::make_unique<graph::JitterBuffer>();
    std::int64_t now_ns = 1'000'000'000;
    buffer->use(decoder.get(), now_ns);
    rtp::Header header;
    while (!input.empty()) {
        const std::uint8_t what = input.byte();
        now_ns += std::int64_t{input.byte()} * 2'000'000;
        // Mostly in order, as real senders are; else anywhere.
        header.sequence = static_cast<std::uint16_t>(what & 0x20 ? input.word() : header.sequence + 1U);
        header.timestamp =
            what & 0x40 ? std::uint32_t{input.word()} << 16 | input.word() : header.timestamp + 160;
        header.marker = (what & 0x10) != 0;
        const auto payload = input.take(input.byte());
        switch (what & 0x07) {
            case 0:
                buffer->put_noise(header, payload, (what & 0x08) != 0, now_ns);
                break;
            case 1:
                buffer->skip(header);
                break;
            default:
                buffer->put(header, payload, (what & 0x08) != 0, now_ns);
        }
        if ((what & 0x80) == 0) drain(*buffer, now_ns);
    }
    drain(*buffer, now_ns);
    return 0;
}
