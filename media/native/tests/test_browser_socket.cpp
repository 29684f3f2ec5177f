// The socket of all browsers: whose packets pass, and what the control thread gets to see.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "secret_peer.hpp"
#include "trunkline/engine/browser_socket_handle.hpp"
#include "trunkline/engine/browser_table.hpp"

using namespace trunkline;
using namespace trunkline::tests;
using engine::demultiplex;
using engine::Muxed;
using Octets = std::vector<std::uint8_t>;

namespace {

Octets stun(std::uint8_t method = 1) {
    Octets request(20);
    request[1] = method;
    const Octets cookie{0x21, 0x12, 0xA4, 0x42};
    std::copy(cookie.begin(), cookie.end(), request.begin() + 4);
    return request;
}

Octets dtls() {
    Octets record(30);
    record[0] = 22;
    return record;
}

io::Address at(std::uint16_t udp_port) {
    return *io::Address::parse("127.0.0.1", udp_port);
}

/// An engine with a socket of browsers, and the other end of what it passes upward.
struct Browsers {
    explicit Browsers(std::size_t threads = 1) : bench(threads) { open(); }
    ~Browsers() { ::close(upward); }

    void open() {
        const int bound = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in local{};
        local.sin_family = AF_INET;
        local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof local;
        REQUIRE(bind(bound, reinterpret_cast<sockaddr*>(&local), size) == 0);
        REQUIRE(getsockname(bound, reinterpret_cast<sockaddr*>(&local), &size) == 0);
        udp_port = ntohs(local.sin_port);
        int pair[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0);
        upward = pair[0];
        socket = bench.media->open_browser_socket(bound, pair[1]);
    }

    /// The next datagram that came up, with its header; empty when none comes in time.
    Octets next(int timeout_ms = 2000) {
        pollfd waiting{upward, POLLIN, 0};
        if (poll(&waiting, 1, timeout_ms * patience()) != 1) return {};
        Octets bytes(4096);
        const ssize_t size = recv(upward, bytes.data(), bytes.size(), 0);
        bytes.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
        return bytes;
    }

    /// Wait until all that was sent before has been read: the socket keeps the order.
    void settle(Peer& peer) {
        peer.send_raw(udp_port, stun(3));
        REQUIRE(!next().empty());
    }

    Bench bench;
    std::shared_ptr<engine::BrowserSocketHandle> socket;
    std::uint16_t udp_port = 0;
    int upward = -1;
};

}  // namespace

TEST_CASE("the first byte and the shortest length tell the protocols apart") {
    CHECK(demultiplex({}) == Muxed::other);
    CHECK(demultiplex(stun()) == Muxed::stun);
    Octets damaged = stun();
    damaged[7] ^= 1;
    CHECK(demultiplex(damaged) == Muxed::other);
    CHECK(demultiplex(Octets(19)) == Muxed::other);
    CHECK(demultiplex(dtls()) == Muxed::dtls);
    CHECK(demultiplex(Octets(12, 22)) == Muxed::other);
    for (int first = 0; first < 256; ++first) {
        const Muxed kind = demultiplex(Octets(40, static_cast<std::uint8_t>(first)));
        CHECK((kind == Muxed::rtp) == (first >= 128 && first < 192));
        CHECK((kind == Muxed::dtls) == (first >= 20 && first < 64));
        CHECK(kind != Muxed::stun);
    }
}

TEST_CASE("a leg has the addresses that were learnt, until another learns them or it is forgotten") {
    engine::BrowserTable table;
    engine::BrowserLeg first, second;
    table.learn(first, at(1000));
    table.learn(first, at(1000));
    table.learn(first, at(1001));
    table.learn(first, *io::Address::parse("::1", 1000));
    CHECK(table.size() == 3);
    table.learn(second, at(1001));
    CHECK(table.find(at(1001)) == &second);
    // However often: legs that take an address from each other remember it once.
    for (int n = 0; n < 100; ++n) {
        table.learn(first, at(1001));
        table.learn(second, at(1001));
    }
    CHECK(first.sources.size() == 2);
    CHECK(second.sources.size() == 1);
    table.forget(first);
    CHECK(table.find(at(1000)) == nullptr);
    CHECK(table.find(at(1001)) == &second);
    table.forget(second);
    CHECK(table.size() == 0);
}

