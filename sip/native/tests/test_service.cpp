#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "trunkline/signalling/endpoint.hpp"
#include "trunkline/signalling/service.hpp"

using namespace trunkline;
using namespace trunkline::signalling;

namespace {

constexpr int deadline_ms = 20'000;

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A socket of datagrams on loopback, on a port that the system chooses.
class Port {
  public:
    Port() : descriptor_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
        sockaddr_storage bound{};
        socklen_t size = sizeof(bound);
        REQUIRE(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &size) == 0);
        endpoint_ = endpoint_of(bound, size);
    }
    ~Port() { ::close(descriptor_); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    int descriptor() const { return descriptor_; }
    const Endpoint& endpoint() const { return endpoint_; }

    void send(const Port& target, const std::string& data) const {
        REQUIRE(send_datagram(descriptor_, data, target.endpoint()) == 0);
    }

    /// The next datagram; empty when none comes in time.
    std::string receive(int wait_ms = deadline_ms) const {
        pollfd asked{descriptor_, POLLIN, 0};
        if (::poll(&asked, 1, wait_ms) != 1) return {};
        std::array<char, 65536> bytes{};
        const auto size = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
        return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
    }

  private:
    int descriptor_;
    Endpoint endpoint_;
};

std::string request(const std::string& method, const std::string& branch = "1") {
    return method + " sip:b@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK" + branch +
           ";rport\r\nMax-Forwards: 70\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: c\r\nCSeq: 1 " +
           method + "\r\nContent-Length: 0\r\n\r\n";
}

/// Waits until something is kept, and takes it; several rounds until there are so many.
std::deque<Kept> taken(Service& service, std::size_t count = 1) {
    std::deque<Kept> all;
    while (all.size() < count) {
        pollfd asked{service.wake_descriptor(), POLLIN, 0};
        if (::poll(&asked, 1, deadline_ms) != 1) break;
        for (Kept& kept : service.take(Service::most_kept))
            all.push_back(std::move(kept));
    }
    return all;
}

/// Waits until a guard has dropped so many for a reason.
bool reaches(const SourceGuard& guard, Reason reason, std::uint64_t count) {
    const auto deadline_ns = now_ns() + std::int64_t{deadline_ms} * 1'000'000;
    while (guard.rejected()[static_cast<std::size_t>(reason)] < count) {
        if (now_ns() > deadline_ns) return false;
        std::this_thread::yield();
    }
    return true;
}

}  // namespace

TEST_CASE("service: while the loop stands still, a known source gets 100 and its call waits for the loop") {
    Port peer, ours;
    Service service({}, 100, {});
    service.add_socket(ours.descriptor());
    service.note_served(now_ns(), &peer.endpoint());
    peer.send(ours, request("INVITE"));
    const std::string trying = peer.receive();
    CHECK(trying.starts_with("SIP/2.0 100 Trying\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK1;rport="));
    peer.send(ours, request("INVITE"));
    CHECK(peer.receive() == trying);
    const auto kept = taken(service);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].what == Kept::What::message);
    CHECK(kept[0].kind == Kind::request);
    CHECK(kept[0].id != 0);
    CHECK(kept[0].bytes == request("INVITE"));
    CHECK(port_of(kept[0].flow.remote) == port_of(peer.endpoint()));
    CHECK(service.locked()->servers() == 1);
}

TEST_CASE("service: a datagram of an unknown source, or one that is not plain, is kept as it came") {
    Port peer, ours;
    Service service({}, 100, {});
    service.add_socket(ours.descriptor());
    peer.send(ours, request("INVITE"));
    peer.send(ours, "\r\n\r\n");
    auto kept = taken(service);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].what == Kept::What::datagram);
    service.note_served(now_ns(), &peer.endpoint());
    peer.send(ours, "garbage");
    kept = taken(service);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].what == Kept::What::datagram);
    CHECK(kept[0].bytes == "garbage");
    CHECK(service.locked()->servers() == 0);
}

TEST_CASE(
    "service: it repeats requests and acknowledges refusals of known sources; the trace misses nothing") {
    Port peer, ours;
    Service service({}, 100, {});
    service.set_tracing(true);
    Flow flow;
    flow.socket = service.add_socket(ours.descriptor());
    flow.remote = peer.endpoint();
    service.note_served(now_ns(), &peer.endpoint());
    const std::string invite = request("INVITE", "7");
    const Id id = service.locked()->start_client(invite, "INVITE", "z9hG4bK7", flow, now_ns());
    CHECK(peer.receive() == invite);
    peer.send(
        ours,
        "SIP/2.0 486 Busy Here\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK7\r\nFrom: <sip:a@h>;tag=1\r\n"
        "To: <sip:b@h>;tag=2\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n");
    for (std::string data = peer.receive(); !data.starts_with("ACK "); data = peer.receive())
        REQUIRE(data == invite);
    bool told = false;
    std::size_t sent = 0;
    while (!told || sent < 2) {
        const auto kept = taken(service);
        REQUIRE(!kept.empty());
        for (const Kept& one : kept) {
            sent += one.what == Kept::What::sent;
            told = told || (one.what == Kept::What::message && one.kind == Kind::response && one.id == id);
        }
    }
}

