#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "trunkline/signalling/timer_queue.hpp"

using namespace trunkline::signalling;

namespace {

std::vector<int> fired_by(TimerQueue& queue, std::int64_t now_ns) {
    std::vector<int> events;
    while (const auto fired = queue.take_due(now_ns))
        events.push_back(fired->event);
    return events;
}

}  // namespace

TEST_CASE("timers: they fire in the order of their due times, those of one time in the order of arming") {
    TimerQueue queue;
    const std::int64_t delays[] = {4000, 500, 32000, 500, 3500};
    for (int event = 0; event < 4; ++event)
        queue.arm(10'000, delays[event], 1, static_cast<std::uint8_t>(event));
    queue.arm(10'500, delays[4], 1, 4);
    CHECK(queue.size() == 5);
    CHECK(queue.next_due_ns() == 10'500);
    CHECK(fired_by(queue, 10'499).empty());
    CHECK(fired_by(queue, 14'000) == std::vector{1, 3, 0, 4});
    CHECK(queue.next_due_ns() == 42'000);
    CHECK(queue.size() == 1);
}

TEST_CASE("timers: a timer that was disarmed does not fire, wherever it stood in its line") {
    for (int disarmed = 0; disarmed < 3; ++disarmed) {
        TimerQueue queue;
        TimerQueue::Handle timers[3] = {};
        for (int event = 0; event < 3; ++event)
            timers[event] = queue.arm(0, 500, 7, static_cast<std::uint8_t>(event));
        queue.disarm(timers[disarmed]);
        std::vector left{0, 1, 2};
        left.erase(left.begin() + disarmed);
        CHECK(queue.size() == 2);
        CHECK(fired_by(queue, 500) == left);
        CHECK_FALSE(queue.next_due_ns());
    }
}

TEST_CASE("timers: a timer that one of the same round arms fires when it is due") {
    TimerQueue queue;
    queue.arm(0, 500, 1, 0);
    CHECK(queue.take_due(2'000)->event == 0);
    queue.arm(2'000, 0, 1, 1);
    queue.arm(2'000, 1, 1, 2);
    CHECK(fired_by(queue, 2'000) == std::vector{1});
    CHECK(queue.size() == 1);
}

TEST_CASE("timers: a delay below 0 counts as 0") {
    TimerQueue queue;
    queue.arm(5, -3, 1, 0);
    CHECK(queue.next_due_ns() == 5);
}

TEST_CASE("timers: whatever is armed and disarmed, each fires once unless it was disarmed, and none early") {
    std::mt19937 random(20261124);
    const std::int64_t delays[] = {0, 200, 500, 1000, 5000, 32000};
    for (int round = 0; round < 200; ++round) {
        TimerQueue queue;
        std::int64_t now = 0;
        std::map<std::uint64_t, std::pair<TimerQueue::Handle, std::int64_t>> running;
        std::uint64_t owner = 0;
        for (int step = 0; step < 300; ++step) {
            now += static_cast<std::int64_t>(random() % 400);
            if (random() % 3 != 0) {
                const std::int64_t delay = delays[random() % std::size(delays)];
                ++owner;
                running[owner] = {queue.arm(now, delay, owner, 1), now + delay};
            } else if (!running.empty()) {
                auto chosen = running.begin();
                std::advance(chosen, static_cast<std::ptrdiff_t>(random() % running.size()));
                queue.disarm(chosen->second.first);
                running.erase(chosen);
            }
            std::int64_t last = 0;
            while (random() % 2 == 0) {
                const auto fired = queue.take_due(now);
                if (!fired) break;
                const auto found = running.find(fired->owner);
                REQUIRE(found != running.end());
                CHECK(found->second.second <= now);
                CHECK(found->second.second >= last);
                last = found->second.second;
                running.erase(found);
            }
            REQUIRE(queue.size() == running.size());
            const auto earliest = std::min_element(
                running.begin(), running.end(),
                [](auto& one, auto& other) { return one.second.second < other.second.second; });
            CHECK(queue.next_due_ns() ==
                  (running.empty() ? std::nullopt : std::optional(earliest->second.second)));
        }
    }
}
