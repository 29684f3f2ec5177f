#include "trunkline/graph/packet_store.hpp"

#include <algorithm>
#include <cstring>

namespace trunkline::graph {

bool PacketStore::insert(const StoredPacket& packet) {
    Place& place = places_[packet.sequence % places];
    if (place.taken) return false;
    std::uint8_t* room = make_room(packet.payload.size());
    if (room == nullptr) return false;
    if (!packet.payload.empty()) std::memcpy(room, packet.payload.data(), packet.payload.size());
    place.taken = true;
    place.packet = packet;
    place.packet.payload = {room, packet.payload.size()};
    ++count_;
    return true;
}

const StoredPacket* PacketStore::at(std::uint16_t sequence) const {
    const Place& place = places_[sequence % places];
    return place.taken && place.packet.sequence == sequence ? &place.packet : nullptr;
}

const StoredPacket* PacketStore::first(std::uint16_t sequence) const {
    if (count_ == 0) return nullptr;
    for (std::size_t n = 0; n < places; ++n) {
        if (const StoredPacket* packet = at(static_cast<std::uint16_t>(sequence + n))) return packet;
    }
    return nullptr;
}

void PacketStore::remove(std::uint16_t sequence) {
    Place& place = places_[sequence % places];
    if (!place.taken || place.packet.sequence != sequence) return;
    place.taken = false;
    if (--count_ == 0) used_bytes_ = 0;
}

void PacketStore::clear() {
    for (Place& place : places_) {
        place.taken = false;
    }
    count_ = 0;
    used_bytes_ = 0;
}

/// Room for a payload at the end, after closing the holes if it must be; null when there is none.
std::uint8_t* PacketStore::make_room(std::size_t size) {
    if (used_bytes_ + size > capacity_bytes) {
        std::array<Place*, places> by_address;
        std::size_t count = 0;
        for (Place& place : places_) {
            if (place.taken) by_address[count++] = &place;
        }
        std::sort(by_address.begin(), by_address.begin() + static_cast<std::ptrdiff_t>(count),
                  [](const Place* one, const Place* other) {
                      return one->packet.payload.data() < other->packet.payload.data();
                  });
        used_bytes_ = 0;
        for (std::size_t n = 0; n < count; ++n) {
            std::span<const std::uint8_t>& payload = by_address[n]->packet.payload;
            std::uint8_t* to = bytes_.get() + used_bytes_;
            std::memmove(to, payload.data(), payload.size());
            payload = {to, payload.size()};
            used_bytes_ += payload.size();
        }
    }
    if (used_bytes_ + size > capacity_bytes) return nullptr;
    std::uint8_t* room = bytes_.get() + used_bytes_;
    used_bytes_ += size;
    return room;
}

}  // namespace trunkline::graph