TEST_CASE("service: while the loop stands still, the guard drops, lets pass and knows") {
    Port peer, ours;
    Service service({}, 100, {});
    auto guard = std::make_shared<SourceGuard>(SourceLimits{});
    service.set_guard(guard);
    service.add_socket(ours.descriptor());
    const std::string scan = request("OPTIONS") + "User-Agent: sipcli\r\n";
    SUBCASE("a banned source is dropped") {
        guard->judge(scan, peer.endpoint(), true, now_ns(), SourceGuard::Trust::no);
        peer.send(ours, request("INVITE"));
        CHECK(reaches(*guard, Reason::banned, 1));
        CHECK_FALSE(service.has_kept());
    }
    SUBCASE("an unknown source's burst is kept as admitted") {
        guard->judge(request("OPTIONS"), peer.endpoint(), true, now_ns(), SourceGuard::Trust::no);
        for (int count = 0; count < 100; ++count)
            peer.send(ours, request("INVITE"));
        const auto kept = taken(service, 19);
        CHECK(kept.size() >= 19);
        for (const Kept& one : kept)
            CHECK(one.what == Kept::What::admitted);
        CHECK(service.locked()->servers() == 0);
    }
    SUBCASE("a source that the guard knows is answered") {
        guard->trust(peer.endpoint(), now_ns());
        peer.send(ours, request("INVITE"));
        CHECK(peer.receive().starts_with("SIP/2.0 100 "));
        CHECK(taken(service).at(0).what == Kept::What::message);
    }
    SUBCASE("a source that the guard knows is left to the loop while another process has calls") {
        guard->trust(peer.endpoint(), now_ns());
        service.set_opening(false);
        peer.send(ours, request("INVITE"));
        CHECK(taken(service).at(0).what == Kept::What::datagram);
        CHECK(service.locked()->servers() == 0);
    }
    SUBCASE("one that nobody was asked about is kept, so many and no more") {
        const auto send = [&](std::size_t count) {
            for (std::size_t sent = 1; sent <= count; ++sent) {
                peer.send(ours, request("OPTIONS"));
                pollfd asked{ours.descriptor(), POLLIN, 0};
                while ((sent % 100 == 0 || sent == count) && ::poll(&asked, 1, 0) == 1)
                    std::this_thread::yield();  // So that the socket's own buffer loses none.
            }
        };
        send(Service::most_unjudged + 10);
        CHECK(reaches(*guard, Reason::crowd, 10));
        const auto kept = service.take(32);
        CHECK(kept.size() == 32);
        CHECK(kept.front().what == Kept::What::datagram);
        send(42);  // As many as were taken, and ten more.
        CHECK(reaches(*guard, Reason::crowd, 20));
        CHECK(service.take(Service::most_kept).size() == Service::most_unjudged);
    }
}

TEST_CASE("service: what comes with time waits for the loop, in its order") {
    Timers fast;
    fast.t1_ns = 1'000'000;
    Port peer, ours;
    Service service(fast, 100, {});
    service.add_socket(ours.descriptor());
    const Id foreign = service.locked()->start_client(request("BYE"), "BYE", "z9hG4bK1", {}, now_ns());
    bool ended = false;
    while (!ended) {
        const auto kept = taken(service);
        REQUIRE(!kept.empty());
        for (const Kept& one : kept) {
            CHECK(one.what == Kept::What::output);
            CHECK(one.id == foreign);
            CHECK_FALSE(ended);
            ended = one.kind == Kind::timed_out;
        }
    }
}

TEST_CASE("service: what is kept can be taken in parts, and asks to be taken until none is left") {
    Port peer, ours;
    Service service({}, 100, {});
    service.add_socket(ours.descriptor());
    CHECK_FALSE(service.note_served(now_ns(), nullptr));
    for (const char* const data : {"one", "two", "three"})
        peer.send(ours, data);
    pollfd asked{service.wake_descriptor(), POLLIN, 0};
    REQUIRE(::poll(&asked, 1, deadline_ms) == 1);
    const auto first = service.take(2);
    REQUIRE(first.size() == 2);
    CHECK(first[0].bytes == "one");
    CHECK(first[1].bytes == "two");
    CHECK(::poll(&asked, 1, 0) == 1);
    CHECK(service.note_served(now_ns(), nullptr));
    CHECK(service.take(2).at(0).bytes == "three");
    CHECK(::poll(&asked, 1, 0) == 0);
    CHECK_FALSE(service.note_served(now_ns(), nullptr));
}

TEST_CASE("service: a socket that is left alone or removed is not read") {
    Port peer, ours;
    Service service({}, 100, {});
    const std::int32_t number = service.add_socket(ours.descriptor());
    service.set_reading(number, false);
    peer.send(ours, request("INVITE"));
    pollfd asked{service.wake_descriptor(), POLLIN, 0};
    CHECK(::poll(&asked, 1, 400) == 0);
    service.set_reading(number, true);
    CHECK(taken(service).size() == 1);
    service.remove_socket(number);
    peer.send(ours, request("INVITE"));
    CHECK(::poll(&asked, 1, 400) == 0);
    CHECK(ours.receive() == request("INVITE"));
}

TEST_CASE("service: beyond the limit, datagrams stay in their socket") {
    Port peer, ours;
    Service service({}, 100, {});
    const std::string large(60'000, 'x');
    service.add_socket(ours.descriptor());
    std::size_t count = 0;
    std::size_t bytes = 0;
    while (bytes < Service::most_kept_bytes) {
        peer.send(ours, large);
        ++count;
        const auto deadline = now_ns() + std::int64_t{deadline_ms} * 1'000'000;
        // One at a time, so that the socket's own buffer loses none.
        pollfd asked{ours.descriptor(), POLLIN, 0};
        while (::poll(&asked, 1, 0) == 1 && now_ns() < deadline)
            std::this_thread::yield();
        bytes += large.size();
    }
    CHECK(service.has_kept());  // The thread has finished its look.
    peer.send(ours, "later");
    pollfd woken{service.wake_descriptor(), POLLIN, 0};
    CHECK(::poll(&woken, 1, deadline_ms) == 1);
    CHECK(ours.receive() == "later");
    CHECK(service.take(Service::most_kept).size() == count);
}