TEST_CASE("STUN of anybody comes up, DTLS of those who were checked alone, and the rest is dropped") {
    Browsers browsers;
    Peer known, stranger;
    auto leg = browsers.socket->open_leg();
    leg->learn(at(known.udp_port()));
    stranger.send_raw(browsers.udp_port, dtls());
    stranger.send_raw(browsers.udp_port, Octets(200, 0x80));
    stranger.send_raw(browsers.udp_port, Octets(200, 0x50));
    stranger.send_raw(browsers.udp_port, Octets(3000, 0x80));
    stranger.send_raw(browsers.udp_port, {});
    stranger.send_raw(browsers.udp_port, stun());
    const Octets check = browsers.next();
    REQUIRE(check.size() == engine::BrowserSocket::header_bytes + 20);
    CHECK(check[0] == 4);
    CHECK((check[1] << 8 | check[2]) == stranger.udp_port());
    CHECK(Octets(check.begin() + 3, check.begin() + 7) == Octets{127, 0, 0, 1});
    CHECK(Octets(check.begin() + engine::BrowserSocket::header_bytes, check.end()) == stun());
    known.send_raw(browsers.udp_port, dtls());
    const Octets record = browsers.next();
    REQUIRE(record.size() == engine::BrowserSocket::header_bytes + 30);
    CHECK((record[1] << 8 | record[2]) == known.udp_port());
    const engine::EngineDrops drops = browsers.bench.media->drops();
    CHECK(drops.foreign == 2);
    CHECK(drops.invalid == 3);
    CHECK(leg->packets() == 0);
    REQUIRE(browsers.socket->send(stun(), at(stranger.udp_port())));
    CHECK(stranger.hear_raw() == stun());
}

TEST_CASE("what the control thread does not read is dropped and counted, and packets pass all the same") {
    Browsers browsers;
    Peer browser, far, flooding;
    auto leg = browsers.socket->open_leg();
    auto stream = browsers.bench.open();
    auto other = browsers.bench.open(stream.get());
    stream->connect(towards(browsers.udp_port));
    other->connect(towards(far.udp_port()));
    REQUIRE(stream->link(*other));
    leg->learn(at(browser.udp_port()));
    leg->select(at(browser.udp_port()));
    REQUIRE(leg->connect(at(stream->udp_port())));
    REQUIRE(browsers.bench.until([&] {
        for (int n = 0; n < 100; ++n)
            flooding.send_raw(browsers.udp_port, stun());
        return browsers.socket->figures().unread.get() > 0;
    }));
    browser.send(browsers.udp_port, {0, false, 1, 160, 7}, codes(9));
    CHECK(far.hear_until(codes(9)));
}

#if TRUNKLINE_HAVE_SRTP

TEST_CASE("an encrypted browser and a telephone hear each other") {
    std::size_t threads = 1;
    bool elsewhere = false;
    SUBCASE("by a stream of the socket's thread") {}
    SUBCASE("by a stream of another thread, through its port") {
        threads = 2;
        elsewhere = true;
    }
    Browsers browsers(threads);
    SecretPeer browser(1, 2);
    Peer far;
    // The emptiest thread is taken: the first stream is of the socket's.
    auto filler = elsewhere ? browsers.bench.open() : nullptr;
    auto stream = browsers.bench.open();
    auto other = browsers.bench.open(stream.get());
    MediaSettings settings = secretly(browser, 2, 1);
    settings.remote = at(browsers.udp_port);
    stream->connect(settings);
    other->connect(towards(far.udp_port()));
    REQUIRE(stream->link(*other));
    auto leg = browsers.socket->open_leg();
    leg->learn(at(browser.socket.udp_port()));
    leg->select(at(browser.socket.udp_port()));
    REQUIRE(leg->connect(at(stream->udp_port())));
    REQUIRE(leg->connect(at(stream->udp_port())));
    for (std::uint16_t n = 0; n < 20; ++n) {
        browser.send(browsers.udp_port, n, codes(static_cast<std::uint8_t>(n)));
        const auto heard = far.hear();
        REQUIRE(heard);
        CHECK(heard->payload == codes(static_cast<std::uint8_t>(n)));
        far.send(other->udp_port(), {0, false, n, n * 160U, 5}, codes(static_cast<std::uint8_t>(n + 50)));
        const auto opened = browser.hear();
        REQUIRE(opened);
        CHECK(opened->payload == codes(static_cast<std::uint8_t>(n + 50)));
    }
    CHECK(leg->packets() == 20);
    CHECK(stream->snapshot().packets_in == 20);
}

