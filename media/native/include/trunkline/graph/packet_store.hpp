#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trunkline/codec/format.hpp"

namespace trunkline::graph {

/// Kind of a stored packet.
enum class Content : std::uint8_t {
    audio,
    noise,  ///< A description of comfort noise (RFC 3389).
    none,   ///< Nothing to hear: it only fills its place in the order.
};

/// A packet that waits for its turn.
struct StoredPacket {
    std::uint16_t sequence = 0;
    bool marker = false;
    Content content = Content::none;
    std::uint32_t timestamp = 0;
    std::span<const std::uint8_t> payload;
};

/// The packets of one source that wait for their turn, within a window of sequence numbers.
///
/// All memory is allocated when it is made: 64 places, and 16 KiB for what the packets carry, which is half a
/// second of the most expensive codec. The window begins with the next number to be taken.
class PacketStore {
  public:
    static constexpr std::size_t places = 64;
    static constexpr std::size_t capacity_bytes = 16 << 10;
    static_assert(capacity_bytes >= 2 * codec::max_payload_bytes);

    PacketStore() : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(capacity_bytes)) {}

    /// Keep a copy; false when a packet of that number is there, or there is no room. The number must lie
    /// within the window, `places` numbers long, of all that are kept.
    bool insert(const StoredPacket& packet);

    /// The packet with this number, or null. It stays until `remove`, its payload until the next `insert`.
    const StoredPacket* at(std::uint16_t sequence) const;

    /// The first packet from this number on, or null.
    const StoredPacket* first(std::uint16_t sequence) const;

    void remove(std::uint16_t sequence);
    void clear();

    bool empty() const { return count_ == 0; }

  private:
    struct Place {
        bool taken = false;
        StoredPacket packet;
    };

    std::uint8_t* make_room(std::size_t size);

    std::array<Place, places> places_{};
    std::size_t count_ = 0;
    std::unique_ptr<std::uint8_t[]> bytes_;
    std::size_t used_bytes_ = 0;  ///< Up to here the bytes hold packets, or holes that packets left.
};

}  // namespace trunkline::graph
