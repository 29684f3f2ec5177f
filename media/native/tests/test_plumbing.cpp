#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "support.hpp"
#include "trunkline/engine/port_pool.hpp"
#include "trunkline/engine/stream.hpp"
#include "trunkline/engine/timer_wheel.hpp"
#include "trunkline/io/address.hpp"
#include "trunkline/util/byte_ring.hpp"
#include "trunkline/util/node.hpp"
#include "trunkline/util/spsc_ring.hpp"

using namespace trunkline;
using tests::ms;

namespace {

struct Tick final : engine::Ticker {
    void tick(std::int64_t now_ns) override {
        at_ns.push_back(now_ns);
        if (other != nullptr && wheel != nullptr) wheel->disarm(*other);
        if (once && wheel != nullptr) wheel->disarm(*this);
    }

    std::vector<std::int64_t> at_ns;
    engine::TimerWheel* wheel = nullptr;
    Tick* other = nullptr;
    bool once = false;
};

io::Address address(const char* host, std::uint16_t port) {
    return *io::Address::parse(host, port);
}

}  // namespace

TEST_CASE("a byte ring hands records over in order, across its end") {
    util::ByteRing ring(256);
    std::uint64_t written = 0;
    std::uint64_t taken = 0;
    for (int round = 0; round < 500; ++round) {
        const std::size_t size = static_cast<std::size_t>(round * 13 % 70);
        if (std::uint8_t* room = ring.reserve(size)) {
            std::memset(room, static_cast<int>(written & 0xFF), size);
            ring.commit(written++ << 8 | size, size);
        }
        if (round % 3 == 0) continue;
        while (const auto record = ring.front()) {
            REQUIRE((record->tag >> 8) == taken);
            REQUIRE(record->bytes.size() == (record->tag & 0xFF));
            for (const std::uint8_t byte : record->bytes) {
                REQUIRE(byte == (taken & 0xFF));
            }
            ++taken;
            ring.release();
        }
    }
    CHECK(written > 400);
}

TEST_CASE("a full byte ring refuses") {
    util::ByteRing ring(128);
    REQUIRE(ring.reserve(64) != nullptr);
    ring.commit(1, 64);
    CHECK(ring.reserve(64) == nullptr);
    ring.release();
    CHECK(ring.reserve(64) != nullptr);
}

TEST_CASE("rings carry across threads") {
    util::SpscRing<std::uint64_t> items(64);
    util::ByteRing records(4096);
    constexpr std::uint64_t count = 100'000;
    std::thread writer([&] {
        for (std::uint64_t n = 0; n < count;) {
            std::uint8_t* room = records.reserve(8);
            if (room == nullptr) {
                std::this_thread::yield();
                continue;
            }
            std::memcpy(room, &n, 8);
            records.commit(n, 8);
            while (!items.push(n)) {
                std::this_thread::yield();
            }
            ++n;
        }
    });
    bool right = true;
    for (std::uint64_t n = 0; n < count;) {
        std::uint64_t item = 0;
        if (!items.pop(item)) {
            std::this_thread::yield();
            continue;
        }
        const auto record = records.front();
        std::uint64_t value = 0;
        if (record) std::memcpy(&value, record->bytes.data(), 8);
        right = right && record && item == n && value == n && record->tag == n;
        records.release();
        ++n;
    }
    writer.join();
    CHECK(right);
}

TEST_CASE("a node stack carries from many threads to one") {
    struct Number : util::Node {
        int writer = 0;
        int value = 0;
    };
    util::NodeStack stack;
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 3; ++writer) {
        writers.emplace_back([&stack, writer] {
            for (int n = 0; n < 5000; ++n) {
                auto* number = new Number;
                number->writer = writer;
                number->value = n;
                stack.push(number);
            }
        });
    }
    std::map<int, int> next;
    int taken = 0;
    bool right = true;
    while (taken < 15000) {
        for (util::Node* node = stack.take_oldest_first(); node != nullptr;) {
            auto* number = static_cast<Number*>(node);
            right = right && next[number->writer]++ == number->value;
            node = node->next_node;
            delete number;
            ++taken;
        }
    }
    for (auto& writer : writers) {
        writer.join();
    }
    CHECK(right);
}