TEST_CASE("forged, replayed and cut packets of a browser's address are heard by nobody") {
    Browsers browsers;
    SecretPeer browser(1, 2);
    Peer far, stranger;
    auto stream = browsers.bench.open();
    auto other = browsers.bench.open(stream.get());
    MediaSettings settings = secretly(browser, 2, 1);
    settings.remote = at(browsers.udp_port);
    stream->connect(settings);
    other->connect(towards(far.udp_port()));
    REQUIRE(stream->link(*other));
    auto leg = browsers.socket->open_leg();
    leg->learn(at(browser.socket.udp_port()));
    leg->select(at(browser.socket.udp_port()));
    REQUIRE(leg->connect(at(stream->udp_port())));
    const Octets good = browser.sealed(1, codes(1));
    browser.socket.send_raw(browsers.udp_port, good);
    REQUIRE(far.hear_until(codes(1)));
    Octets forged = browser.sealed(2, codes(2));
    forged.back() ^= 1;
    Octets cut = browser.sealed(3, codes(3));
    cut.resize(cut.size() - 5);
    Octets header = browser.sealed(4, codes(4));
    header.resize(12);
    for (const Octets& bad : {forged, good, cut, header, Octets(8, 0x80), Octets(200, 0xBF)})
        browser.socket.send_raw(browsers.udp_port, bad);
    // Of an address that nothing was learnt of, however authentic.
    stranger.send_raw(browsers.udp_port, browser.sealed(5, codes(5)));
    browser.socket.send_raw(browsers.udp_port, browser.sealed(6, codes(6)));
    const auto heard = far.hear();
    REQUIRE(heard);
    CHECK(heard->payload == codes(6));
    CHECK(stream->snapshot().dropped_unauthentic == 5);
    CHECK(stream->snapshot().duplicates == 1);
    CHECK(stream->snapshot().packets_in == 2);
    CHECK(browsers.bench.media->drops().foreign == 1);
}

#endif

TEST_CASE("a browser that has moved is heard and reached at its other address") {
    Browsers browsers;
    Peer before, after, far;
    auto stream = browsers.bench.open();
    auto other = browsers.bench.open(stream.get());
    stream->connect(towards(browsers.udp_port));
    other->connect(towards(far.udp_port()));
    REQUIRE(stream->link(*other));
    auto leg = browsers.socket->open_leg();
    REQUIRE(leg->connect(at(stream->udp_port())));
    for (Peer* browser : {&before, &after}) {
        leg->learn(at(browser->udp_port()));
        leg->select(at(browser->udp_port()));
    }
    after.send(browsers.udp_port, {0, false, 1, 160, 7}, codes(1));
    CHECK(far.hear_until(codes(1)));
    far.send(other->udp_port(), {0, false, 1, 160, 8}, codes(2));
    CHECK(after.hear_until(codes(2)));
    CHECK(before.hears_nothing());
    // Packets that were on their way still count.
    before.send(browsers.udp_port, {0, false, 2, 320, 7}, codes(3));
    CHECK(far.hear_until(codes(3)));
}

