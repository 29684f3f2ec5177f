#include "trunkline/engine/wire.hpp"

#include <utility>

namespace trunkline::engine {

Wire::Wire(io::UdpSocket socket, StreamFigures& figures) : socket_(std::move(socket)), figures_(figures) {}

void Wire::send(std::uint8_t* room, std::size_t size, const io::Address& to) {
    const std::span<const std::uint8_t> datagram(room, seal(room, size));
    if (datagram.empty() || !socket_.send(datagram, to)) {
        figures_.send_errors.add(1);
        return;
    }
    figures_.packets_out.add(1);
    figures_.bytes_out.add(datagram.size());
}

void Wire::queue(io::SendBatch& batch, std::uint8_t* room, std::size_t size) {
    const std::size_t sealed_bytes = seal(room, size);
    if (sealed_bytes == 0) {
        figures_.send_errors.add(1);
        return;
    }
    batch.add({room, sealed_bytes});
}

void Wire::flush(io::SendBatch& batch, const io::Address& to) {
    const std::size_t count = batch.size();
    if (count == 0) return;
    const std::size_t bytes = batch.total_bytes();
    const std::size_t sent = socket_.send(batch, to);
    figures_.packets_out.add(sent);
    // A batch the kernel took in part is rare enough to count its bytes whole or not at all.
    if (sent == count) figures_.bytes_out.add(bytes);
    if (sent < count) figures_.send_errors.add(count - sent);
}

void Wire::send_rtcp(std::uint8_t* room, std::size_t size, io::UdpSocket* socket, const io::Address& to) {
    const std::span<const std::uint8_t> datagram(room, seal(room, size));
    io::UdpSocket& way = socket != nullptr ? *socket : socket_;
    (!datagram.empty() && way.send(datagram, to) ? figures_.rtcp_out : figures_.send_errors).add(1);
}

std::size_t Wire::seal(std::uint8_t* room, std::size_t size) {
    (void)room;
    return size;
}

}  // namespace trunkline::engine