TEST_CASE("a ticker ticks at its period, whatever its phase") {
    engine::TimerWheel wheel;
    CHECK(wheel.next_due_ns() == engine::TimerWheel::never_ns);
    std::vector<Tick> ticks(8);
    const std::vector<std::uint32_t> periods{20, 20, 20, 20, 10, 30, 40, 60};
    for (std::size_t n = 0; n < ticks.size(); ++n) {
        wheel.arm(ticks[n], periods[n], 1000 * ms);
    }
    while (wheel.next_due_ns() <= 1600 * ms) {
        wheel.advance(wheel.next_due_ns());
    }
    for (std::size_t n = 0; n < ticks.size(); ++n) {
        CAPTURE(n);
        const auto& at_ns = ticks[n].at_ns;
        REQUIRE(at_ns.size() >= 600 / periods[n] - 1);
        for (std::size_t k = 1; k < at_ns.size(); ++k) {
            CHECK(at_ns[k] - at_ns[k - 1] == periods[n] * ms);
        }
    }
    // Four of one period stand in four phases.
    CHECK(ticks[0].at_ns[0] != ticks[1].at_ns[0]);
    for (Tick& tick : ticks) {
        wheel.disarm(tick);
    }
    CHECK(wheel.next_due_ns() == engine::TimerWheel::never_ns);
}

TEST_CASE("a ticker may disarm itself and others while it ticks") {
    engine::TimerWheel wheel;
    Tick one;
    Tick two;
    one.wheel = two.wheel = &wheel;
    wheel.arm(one, 5, 0);
    wheel.arm(two, 5, 0);
    one.other = &two;
    two.other = &one;
    wheel.advance(5 * ms);
    CHECK((one.at_ns.size() + two.at_ns.size()) == 1);
    CHECK(wheel.armed() == 1);
    one.once = two.once = true;
    wheel.advance(10 * ms);
    CHECK(wheel.armed() == 0);
    wheel.advance(100 * ms);
    CHECK(one.at_ns.size() + two.at_ns.size() == 2);
}