TEST_CASE("nothing passes once a leg or its stream is closed") {
    Browsers browsers;
    Peer browser, far;
    auto stream = browsers.bench.open();
    auto other = browsers.bench.open(stream.get());
    stream->connect(towards(browsers.udp_port));
    other->connect(towards(far.udp_port()));
    REQUIRE(stream->link(*other));
    auto leg = browsers.socket->open_leg();
    leg->learn(at(browser.udp_port()));
    leg->select(at(browser.udp_port()));
    REQUIRE(leg->connect(at(stream->udp_port())));
    browser.send(browsers.udp_port, {0, false, 1, 160, 7}, codes(1));
    REQUIRE(far.hear_until(codes(1)));
    SUBCASE("the leg") {
        leg->close();
        leg->close();
        CHECK_FALSE(leg->connect(at(stream->udp_port())));
    }
    SUBCASE("the stream") {
        stream->close();
    }
    SUBCASE("the socket") {
        browsers.socket->release();
    }
    SUBCASE("the engine") {
        browsers.bench.media->close();
    }
    const bool open = browsers.socket->open();
    browser.send(browsers.udp_port, {0, false, 2, 320, 7}, codes(2));
    if (open) browsers.settle(browser);
    far.send(other->udp_port(), {0, false, 1, 160, 8}, codes(3));
    CHECK_FALSE(browser.hear(60));
    CHECK_FALSE(far.hear(60));
    leg->learn(at(browser.udp_port()));
    leg->select(at(browser.udp_port()));
    CHECK((browsers.socket->open_leg() != nullptr) == open);
    CHECK(browsers.socket->send(stun(), at(browser.udp_port())) == open);
}

TEST_CASE("what has the port of a closed stream gets nothing of its browser") {
    Browsers browsers;
    Peer browser;
    auto leg = browsers.socket->open_leg();
    auto stream = browsers.bench.open();
    leg->learn(at(browser.udp_port()));
    REQUIRE(leg->connect(at(stream->udp_port())));
    const std::uint16_t port = stream->udp_port();
    stream->close();
    std::unique_ptr<Peer> next;
    REQUIRE(browsers.bench.until([&] {
        try {
            next = std::make_unique<Peer>("127.0.0.1", port);
        } catch (const std::runtime_error&) {
        }
        return next != nullptr;
    }));
    browser.send(browsers.udp_port, {0, false, 1, 160, 7}, codes(1));
    browsers.settle(browser);
    CHECK(leg->packets() == 1);
    CHECK_FALSE(next->hear(60));
}

TEST_CASE("a leg is joined to a stream that is open, and to one at a time") {
    Browsers browsers;
    Peer browser;
    auto leg = browsers.socket->open_leg();
    CHECK_FALSE(leg->connect(at(1)));
    auto first = browsers.bench.open();
    auto second = browsers.bench.open();
    const auto closed_port = first->udp_port();
    first->connect(towards(browsers.udp_port));
    second->connect(towards(browsers.udp_port));
    leg->learn(at(browser.udp_port()));
    leg->select(at(browser.udp_port()));
    REQUIRE(leg->connect(at(first->udp_port())));
    REQUIRE(leg->connect(at(second->udp_port())));
    browser.send(browsers.udp_port, {0, false, 1, 160, 7}, codes(1));
    REQUIRE(browsers.bench.until([&] { return second->snapshot().packets_in == 1; }));
    CHECK(first->snapshot().packets_in == 0);
    first->close();
    CHECK_FALSE(leg->connect(at(closed_port)));
}

TEST_CASE("legs, streams and the socket come and go while packets pour in") {
    for (const std::size_t threads : {1U, 2U}) {
        Browsers browsers(threads);
        Peer browser;
        std::atomic<bool> over = false;
        std::thread pouring([&] {
            for (std::uint16_t n = 0; !over; ++n)
                browser.send(browsers.udp_port, {0, false, n, n * 160U, 7}, codes(1));
        });
        for (int n = 0; n < 50; ++n) {
            auto leg = browsers.socket->open_leg();
            auto stream = browsers.bench.open();
            auto other = browsers.bench.open(stream.get());
            stream->connect(towards(browsers.udp_port));
            other->connect(towards(browser.udp_port()));
            (void)stream->link(*other);
            leg->learn(at(browser.udp_port()));
            leg->select(at(browser.udp_port()));
            CHECK(leg->connect(at(stream->udp_port())));
            CHECK(browsers.bench.until([&] { return leg->packets() > 0; }));
            if (n % 3 == 0) leg->close();
            if (n % 3 == 1) stream->close();
        }
        browsers.bench.media->close();
        over = true;
        pouring.join();
        CHECK_FALSE(browsers.socket->open());
    }
}

TEST_CASE("the port of a released socket is free again") {
    Browsers browsers;
    const std::uint16_t port = browsers.udp_port;
    browsers.socket->release();
    CHECK(browsers.bench.until([&] {
        try {
            Peer taken("127.0.0.1", port);
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    }));
}
