#include <doctest/doctest.h>

#include "trunkline/rtp/jitter_meter.hpp"
#include "trunkline/rtp/sequence_tracker.hpp"

using namespace trunkline::rtp;

TEST_CASE("packets in order lose nothing, also across the wrap") {
    SequenceTracker tracker;
    for (std::uint32_t n = 65500; n < 65600; ++n) {
        CHECK(tracker.note(static_cast<std::uint16_t>(n)) == Arrival::in_order);
    }
    CHECK(tracker.received() == 100);
    CHECK(tracker.lost() == 0);
}

TEST_CASE("a gap counts until it is filled") {
    SequenceTracker tracker;
    tracker.note(10);
    tracker.note(13);
    CHECK(tracker.lost() == 2);
    CHECK(tracker.note(11) == Arrival::reordered);
    CHECK(tracker.lost() == 1);
    CHECK(tracker.note(11) == Arrival::duplicate);
    CHECK(tracker.note(13) == Arrival::duplicate);
    CHECK(tracker.lost() == 1);
    CHECK(tracker.received() == 3);
}

TEST_CASE("a straggler from before the first packet widens the run") {
    SequenceTracker tracker;
    tracker.note(0);
    CHECK(tracker.note(65535) == Arrival::reordered);
    CHECK(tracker.lost() == 0);
    CHECK(tracker.received() == 2);
}

TEST_CASE("a far number counts only when the next one follows it") {
    SequenceTracker tracker;
    tracker.note(100);
    CHECK(tracker.note(30000) == Arrival::suspect);
    CHECK(tracker.note(101) == Arrival::in_order);
    CHECK(tracker.note(30000) == Arrival::suspect);
    CHECK(tracker.note(30001) == Arrival::restarted);
    CHECK(tracker.note(30002) == Arrival::in_order);
    CHECK(tracker.lost() == 0);
}

TEST_CASE("another source keeps the totals") {
    SequenceTracker tracker;
    tracker.note(1);
    tracker.note(3);
    tracker.restart();
    CHECK(tracker.note(40000) == Arrival::in_order);
    CHECK(tracker.lost() == 1);
    CHECK(tracker.received() == 3);
}

TEST_CASE("an even stream has no jitter, an uneven one approaches its spread") {
    JitterMeter even{8000};
    JitterMeter uneven{8000};
    for (std::uint32_t n = 0; n < 500; ++n) {
        const std::int64_t at_ns = 1'000'000'000LL + n * 20'000'000LL;
        even.note(n * 160, at_ns);
        uneven.note(n * 160, at_ns + (n % 2 == 0 ? 0 : 8'000'000));
    }
    CHECK(even.jitter_us() == 0);
    CHECK(uneven.jitter_us() > 7'900);
    CHECK(uneven.jitter_us() < 8'100);
}

TEST_CASE("timestamps that wrap make no jitter") {
    JitterMeter meter{8000};
    for (std::uint32_t n = 0; n < 100; ++n) {
        meter.note(0xFFFFFFFF - 1600 + n * 160, n * 20'000'000LL);
    }
    CHECK(meter.jitter_us() == 0);
}