TEST_CASE("after a stall, missed ticks are run, but not all") {
    engine::TimerWheel wheel;
    Tick tick;
    wheel.arm(tick, 20, 0);
    wheel.advance(10'000 * ms);
    CHECK(tick.at_ns.size() >= 4);
    CHECK(tick.at_ns.size() <= 6);
    wheel.disarm(tick);
}

TEST_CASE("ports are even, rest after use and run out") {
    engine::PortPool pool(10001, 10007, 1000 * ms);
    CHECK(pool.capacity() == 3);
    CHECK(pool.take(0) == 10002);
    CHECK(pool.take(0) == 10004);
    CHECK(pool.take(0) == 10006);
    CHECK_FALSE(pool.take(0));
    pool.give_back(10004, 0);
    CHECK_FALSE(pool.take(999 * ms));
    CHECK(pool.in_use() == 2);
    CHECK(pool.take(1000 * ms) == 10004);
    CHECK(pool.in_use() == 3);
}

TEST_CASE("whatever is taken and given back, no port is lost or given twice") {
    std::mt19937 random{3550};
    for (int round = 0; round < 20; ++round) {
        const auto first = static_cast<std::uint16_t>(2000 + random() % 100);
        const auto last = static_cast<std::uint16_t>(first + 1 + random() % 60);
        const std::int64_t quarantine_ns = static_cast<std::int64_t>(random() % 3) * 10;
        engine::PortPool pool(first, last, quarantine_ns);
        std::map<std::uint16_t, std::int64_t> held;
        std::map<std::uint16_t, std::int64_t> rests_until;
        std::int64_t now_ns = 0;
        for (int step = 0; step < 2000; ++step) {
            now_ns += random() % 5;
            if (random() % 2 == 0) {
                if (const auto port = pool.take(now_ns)) {
                    CHECK(*port % 2 == 0);
                    CHECK(*port >= first);
                    CHECK(*port < last);
                    CHECK(held.emplace(*port, now_ns).second);
                    if (rests_until.contains(*port)) CHECK(rests_until[*port] <= now_ns);
                } else {
                    // All are in use or resting.
                    std::size_t resting = 0;
                    for (const auto& [port, until_ns] : rests_until) {
                        if (!held.contains(port) && until_ns > now_ns) ++resting;
                    }
                    CHECK(held.size() + resting == pool.capacity());
                }
            } else if (!held.empty()) {
                const auto given = std::next(held.begin(), static_cast<int>(random() % held.size()));
                const std::uint16_t port = given->first;
                held.erase(given);
                rests_until[port] = now_ns + quarantine_ns;
                pool.give_back(port, now_ns);
                // What is not taken cannot be given back: not twice, not by its odd neighbour, not from
                // outside.
                pool.give_back(port, now_ns);
                pool.give_back(static_cast<std::uint16_t>(port + 1), now_ns);
                pool.give_back(static_cast<std::uint16_t>(first - 2), now_ns);
                pool.give_back(static_cast<std::uint16_t>(last + 1), now_ns);
            }
            CHECK(pool.in_use() == held.size());
        }
        for (const auto& [port, since_ns] : held) {
            pool.give_back(port, now_ns);
        }
        now_ns += quarantine_ns;
        std::size_t taken = 0;
        while (pool.take(now_ns)) {
            ++taken;
        }
        CHECK(taken == pool.capacity());
    }
}

TEST_CASE("the highest ports do not wrap around") {
    engine::PortPool pool(65530, 65535, 0);
    CHECK(pool.capacity() == 3);
}

TEST_CASE("addresses of both families are parsed and compared") {
    CHECK(address("127.0.0.1", 5) == address("127.0.0.1", 5));
    CHECK_FALSE(address("127.0.0.1", 5) == address("127.0.0.1", 6));
    CHECK_FALSE(address("127.0.0.1", 5) == address("::1", 5));
    CHECK(address("2001:db8::1", 5) == address("2001:db8:0::1", 5));
    CHECK(address("2001:db8::1", 5).same_network(address("2001:db8::ffff", 9)));
    CHECK_FALSE(address("2001:db8::1", 5).same_network(address("2001:db9::1", 5)));
    CHECK(address("2001:db8::1", 5).host() == "2001:db8::1");
    CHECK(address("2001:db8::1", 5).reachable());
    CHECK_FALSE(address("0.0.0.0", 5).reachable());
    CHECK_FALSE(address("::", 5).reachable());
    CHECK_FALSE(address("127.0.0.1", 0).reachable());
    CHECK_FALSE(io::Address().reachable());
    CHECK_FALSE(io::Address::parse("localhost", 5));
    CHECK_FALSE(io::Address::parse("", 5));
}

TEST_CASE("only streams that are relayed at once are read at low latency") {
    engine::Notifier notifier;
    engine::EventQueue event_queue(notifier);
    engine::TimerWheel wheel;
    engine::Stream one(1, {}, {1, 1, 1, 8000}, event_queue, wheel, 0);
    engine::Stream two(2, {}, {2, 2, 2, 8000}, event_queue, wheel, 0);
    engine::Stream three(3, {}, {3, 3, 3, 8000}, event_queue, wheel, 0);
    CHECK_FALSE(one.low_latency);
    CHECK_FALSE(one.rtcp().low_latency);
    one.link(two, 0);
    CHECK((one.low_latency && two.low_latency));
    three.link(two, 0);
    CHECK((!one.low_latency && two.low_latency && three.low_latency));
    two.unlink(0);
    CHECK((!two.low_latency && !three.low_latency));
    // A stream linked to itself echoes.
    one.link(one, 0);
    CHECK(one.low_latency);
    one.unlink(0);
    CHECK_FALSE(one.low_latency);
}
