#include "trunkline/rtp/rtcp.hpp"

#include <algorithm>
#include <cstring>

#include "trunkline/rtp/wire.hpp"

namespace trunkline::rtp {

namespace {

constexpr std::uint8_t type_sender_report = 200;
constexpr std::uint8_t type_receiver_report = 201;
constexpr std::uint8_t type_description = 202;
constexpr std::uint8_t type_bye = 203;
constexpr std::uint8_t type_extended_report = 207;

constexpr std::uint8_t item_end = 0;
constexpr std::uint8_t item_cname = 1;

constexpr std::uint8_t block_reference_time = 4;
constexpr std::uint8_t block_reference_delay = 5;
constexpr std::uint8_t block_voip_metrics = 7;

constexpr std::size_t header_bytes = 4;
constexpr std::size_t sender_info_bytes = 20;
constexpr std::size_t block_bytes = 24;
constexpr std::size_t reference_delay_bytes = 12;
constexpr std::size_t voip_metrics_bytes = 32;
constexpr std::size_t max_blocks = 31;

using Bytes = std::span<const std::uint8_t>;

/// Hears nothing: for the first walk, which only checks.
class Deaf final : public RtcpHandler {
    void sender_report(std::uint32_t, const SenderInfo&) override {}
    void receiver_report(std::uint32_t) override {}
    void report_block(std::uint32_t, const ReportBlock&) override {}
    void cname(std::uint32_t, std::string_view) override {}
    void bye(std::uint32_t) override {}
    void reference_time(std::uint32_t, NtpTime) override {}
    void reference_delay(std::uint32_t, const ReferenceDelay&) override {}
    void voip_metrics(std::uint32_t, const VoipMetrics&) override {}
};

ReportBlock read_block(const std::uint8_t* at) {
    ReportBlock block;
    block.ssrc = read_u32(at);
    block.fraction_lost = at[4];
    // Shifted up and down again, so that its sign is that of 24 bits.
    block.cumulative_lost = static_cast<std::int32_t>(read_u32(at + 4) << 8) / 256;
    block.highest_sequence = read_u32(at + 8);
    block.jitter = read_u32(at + 12);
    block.last_report = read_u32(at + 16);
    block.delay = read_u32(at + 20);
    return block;
}

void read_blocks(Bytes blocks, std::uint32_t reporter, RtcpHandler& handler) {
    for (; !blocks.empty(); blocks = blocks.subspan(block_bytes)) {
        handler.report_block(reporter, read_block(blocks.data()));
    }
}

bool read_sender_report(Bytes body, std::size_t count, RtcpHandler& handler) {
    if (body.size() < 4 + sender_info_bytes + count * block_bytes) return false;
    const std::uint32_t reporter = read_u32(body.data());
    handler.sender_report(
        reporter, {read_u64(&body[4]), read_u32(&body[12]), read_u32(&body[16]), read_u32(&body[20])});
    read_blocks(body.subspan(4 + sender_info_bytes, count * block_bytes), reporter, handler);
    return true;
}

bool read_receiver_report(Bytes body, std::size_t count, RtcpHandler& handler) {
    if (body.size() < 4 + count * block_bytes) return false;
    const std::uint32_t reporter = read_u32(body.data());
    handler.receiver_report(reporter);
    read_blocks(body.subspan(4, count * block_bytes), reporter, handler);
    return true;
}

/// Read one chunk of a source description; where the next begins, or 0 when it is malformed.
std::size_t read_chunk(Bytes chunk, RtcpHandler& handler) {
    if (chunk.size() < 4) return 0;
    const std::uint32_t ssrc = read_u32(chunk.data());
    std::size_t at = 4;
    while (at < chunk.size() && chunk[at] != item_end) {
        if (chunk.size() - at < 2 || chunk.size() - at - 2 < chunk[at + 1]) return 0;
        const std::size_t size = chunk[at + 1];
        if (chunk[at] == item_cname) {
            handler.cname(ssrc, {reinterpret_cast<const char*>(&chunk[at]) + 2, size});
        }
        at += 2 + size;
    }
    // At least one zero ends the list and fills up to the next word.
    const std::size_t next = (at / 4 + 1) * 4;
    return next <= chunk.size() ? next : 0;
}

bool read_description(Bytes body, std::size_t count, RtcpHandler& handler) {
    for (; count != 0; --count) {
        const std::size_t size = read_chunk(body, handler);
        if (size == 0) return false;
        body = body.subspan(size);
    }
    return true;
}

bool read_bye(Bytes body, std::size_t count, RtcpHandler& handler) {
    if (body.size() < 4 * count) return false;
    for (std::size_t n = 0; n < count; ++n) {
        handler.bye(read_u32(&body[4 * n]));
    }
    return true;
}

/// Read the contents of an extended report block; those too short for their type say nothing.
void read_extended_block(std::uint8_t type, Bytes content, std::uint32_t reporter, RtcpHandler& handler) {
    if (type == block_reference_time && content.size() >= 8) {
        handler.reference_time(reporter, read_u64(content.data()));
    } else if (type == block_reference_delay) {
        for (; content.size() >= reference_delay_bytes; content = content.subspan(reference_delay_bytes)) {
            handler.reference_delay(reporter,
                                    {read_u32(content.data()), read_u32(&content[4]), read_u32(&content[8])});
        }
    } else if (type == block_voip_metrics && content.size() >= voip_metrics_bytes) {
        handler.voip_metrics(reporter,
                             {read_u32(content.data()), content[4], content[5], read_u16(&content[12]),
                              read_u16(&content[14]), content[20], content[23]});
    }
}

bool read_extended_report(Bytes body, RtcpHandler& handler) {
    if (body.size() < 4) return false;
    const std::uint32_t reporter = read_u32(body.data());
    body = body.subspan(4);
    while (!body.empty()) {
        if (body.size() < header_bytes) return false;
        const std::size_t size = header_bytes + 4U * read_u16(&body[2]);
        if (size > body.size()) return false;
        read_extended_block(body[0], body.subspan(header_bytes, size - header_bytes), reporter, handler);
        body = body.subspan(size);
    }
    return true;
}

bool read_part(std::uint8_t type, std::size_t count, Bytes body, RtcpHandler& handler) {
    switch (type) {
        case type_sender_report:
            return read_sender_report(body, count, handler);
        case type_receiver_report:
            return read_receiver_report(body, count, handler);
        case type_description:
            return read_description(body, count, handler);
        case type_bye:
            return read_bye(body, count, handler);
        case type_extended_report:
            return read_extended_report(body, handler);
        default:
            return true;
    }
}

bool is_report(std::uint8_t type) {
    return type == type_sender_report || type == type_receiver_report;
}

/// Remove padding from the last part; false when it says something impossible.
bool strip_padding(Bytes& body) {
    const std::size_t padding_bytes = body.empty() ? 0 : body.back();
    if (padding_bytes == 0 || padding_bytes % 4 != 0 || padding_bytes > body.size()) return false;
    body = body.first(body.size() - padding_bytes);
    return true;
}

bool walk(Bytes datagram, RtcpHandler& handler) {
    if (datagram.size() < header_bytes) return false;
    const bool starts_well = is_report(datagram[1]) && (datagram[0] & 0x20) == 0;
    if (!starts_well) return false;
    while (!datagram.empty()) {
        if (datagram.size() < header_bytes || datagram[0] >> 6 != rtp_version) return false;
        const std::size_t size = header_bytes + 4U * read_u16(&datagram[2]);
        if (size > datagram.size()) return false;
        Bytes body = datagram.subspan(header_bytes, size - header_bytes);
        const bool padded = (datagram[0] & 0x20) != 0;
        if (padded && (size != datagram.size() || !strip_padding(body))) return false;
        if (!read_part(datagram[1], datagram[0] & 0x1F, body, handler)) return false;
        datagram = datagram.subspan(size);
    }
    return true;
}

}  // namespace

bool read_rtcp(std::span<const std::uint8_t> datagram, RtcpHandler& handler) {
    Deaf deaf;
    return walk(datagram, deaf) && walk(datagram, handler);
}

void RtcpWriter::sender_report(std::uint32_t ssrc, const SenderInfo& info,
                               std::span<const ReportBlock> blocks) {
    blocks = blocks.first(std::min(blocks.size(), max_blocks));
    std::uint8_t* at =
        begin(blocks.size(), type_sender_report, 4 + sender_info_bytes + blocks.size() * block_bytes);
    if (at == nullptr) return;
    write_u32(at, ssrc);
    write_u64(at + 4, info.ntp);
    write_u32(at + 12, info.rtp_timestamp);
    write_u32(at + 16, info.packets);
    write_u32(at + 20, info.payload_bytes);
    write_blocks(at + 4 + sender_info_bytes, blocks);
}

void RtcpWriter::receiver_report(std::uint32_t ssrc, std::span<const ReportBlock> blocks) {
    blocks = blocks.first(std::min(blocks.size(), max_blocks));
    std::uint8_t* at = begin(blocks.size(), type_receiver_report, 4 + blocks.size() * block_bytes);
    if (at == nullptr) return;
    write_u32(at, ssrc);
    write_blocks(at + 4, blocks);
}

void RtcpWriter::cname(std::uint32_t ssrc, std::string_view name) {
    name = name.substr(0, 255);
    const std::size_t body_bytes = (4 + 2 + name.size()) / 4 * 4 + 4;
    std::uint8_t* at = begin(1, type_description, body_bytes);
    if (at == nullptr) return;
    std::memset(at, 0, body_bytes);
    write_u32(at, ssrc);
    at[4] = item_cname;
    at[5] = static_cast<std::uint8_t>(name.size());
    std::copy(name.begin(), name.end(), at + 6);
}

void RtcpWriter::bye(std::uint32_t ssrc) {
    if (std::uint8_t* at = begin(1, type_bye, 4)) write_u32(at, ssrc);
}

void RtcpWriter::reference_time(std::uint32_t ssrc, NtpTime time) {
    std::uint8_t* at = begin(0, type_extended_report, 4 + header_bytes + 8);
    if (at == nullptr) return;
    write_u32(at, ssrc);
    at[4] = block_reference_time;
    at[5] = 0;
    write_u16(at + 6, 2);
    write_u64(at + 8, time);
}

void RtcpWriter::reference_delay(std::uint32_t ssrc, const ReferenceDelay& item) {
    std::uint8_t* at = begin(0, type_extended_report, 4 + header_bytes + reference_delay_bytes);
    if (at == nullptr) return;
    write_u32(at, ssrc);
    at[4] = block_reference_delay;
    at[5] = 0;
    write_u16(at + 6, 3);
    write_u32(at + 8, item.ssrc);
    write_u32(at + 12, item.last_reference);
    write_u32(at + 16, item.delay);
}

/// Write the header of a part; where its body goes, or null when there is no room.
std::uint8_t* RtcpWriter::begin(std::size_t count, std::uint8_t type, std::size_t body_bytes) {
    if (overflowed_ || room_.size() - size_ < header_bytes + body_bytes) {
        overflowed_ = true;
        return nullptr;
    }
    std::uint8_t* at = room_.data() + size_;
    at[0] = static_cast<std::uint8_t>(rtp_version << 6 | count);
    at[1] = type;
    write_u16(at + 2, static_cast<std::uint16_t>(body_bytes / 4));
    size_ += header_bytes + body_bytes;
    return at + header_bytes;
}

void RtcpWriter::write_blocks(std::uint8_t* at, std::span<const ReportBlock> blocks) {
    for (const ReportBlock& block : blocks) {
        write_u32(at, block.ssrc);
        write_u32(at + 4, static_cast<std::uint32_t>(block.cumulative_lost) & 0xFFFFFF);
        at[4] = block.fraction_lost;
        write_u32(at + 8, block.highest_sequence);
        write_u32(at + 12, block.jitter);
        write_u32(at + 16, block.last_report);
        write_u32(at + 20, block.delay);
        at += block_bytes;
    }
}

}  // namespace trunkline::rtp
