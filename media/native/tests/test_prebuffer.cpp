// How long an agent's utterances wait before they play, in virtual time: what is learned from which arrivals,
// and what the caller hears of it beside a prebuffer that is always full.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "support.hpp"
#include "trunkline/graph/playout_queue.hpp"

using namespace trunkline;
using graph::PlayoutItem;
using tests::ms;

namespace {

constexpr std::int64_t tick_ns = 20 * ms;
constexpr std::int16_t voice = 1000;

/// Audio of one value that comes at one moment.
struct Arrival {
    std::int64_t at_ns;
    std::int64_t length_ms;
    std::int16_t value = voice;
    bool marked = false;  ///< A mark follows.
};

/// The rule without what is learned: 60 ms, and 100 ms if it ran dry just before.
class FixedPrebuffer {
  public:
    void append(std::int64_t length_ms, std::int64_t now_ns) {
        if (!playing_ && queued_ms_ == 0) {
            const bool underrun = has_played_ && now_ns - dry_ns_ < graph::PlayoutQueue::underrun_ns;
            if (underrun) ++underruns;
            wanted_ms_ = underrun ? 100 : 60;
            since_ns_ = now_ns;
        }
        queued_ms_ += length_ms;
    }

    /// Milliseconds that play now.
    std::int64_t pull(std::int64_t now_ns) {
        if (queued_ms_ > 0 && (queued_ms_ >= wanted_ms_ || now_ns - since_ns_ >= wanted_ms_ * ms)) {
            playing_ = true;
        }
        if (!playing_) return 0;
        const std::int64_t played_ms = std::min<std::int64_t>(queued_ms_, tick_ns / ms);
        queued_ms_ -= played_ms;
        if (played_ms < tick_ns / ms) {
            playing_ = false;
            has_played_ = true;
            dry_ns_ = now_ns;
        }
        return played_ms;
    }

    int underruns = 0;

  private:
    std::int64_t queued_ms_ = 0, wanted_ms_ = 60, since_ns_ = 0, dry_ns_ = 0;
    bool playing_ = false, has_played_ = false;
};

/// A playout queue that is pulled every 20 ms while audio comes, and a fixed prebuffer beside it.
struct Caller final : graph::PlayoutListener {
    /// Ticks come so long after full 20 ms.
    explicit Caller(std::int64_t phase_ns = 0) : tick_at_ns(phase_ns) {}

    void mark_reached(std::uint32_t mark, bool) override {
        CHECK(queue.consumed_bytes() == mark);
        ++marks;
    }
    void playout_drained() override {}
    void playout_level(bool, std::uint64_t) override {}
    void playout_underrun() override { ++underruns; }
    void spent(util::Node* node) override { delete node; }

    void hear(const std::vector<Arrival>& arrivals) {
        for (const Arrival& arrival : arrivals) {
            tick_until(arrival.at_ns);
            auto* item = new PlayoutItem;
            item->size_bytes = static_cast<std::uint32_t>(16 * arrival.length_ms);
            item->bytes = std::make_unique<std::uint8_t[]>(item->size_bytes);
            std::fill_n(reinterpret_cast<std::int16_t*>(item->bytes.get()), item->size_bytes / 2,
                        arrival.value);
            const int underruns_before = underruns;
            const bool grown_before = queue.prebuffer_ms() == 60;
            queue.append(item, arrival.at_ns);
            const bool grown = queue.prebuffer_ms() == 60;
            if (underruns > underruns_before && !grown_before && grown) ++lessons;
            if (learned_at_ns == 0 && (underruns != 0 || !grown)) learned_at_ns = arrival.at_ns;
            fixed.append(arrival.length_ms, arrival.at_ns);
            written_bytes += static_cast<std::uint32_t>(16 * arrival.length_ms);
            if (arrival.marked) append_mark(arrival.at_ns);
        }
        tick_until(tick_at_ns + 1000 * ms);
    }

