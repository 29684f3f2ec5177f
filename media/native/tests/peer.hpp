#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trunkline/engine/engine.hpp"
#include "trunkline/rtp/packet.hpp"

namespace trunkline::tests {

/// How much longer than usual a slow machine may take; TRUNKLINE_TEST_PATIENCE in the environment.
inline int patience() {
    const char* value = std::getenv("TRUNKLINE_TEST_PATIENCE");
    return value == nullptr ? 1 : std::max(1, std::atoi(value));
}

/// The first port for engines; TRUNKLINE_TEST_PORT in the environment, with a thousand behind it that are
/// free.
inline std::uint16_t first_port() {
    const char* value = std::getenv("TRUNKLINE_TEST_PORT");
    return static_cast<std::uint16_t>(value == nullptr ? 15000 : std::atoi(value));
}

/// A packet as a far end sees it.
struct Heard {
    rtp::Header header;
    std::vector<std::uint8_t> payload;
};

/// A far end on a socket of its own.
class Peer {
  public:
    /// On any port, or on this one; `host` is one of the loopback network.
    explicit Peer(const char* host = "127.0.0.1", std::uint16_t udp_port = 0)
        : descriptor_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in local{};
        local.sin_family = AF_INET;
        local.sin_port = htons(udp_port);
        inet_pton(AF_INET, host, &local.sin_addr);
        socklen_t size = sizeof local;
        if (bind(descriptor_, reinterpret_cast<sockaddr*>(&local), size) != 0 ||
            getsockname(descriptor_, reinterpret_cast<sockaddr*>(&local), &size) != 0) {
            throw std::runtime_error("no socket for a test");
        }
        udp_port_ = ntohs(local.sin_port);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() { ::close(descriptor_); }

    std::uint16_t udp_port() const { return udp_port_; }

    void send_raw(std::uint16_t to_port, const std::vector<std::uint8_t>& bytes) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(to_port);
        (void)sendto(descriptor_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    }

    void send(std::uint16_t to_port, const rtp::Header& header, const std::vector<std::uint8_t>& payload) {
        std::vector<std::uint8_t> bytes(rtp::header_bytes);
        rtp::write_header(bytes.data(), header);
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        send_raw(to_port, bytes);
    }

    /// The next datagram; empty when none comes in time.
    std::vector<std::uint8_t> hear_raw(int timeout_ms = 2000) {
        pollfd waiting{descriptor_, POLLIN, 0};
        if (poll(&waiting, 1, timeout_ms * patience()) != 1) return {};
        std::vector<std::uint8_t> bytes(2048);
        const ssize_t size = recv(descriptor_, bytes.data(), bytes.size(), 0);
        bytes.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
        return bytes;
    }

    /// The next RTP packet, or nothing when none comes in time. RTCP is passed over.
    std::optional<Heard> hear(int timeout_ms = 2000) {
        for (;;) {
            std::vector<std::uint8_t> bytes = hear_raw(timeout_ms);
            if (rtp::is_rtcp(bytes)) continue;
            const auto packet = rtp::parse(bytes);
            if (!packet) return std::nullopt;
            return Heard{packet->header, {packet->payload.begin(), packet->payload.end()}};
        }
    }

    /// The next RTCP packet; empty when none comes in time. RTP is passed over.
    std::vector<std::uint8_t> hear_rtcp(int timeout_ms = 6000) {
        std::vector<std::uint8_t> bytes;
        do {
            bytes = hear_raw(timeout_ms);
        } while (!bytes.empty() && !rtp::is_rtcp(bytes));
        return bytes;
    }

    /// Listen until a packet has this payload; false when none comes in time.
    bool hear_until(const std::vector<std::uint8_t>& payload) {
        while (const auto heard = hear()) {
            if (heard->payload == payload) return true;
        }
        return false;
    }

    /// True if nothing comes for a while.
    bool hears_nothing(int for_ms = 60) {
        pollfd waiting{descriptor_, POLLIN, 0};
        return poll(&waiting, 1, for_ms) == 0;
    }

  private:
    int descriptor_;
    std::uint16_t udp_port_ = 0;
};

/// Media settings towards a local port.
inline engine::MediaSettings towards(std::uint16_t udp_port, dsp::Law law = dsp::Law::mu,
                                     int dtmf_type = 101) {
    engine::MediaSettings settings;
    settings.remote = *io::Address::parse("127.0.0.1", udp_port);
    settings.format.codec = law == dsp::Law::mu ? codec::Codec::pcmu : codec::Codec::pcma;
    settings.payload_type = law == dsp::Law::mu ? 0 : 8;
    if (dtmf_type >= 0) {
        settings.dtmf_send_type = static_cast<std::uint8_t>(dtmf_type);
        settings.dtmf_receive_type = static_cast<std::uint8_t>(dtmf_type);
    }
    return settings;
}

/// An engine with the events and frames it has told.
class Bench {
  public:
    /// Of `ports` ports, the first of them `first_port()`.
    explicit Bench(std::size_t threads = 1, int ports = 1000)
        : media(engine::Engine::create({"127.0.0.1", first_port(),
                                        static_cast<std::uint16_t>(first_port() + ports - 1), threads, 0})) {}
    ~Bench() { media->close(); }

    std::shared_ptr<engine::StreamHandle> open(const engine::StreamHandle* near = nullptr) {
        return media->open_stream(near);
    }

    /// Fetch what there is, waiting at most `timeout_ms` for something.
    void fetch(int timeout_ms) {
        pollfd waiting{media->descriptor(), POLLIN, 0};
        poll(&waiting, 1, timeout_ms);
        media->acknowledge();
        for (engine::Event event; media->next_event(event);) {
            events.push_back(event);
        }
        while (const auto frame = media->front_frame()) {
            frames.emplace_back(frame->bytes.begin(), frame->bytes.end());
            media->release_frame();
        }
    }

    /// The first event of a kind not asked for before, waiting for it if need be.
    std::optional<engine::Event> expect(engine::EventKind kind, int timeout_ms = 3000) {
        for (int waited = 0; waited <= timeout_ms * patience(); waited += 10) {
            const auto found = std::find_if(events.begin(), events.end(),
                                            [&](const engine::Event& event) { return event.kind == kind; });
            if (found != events.end()) {
                const engine::Event event = *found;
                events.erase(found);
                return event;
            }
            fetch(10);
        }
        return std::nullopt;
    }

    /// Wait for a condition; false when it does not come true in time.
    template <typename Condition>
    bool until(Condition condition, int timeout_ms = 3000) {
        for (int waited = 0; waited <= timeout_ms * patience(); waited += 5) {
            if (condition()) return true;
            fetch(5);
        }
        return false;
    }

    bool heard_of(engine::EventKind kind) const {
        return std::any_of(events.begin(), events.end(),
                           [&](const engine::Event& event) { return event.kind == kind; });
    }

    std::shared_ptr<engine::Engine> media;
    std::vector<engine::Event> events;
    std::vector<std::vector<std::uint8_t>> frames;
};

}  // namespace trunkline::tests
