#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "trunkline/rtp/e_model.hpp"
#include "trunkline/rtp/quality.hpp"
#include "trunkline/util/history.hpp"

using namespace trunkline;
using codec::Codec;

TEST_CASE("ratings follow ITU-T G.107") {
    const auto g711 = rtp::impairment_of(Codec::pcma);
    CHECK(rtp::transmission_rating(g711, {}) == doctest::Approx(93.2));
    CHECK(rtp::transmission_rating(g711, {0, 1, 100}) == doctest::Approx(93.2));
    // Idd at 200 ms: x = 1.
    CHECK(rtp::transmission_rating(g711, {0, 1, 200}) == doctest::Approx(93.2 - 3.02).epsilon(0.002));
    CHECK(rtp::transmission_rating(g711, {0, 1, 400}) == doctest::Approx(93.2 - 24.0).epsilon(0.01));
    // Ie,eff = 95 * 1 / (1 + 25.1).
    CHECK(rtp::transmission_rating(g711, {0.01, 1, 0}) == doctest::Approx(93.2 - 3.64).epsilon(0.001));
    CHECK(rtp::transmission_rating(g711, {0.05, 2, 0}) < rtp::transmission_rating(g711, {0.05, 1, 0}));
    CHECK(rtp::transmission_rating(g711, {1, 100, 5000}) >= 0);
}

TEST_CASE("scores follow ITU-T G.107, annex B") {
    CHECK(rtp::mean_opinion_score(93.2) == doctest::Approx(4.41).epsilon(0.002));
    CHECK(rtp::mean_opinion_score(80) == doctest::Approx(4.02).epsilon(0.002));
    CHECK(rtp::mean_opinion_score(60) == doctest::Approx(3.10).epsilon(0.002));
    CHECK(rtp::mean_opinion_score(0) == 1);
    CHECK(rtp::mean_opinion_score(-5) == 1);
    CHECK(rtp::mean_opinion_score(3) >= 1);
    CHECK(rtp::mean_opinion_score(120) == 4.5);
}

TEST_CASE("an interval has what changed since the one before") {
    rtp::QualityMeter meter{1'000'000'000};
    rtp::QualityContext context;
    auto interval =
        meter.close({250, 0, 0, 0, 100}, rtp::FarReport{3, 1000, 8, 0, 0}, context, 6'000'000'000);
    CHECK(interval.duration_ms == 5000);
    CHECK(interval.expected == 250);
    CHECK(interval.mos_received == 441);
    // The first report says where the counts began, not what happened since.
    CHECK(interval.sent_expected == 0);
    CHECK(interval.mos_sent == 0);
    CHECK(interval.round_trip_us == rtp::QualityInterval::no_round_trip);

    context.round_trip_us = 80'000;
    interval =
        meter.close({500, 25, 5, 5, 4000}, rtp::FarReport{28, 1250, 80, 0, 0}, context, 11'000'000'000);
    CHECK(interval.expected == 250);
    CHECK(interval.lost == 25);
    CHECK(interval.discarded == 5);
    CHECK(interval.burst_hundredths == 500);
    CHECK(interval.jitter_us == 4000);
    CHECK(interval.round_trip_us == 80'000);
    CHECK(interval.sent_expected == 250);
    CHECK(interval.sent_lost == 25);
    CHECK(interval.sent_jitter_us == 10'000);
    CHECK(interval.mos_sent < 400);
    // Bursts hurt more than as many losses one by one.
    CHECK(interval.mos_received < interval.mos_sent);
}

TEST_CASE("nothing to judge by gives no score") {
    rtp::QualityMeter meter;
    const rtp::QualityContext context;
    meter.close({10, 5, 0, 1, 0}, rtp::FarReport{0, 100, 0, 0, 0}, context, 1);
    // Stragglers made good what the interval before had counted; the far end's numbers go backwards.
    const auto interval = meter.close({10, 2, 0, 0, 0}, rtp::FarReport{-5, 40, 0, 0, 0}, context, 2);
    CHECK(interval.expected == 0);
    CHECK(interval.lost == 0);
    CHECK(interval.mos_received == 0);
    CHECK(interval.mos_sent == 0);
}

TEST_CASE("a history keeps the newest and is never read half written") {
    struct Record {
        std::uint64_t number;
        std::uint64_t square;
        std::uint32_t odd;
    };
    util::History<Record, 8> history;
    CHECK(history.read().empty());
    std::atomic<bool> done = false;
    std::thread writer([&] {
        for (std::uint64_t n = 0; n < 20'000; ++n) {
            history.push({n, n * n, static_cast<std::uint32_t>(n & 1)});
        }
        done = true;
    });
    while (!done) {
        for (const Record& record : history.read()) {
            REQUIRE(record.square == record.number * record.number);
        }
    }
    writer.join();
    const std::vector<Record> last = history.read();
    // The oldest might be overwritten at any moment, so it is not shown.
    REQUIRE(last.size() == 7);
    CHECK(last.front().number == 19'993);
    CHECK(last.back().number == 19'999);
    CHECK(history.count() == 20'000);
}