    /// Append a mark named after what was written before it.
    void append_mark(std::int64_t now_ns) {
        auto* item = new PlayoutItem;
        item->is_mark = true;
        item->mark = written_bytes;
        queue.append(item, now_ns);
    }

    void tick_until(std::int64_t until_ns) {
        for (; tick_at_ns < until_ns; tick_at_ns += tick_ns) {
            std::vector<std::int16_t> out(160);
            const bool plays = queue.pull(out, tick_at_ns);
            const auto voiced = plays ? std::count(out.begin(), out.end(), voice) : 0;
            if (voiced != 0) heard_at_ns.push_back(tick_at_ns);
            heard_samples += voiced;
            const std::int64_t expected_ms = fixed.pull(tick_at_ns);
            if (!differs_at_ns && voiced != 8 * expected_ms) differs_at_ns = tick_at_ns;
        }
    }

    /// From a moment until voice is heard.
    std::int64_t delay_ns(std::int64_t since_ns) const {
        return *std::ranges::lower_bound(heard_at_ns, since_ns) - since_ns;
    }

    graph::PlayoutQueue queue{{}, *this};
    FixedPrebuffer fixed;
    std::int64_t tick_at_ns;
    std::uint32_t written_bytes = 0;
    int marks = 0;
    std::vector<std::int64_t> heard_at_ns;
    std::int64_t heard_samples = 0;
    int underruns = 0;
    int lessons = 0;                            ///< Gaps by which a short prebuffer grew.
    std::int64_t learned_at_ns = 0;             ///< When the first gap or the first window was over.
    std::optional<std::int64_t> differs_at_ns;  ///< When the two first played something else.
};

/// Audio in chunks, each late by what `late_ms` says; none overtakes another.
std::vector<Arrival> paced(std::int64_t from_ms, std::int64_t length_ms, std::int64_t chunk_ms,
                           const std::function<std::int64_t(std::int64_t)>& late_ms = {}) {
    std::vector<Arrival> arrivals;
    std::int64_t at_ns = 0;
    for (std::int64_t n = 0; n * chunk_ms < length_ms; ++n) {
        const std::int64_t due_ms = from_ms + n * chunk_ms;
        at_ns = std::max(at_ns, (due_ms + (late_ms ? late_ms(n) : 0)) * ms);
        arrivals.push_back({at_ns, chunk_ms});
    }
    return arrivals;
}

void add(std::vector<Arrival>& to, const std::vector<Arrival>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("a steady agent's first utterance waits for 60 ms, the second for 10 and the tick") {
    for (const std::int64_t phase_ms : {0, 1, 9, 10, 19}) {
        for (const std::int64_t frame_ms : {20, 40}) {
            CAPTURE(phase_ms);
            CAPTURE(frame_ms);
            Caller caller(phase_ms * ms);
            auto arrivals = paced(0, 3000, frame_ms);
            add(arrivals, paced(4000, 3000, frame_ms));
            caller.hear(arrivals);
            CHECK(caller.delay_ns(0) >= 40 * ms);
            CHECK(caller.delay_ns(0) < 60 * ms);
            CHECK(caller.delay_ns(4000 * ms) >= 10 * ms);
            CHECK(caller.delay_ns(4000 * ms) < 30 * ms);
            CHECK(caller.underruns == 0);
            CHECK(caller.heard_samples == 2 * 24'000);
            CHECK(*caller.differs_at_ns >= 4000 * ms);
        }
    }
}

TEST_CASE("an agent with 15 ms of jitter never runs dry, and waits for 20 ms and the tick") {
    for (const std::int64_t phase_ms : {0, 1, 9, 10, 19}) {
        CAPTURE(phase_ms);
        Caller caller(phase_ms * ms);
        std::minstd_rand random(static_cast<unsigned>(phase_ms + 1));
        const auto late_ms = [&](std::int64_t) { return static_cast<std::int64_t>(random() % 16); };
        std::vector<Arrival> arrivals;
        std::vector<std::int64_t> began_ns;
        for (std::int64_t from_ms = 0; from_ms < 60'000; from_ms += 6000) {
            const auto utterance = paced(from_ms, 5000, 20, late_ms);
            began_ns.push_back(utterance.front().at_ns);
            add(arrivals, utterance);
        }
        caller.hear(arrivals);
        CHECK(caller.underruns == 0);
        CHECK(caller.queue.prebuffer_ms() <= 20);
        for (std::size_t n = 1; n < began_ns.size(); ++n) {
            CHECK(caller.delay_ns(began_ns[n]) >= 15 * ms);
            CHECK(caller.delay_ns(began_ns[n]) < 40 * ms);
        }
    }
}

TEST_CASE("an agent that sends bursts: one gap shows how late they come, and there is no other") {
    Caller caller(19 * ms);
    // 200 ms at a time, every other burst 30 ms late: as much is queued at once as a fixed prebuffer wants.
    const auto late_ms = [](std::int64_t n) { return n / 10 % 2 * 30 - n % 10 * 20; };
    std::vector<Arrival> arrivals;
    for (std::int64_t from_ms = 0; from_ms < 30'000; from_ms += 3000) {
        add(arrivals, paced(from_ms, 2000, 20, late_ms));
    }
    caller.hear(arrivals);
    CHECK(caller.underruns == 1);
    CHECK(caller.fixed.underruns == 10);
    CHECK(caller.heard_samples == 160'000);
}

TEST_CASE("an agent that sends its bursts in time is heard at the next tick") {
    Caller caller(5 * ms);
    auto arrivals = paced(0, 10'000, 200);
    add(arrivals, paced(11'000, 10'000, 200));
    caller.hear(arrivals);
    CHECK(caller.delay_ns(0) == 5 * ms);
    CHECK(caller.delay_ns(11'000 * ms) == 5 * ms);
    CHECK(caller.underruns == 0);
    CHECK_FALSE(caller.differs_at_ns);
}

TEST_CASE("a sentence that comes at once is heard at the next tick, whatever pauses the agent makes") {
    Caller caller(5 * ms);
    std::vector<Arrival> arrivals;
    std::vector<std::int64_t> began_ns;
    std::int64_t at_ms = 0;
    for (const std::int64_t pause_ms : {30, 70, 300, 700, 0, 40}) {
        began_ns.push_back(at_ms * ms);
        // Whole, or in chunks faster than real time.
        add(arrivals, paced(at_ms, 3000, 100, [](std::int64_t n) { return -95 * n; }));
        at_ms += 3020 + pause_ms;
        began_ns.push_back(at_ms * ms);
        arrivals.push_back({at_ms * ms, 3000});
        at_ms += 3020 + pause_ms;
    }
    caller.hear(arrivals);
    for (const std::int64_t at_ns : began_ns) {
        CHECK(caller.delay_ns(at_ns) < tick_ns);
    }
    CHECK_FALSE(caller.differs_at_ns);
    CHECK(caller.underruns == caller.fixed.underruns);
    CHECK(caller.queue.prebuffer_ms() == 60);
}

TEST_CASE("a single frame that is 50 ms late costs a steady agent one gap, and is remembered") {
    Caller caller(3 * ms);
    std::vector<Arrival> arrivals;
    for (std::int64_t from_ms = 0; from_ms < 24'000; from_ms += 4000) {
        const bool stalls = from_ms == 4000 || from_ms == 12'000;
        add(arrivals, paced(from_ms, 3000, 20, [&](std::int64_t n) { return stalls && n == 75 ? 50 : 0; }));
    }
    caller.hear(arrivals);
    CHECK(caller.delay_ns(4000 * ms) == 23 * ms);
    CHECK(caller.delay_ns(8000 * ms) == 63 * ms);
    CHECK(caller.delay_ns(12'000 * ms) == 63 * ms);
    CHECK(caller.underruns == 1);
    CHECK(caller.fixed.underruns == 2);
    CHECK(caller.delay_ns(20'000 * ms) == 63 * ms);
    CHECK(caller.queue.prebuffer_ms() == 10);
}

TEST_CASE("in a pause of silence the delay shrinks by packets to what a new utterance would wait") {
    for (const std::int64_t phase_ms : {0, 1, 9, 10, 19}) {
        CAPTURE(phase_ms);
        Caller caller(phase_ms * ms);
        // Voice for longer than a window, a short and a long silence, voice.
        auto arrivals = paced(0, 8000, 20);
        for (std::size_t n = 0; n < arrivals.size(); ++n) {
            arrivals[n].marked = true;
            if ((n >= 150 && n < 155) || (n >= 200 && n < 220)) arrivals[n].value = 20;
        }
        caller.hear(arrivals);
        CHECK(caller.marks == 400);
        CHECK(caller.heard_samples == 160 * (400 - 25));
        CHECK(caller.underruns == 0);
        CHECK(caller.delay_ns(3100 * ms) >= 40 * ms);
        CHECK(caller.delay_ns(4400 * ms) >= 10 * ms);
        CHECK(caller.delay_ns(4400 * ms) < 30 * ms);
        CHECK(caller.heard_at_ns.back() - 7980 * ms < 30 * ms);
    }
}

TEST_CASE("in a pause of silence the delay grows for frames that were nearly late") {
    Caller caller(2 * ms);
    auto arrivals = paced(0, 10'000, 20, [](std::int64_t n) { return n == 300 ? 18 : 0; });
    for (std::size_t n = 0; n < arrivals.size(); ++n) {
        if ((n >= 200 && n < 220) || (n >= 350 && n < 370)) arrivals[n].value = 0;
    }
    caller.hear(arrivals);
    CHECK(caller.delay_ns(4400 * ms) == 22 * ms);
    CHECK(caller.delay_ns(7400 * ms) == 42 * ms);
    CHECK(caller.underruns == 0);
    CHECK(caller.heard_samples == 160 * (500 - 40));
}

TEST_CASE("what a stalled agent is late by is made up for in its next pause") {
    for (const std::int64_t stall_ms : {200, 300, 600, 900, 2000}) {
        for (const std::int64_t piece_ms : {0, 7}) {
            CAPTURE(stall_ms);
            CAPTURE(piece_ms);
            Caller caller(3 * ms);
            // From 12 s on nothing comes; then all that was due, at once or in pieces.
            const std::int64_t first = 600, last = first + stall_ms / 20;
            auto arrivals = paced(0, 40'000, 20, [&](std::int64_t n) {
                if (n < first || n >= last) return std::int64_t{0};
                return (last - n) * 20 + (n - first) / 10 * piece_ms;
            });
            for (std::size_t n = 1000; n < 1200; ++n)
                arrivals[n].value = 0;
            caller.hear(arrivals);
            CHECK(caller.delay_ns(18'000 * ms) < 40 * ms);  // The audio of a moment before the pause plays.
            CHECK(caller.delay_ns(24'000 * ms) < 90 * ms);
            CHECK(caller.heard_samples == 160 * 1800);
        }
    }
}

TEST_CASE("after a pause without audio no part of what comes faster than by the clock is left out") {
    for (const std::int64_t pause_ms : {300, 800, 1500}) {
        for (const std::int64_t sooner_ms : {10, 15, 20}) {
            CAPTURE(pause_ms);
            CAPTURE(sooner_ms);
            Caller caller(2 * ms);
            auto arrivals = paced(0, 12'000, 20);
            // A sentence twice as long as the pause, with a silence in it.
            const std::int64_t from_ms = 12'000 + pause_ms, length_ms = 2 * pause_ms + 600;
            auto sentence = paced(from_ms, length_ms, 20, [&](std::int64_t n) { return -sooner_ms * n; });
            for (std::size_t n = sentence.size() - 20; n < sentence.size() - 5; ++n)
                sentence[n].value = 0;
            add(arrivals, sentence);
            arrivals.push_back({(from_ms + 2 * length_ms) * ms, 20, 0});
            caller.hear(arrivals);
            CHECK(caller.heard_at_ns.back() >= (from_ms + length_ms - 20) * ms);
        }
    }
}

TEST_CASE("silence with a mark inside the packet plays whole") {
    Caller caller;
    auto arrivals = paced(0, 6000, 10);
    for (std::size_t n = 400; n < 500; ++n) {
        arrivals[n].value = 0;
        arrivals[n].marked = true;
    }
    caller.hear(arrivals);
    CHECK(caller.marks == 100);
    CHECK(caller.delay_ns(5000 * ms) == caller.delay_ns(0));
}

TEST_CASE("no part of a sentence that came at once is left out") {
    Caller caller(2 * ms);
    auto arrivals = paced(0, 3000, 20);
    arrivals.push_back({4000 * ms, 500});
    arrivals.push_back({4000 * ms, 400, 0});
    arrivals.push_back({4000 * ms, 100});
    caller.hear(arrivals);
    CHECK(caller.heard_at_ns.back() == 4982 * ms);
}

TEST_CASE(
    "beside a fixed prebuffer: the first utterance is the same, and later gaps are no more but by lessons") {
    constexpr std::array chunks_ms{20, 20, 40, 100, 200};
    constexpr std::array jitters_ms{0, 3, 10, 30, 60, 120};
    int underruns = 0;
    int underruns_of_fixed = 0;
    for (unsigned seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        std::minstd_rand random(seed);
        const auto below = [&](std::size_t limit) { return static_cast<std::int64_t>(random() % limit); };
        const std::int64_t chunk_ms = chunks_ms[static_cast<std::size_t>(below(chunks_ms.size()))];
        const std::int64_t jitter_ms = jitters_ms[static_cast<std::size_t>(below(jitters_ms.size()))];
        const std::int64_t stalls_in = below(2) == 0 ? 0 : 20 + below(500);
        const auto late_ms = [&](std::int64_t) {
            const bool stalls = stalls_in != 0 && below(static_cast<std::size_t>(stalls_in)) == 0;
            return below(static_cast<std::size_t>(jitter_ms + 1)) + (stalls ? below(150) : 0);
        };
        std::vector<Arrival> arrivals;
        std::int64_t second_at_ns = 0;
        for (std::int64_t from_ms = 0; from_ms < 60'000;) {
            const std::int64_t length_ms = 200 + below(6000);
            add(arrivals, paced(from_ms, length_ms, chunk_ms, late_ms));
            from_ms += length_ms + 700 + below(1500);
            if (second_at_ns == 0) second_at_ns = from_ms * ms;
        }
        Caller caller(below(20) * ms);
        caller.hear(arrivals);
        const bool alike = !caller.differs_at_ns || *caller.differs_at_ns >= second_at_ns ||
                           *caller.differs_at_ns >= caller.learned_at_ns;
        CHECK(alike);
        // An utterance that the fixed prebuffer begins anew, after a gap that the other hides, waits for
        // longer from then on: it may hide one more.
        CHECK(caller.underruns <= caller.fixed.underruns + caller.lessons + 1);
        // A window of 2 s, then of 4, 8, 16 and 32, are more than a minute.
        CHECK(caller.lessons <= 4);
        if (jitter_ms == 0 && stalls_in == 0) CHECK(caller.underruns == 0);
        underruns += caller.underruns;
        underruns_of_fixed += caller.fixed.underruns;
    }
    CHECK(underruns > 0);
    CHECK(underruns < underruns_of_fixed);
}
