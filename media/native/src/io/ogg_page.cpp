#include <array>
#include <utility>

#include "trunkline/io/ogg_opus_file.hpp"

namespace trunkline::io {

namespace {

constexpr std::uint8_t first_page = 2;
constexpr std::uint8_t last_page = 4;
constexpr std::size_t crc_offset = 22;

/// The checksum of Ogg: polynomial 0x04C11DB7, most significant bit first, from zero (RFC 3533 6).
constexpr std::array<std::uint32_t, 256> make_crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t n = 0; n < 256; ++n) {
        std::uint32_t crc = n << 24;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc << 1) ^ ((crc >> 31) != 0 ? 0x04C11DB7U : 0U);
        }
        table[n] = crc;
    }
    return table;
}

constexpr auto crc_table = make_crc_table();

std::uint32_t crc_of(std::span<const std::uint8_t> bytes) {
    std::uint32_t crc = 0;
    for (const std::uint8_t byte : bytes) {
        crc = (crc << 8) ^ crc_table[((crc >> 24) ^ byte) & 0xFF];
    }
    return crc;
}

void put(std::vector<std::uint8_t>& out, std::uint64_t value, int bytes) {
    for (int n = 0; n < bytes; ++n) {
        out.push_back(static_cast<std::uint8_t>(value >> (8 * n)));
    }
}

}  // namespace

void OggPage::add(std::span<const std::uint8_t> packet) {
    // Segments of 255 bytes go on; one that is shorter, be it empty, ends the packet.
    segments_.insert(segments_.end(), packet.size() / max_segments, max_segments);
    segments_.push_back(static_cast<std::uint8_t>(packet.size() % max_segments));
    body_.insert(body_.end(), packet.begin(), packet.end());
}

std::vector<std::uint8_t> OggPage::close(std::uint64_t granule, bool last) {
    std::vector<std::uint8_t> page{'O', 'g', 'g', 'S', 0};
    page.reserve(27 + segments_.size() + body_.size());
    page.push_back(static_cast<std::uint8_t>((number_ == 0 ? first_page : 0) | (last ? last_page : 0)));
    put(page, granule, 8);
    put(page, serial_, 4);
    put(page, number_++, 4);
    put(page, 0, 4);
    page.push_back(static_cast<std::uint8_t>(segments_.size()));
    page.insert(page.end(), segments_.begin(), segments_.end());
    page.insert(page.end(), body_.begin(), body_.end());
    const std::uint32_t crc = crc_of(page);
    for (std::size_t n = 0; n < 4; ++n) {
        page[crc_offset + n] = static_cast<std::uint8_t>(crc >> (8 * n));
    }
    segments_.clear();
    body_.clear();
    return page;
}

}  // namespace trunkline::io
