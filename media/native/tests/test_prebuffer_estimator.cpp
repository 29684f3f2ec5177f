// What is learned of an agent from when its audio comes.

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "support.hpp"
#include "trunkline/graph/prebuffer_estimator.hpp"

using namespace trunkline;
using graph::PrebufferEstimator;
using tests::ms;

namespace {

/// Frames of 20 ms that come in time; 2 s of them.
void note_frames(PrebufferEstimator& estimator, int frames = 100) {
    for (int n = 0; n < frames; ++n) {
        estimator.note(0, 20 * ms);
    }
}

}  // namespace

TEST_CASE("the prebuffer is full until a window has come in time, then as short as the lags allow") {
    PrebufferEstimator estimator;
    note_frames(estimator, 99);
    CHECK(estimator.prebuffer_ns() == 60 * ms);
    note_frames(estimator, 1);
    CHECK(estimator.prebuffer_ns() == 10 * ms);
    for (const auto& [lag_ms, wanted_ms] : {std::pair{4, 10}, {15, 20}, {10, 20}, {40, 45}, {58, 60}}) {
        CAPTURE(lag_ms);
        estimator.note(-lag_ms * ms, 20 * ms);
        CHECK(estimator.prebuffer_ns() == wanted_ms * ms);
    }
    // It is kept for the rest of its window and one more.
    note_frames(estimator, 194);
    CHECK(estimator.prebuffer_ns() == 60 * ms);
    note_frames(estimator, 1);
    CHECK(estimator.prebuffer_ns() == 10 * ms);
}

TEST_CASE("a lag is measured from the greatest lead, not from what was sent with the audio before it") {
    PrebufferEstimator estimator;
    note_frames(estimator);
    for (int n = 1; n < 10; ++n) {
        estimator.note(n * 20 * ms, 0);
    }
    estimator.note(0, 200 * ms);
    CHECK(estimator.prebuffer_ns() == 10 * ms);
    estimator.note(12 * ms, 8 * ms);
    CHECK(estimator.prebuffer_ns() == 10 * ms);
    estimator.note(-3 * ms, 35 * ms);
    CHECK(estimator.prebuffer_ns() == 20 * ms);
    estimator.begin();
    estimator.note(-14 * ms, 34 * ms);
    CHECK(estimator.prebuffer_ns() == 20 * ms);
}

TEST_CASE("a gap makes the prebuffer full at once, for twice as long each time") {
    PrebufferEstimator estimator;
    note_frames(estimator);
    int frames = 100;
    for (int gap = 0; gap < 8; ++gap) {
        CAPTURE(gap);
        estimator.note_gap(-50 * ms);
        frames = std::min(2 * frames, 3200);
        note_frames(estimator, frames - 1);
        CHECK(estimator.prebuffer_ns() == 60 * ms);
        note_frames(estimator, 1);
        CHECK(estimator.prebuffer_ns() == 55 * ms);
        note_frames(estimator, frames);
        CHECK(estimator.prebuffer_ns() == 10 * ms);
    }
}

TEST_CASE("gaps before a window is over begin it anew, without making it longer") {
    PrebufferEstimator estimator;
    for (int gap = 0; gap < 5; ++gap) {
        note_frames(estimator, 99);
        estimator.note_gap(-20 * ms);
    }
    note_frames(estimator, 99);
    CHECK_FALSE(estimator.steady());
    note_frames(estimator, 1);
    CHECK(estimator.steady());
}

TEST_CASE("what no prebuffer hides is a pause, and time in which nothing came shows nothing") {
    PrebufferEstimator estimator;
    note_frames(estimator);
    estimator.note_gap(-101 * ms);
    CHECK(estimator.prebuffer_ns() == 10 * ms);
    CHECK(estimator.wait_ns() == 0);
    PrebufferEstimator seldom;
    for (int n = 0; n < 9; ++n) {
        seldom.note(0, 5000 * ms);
    }
    CHECK_FALSE(seldom.steady());
    seldom.note(0, 5000 * ms);
    CHECK(seldom.steady());
}
