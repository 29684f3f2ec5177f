#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support.hpp"
#include "trunkline/graph/frame_buffer.hpp"
#include "trunkline/graph/playout_queue.hpp"

using namespace trunkline;
using graph::PlayoutItem;
using tests::level;
using tests::ms;

namespace {

struct Log final : graph::PlayoutListener {
    void mark_reached(std::uint32_t mark, bool cleared) override {
        lines.push_back((cleared ? "cleared " : "mark ") + std::to_string(mark));
    }
    void playout_drained() override { lines.emplace_back("drained"); }
    void playout_level(bool full, std::uint64_t level_ms) override {
        lines.push_back((full ? "full at " : "low at ") + std::to_string(level_ms));
    }
    void playout_underrun() override { ++underruns; }
    void spent(util::Node* node) override { delete node; }

    std::vector<std::string> lines;
    int underruns = 0;
};

PlayoutItem* audio(const std::vector<std::int16_t>& samples) {
    auto* item = new PlayoutItem;
    item->size_bytes = static_cast<std::uint32_t>(2 * samples.size());
    item->bytes = std::make_unique<std::uint8_t[]>(item->size_bytes);
    std::memcpy(item->bytes.get(), samples.data(), item->size_bytes);
    return item;
}

PlayoutItem* mark(std::uint32_t number) {
    auto* item = new PlayoutItem;
    item->is_mark = true;
    item->mark = number;
    return item;
}

/// No sample has this value.
constexpr int none = 99'999;

/// Pulls 20 ms at a time; the level of each frame, or `none`.
struct Player {
    explicit Player(graph::AudioFormat format = {}) : queue(format, log) {}

    int frame() {
        std::vector<std::int16_t> out(160);
        const bool played = queue.pull(out, now_ns);
        now_ns += 20 * ms;
        last = out;
        return played ? out[0] : none;
    }

    Log log;
    graph::PlayoutQueue queue;
    std::int64_t now_ns = 0;
    std::vector<std::int16_t> last;
};

}  // namespace

TEST_CASE("playout starts when 60 ms are queued") {
    Player player;
    player.queue.append(audio(level(1, 320)), 0);
    CHECK(player.frame() == none);
    player.queue.append(audio(level(2, 160)), player.now_ns);
    CHECK(player.frame() == 1);
    CHECK(player.frame() == 1);
    CHECK(player.frame() == 2);
    CHECK(player.frame() == none);
    CHECK(player.log.lines == std::vector<std::string>{"drained"});
}

TEST_CASE("less than the prebuffer plays when no more comes") {
    Player player;
    player.queue.append(audio(level(1, 100)), 0);
    CHECK(player.frame() == none);
    CHECK(player.frame() == none);
    CHECK(player.frame() == none);
    CHECK(player.frame() == 1);
    CHECK(player.last[99] == 1);
    CHECK(player.last[100] == 0);
}

TEST_CASE("after an underrun the prebuffer grows, after a pause it does not") {
    Player player;
    player.queue.append(audio(level(1, 480)), 0);
    while (player.frame() != none) {
    }
    player.queue.append(audio(level(2, 640)), player.now_ns);
    CHECK(player.frame() == none);
    CHECK(player.log.underruns == 1);
    player.queue.append(audio(level(2, 160)), player.now_ns);
    // It was 20 ms late, and may be again: nothing plays sooner than after that and a margin.
    CHECK(player.frame() == none);
    for (int n = 0; n < 5; ++n) {
        CHECK(player.frame() == 2);
    }
    CHECK(player.frame() == none);
    player.now_ns += 1000 * ms;
    player.queue.append(audio(level(3, 480)), player.now_ns);
    CHECK(player.frame() == none);
    CHECK(player.frame() == none);
    CHECK(player.frame() == 3);
    CHECK(player.log.underruns == 1);
}

TEST_CASE("audio that comes before the next pull follows without a gap, and is no underrun") {
    Player player;
    player.queue.append(audio(level(1, 480)), 0);
    for (int n = 0; n < 3; ++n) {
        CHECK(player.frame() == 1);
    }
    player.queue.append(audio(level(2, 160)), player.now_ns - 1);
    CHECK(player.frame() == 2);
    CHECK(player.log.lines.empty());
    CHECK(player.frame() == none);
    CHECK(player.log.lines == std::vector<std::string>{"drained"});
    CHECK(player.log.underruns == 0);
}

TEST_CASE("clearing just after the last sample says that the queue is empty, once") {
    Player player;
    player.queue.append(audio(level(1, 160)), 0);
    player.now_ns = 60 * ms;
    CHECK(player.frame() == 1);
    player.queue.clear();
    CHECK(player.log.lines == std::vector<std::string>{"drained"});
    player.queue.append(audio(level(2, 480)), player.now_ns);
    CHECK(player.frame() == 2);
    CHECK(player.log.underruns == 0);
}

TEST_CASE("a steady writer with jitter never runs dry") {
    Player player;
    std::int64_t written_ns = 0;
    int played = 0;
    // 40 ms every 40 ms, each up to 15 ms early or late.
    for (int n = 0; n < 500; ++n) {
        const std::int64_t due_ns = n * 40 * ms + (n * 7 % 31 - 15) * ms;
        while (player.now_ns <= due_ns) {
            played += player.frame() != none ? 1 : 0;
        }
        player.queue.append(audio(level(1, 320)), due_ns);
        written_ns = due_ns;
    }
    CHECK(player.log.underruns == 0);
    CHECK(played > 990);
    CHECK(written_ns > 0);
}

TEST_CASE("marks are reached in order, when their audio was handed out") {
    Player player;
    player.queue.append(mark(1), 0);
    CHECK(player.log.lines == std::vector<std::string>{"mark 1"});
    player.queue.append(audio(level(1, 480)), 0);
    player.queue.append(mark(2), 0);
    player.queue.append(mark(3), 0);
    player.queue.append(audio(level(2, 160)), 0);
    player.queue.append(mark(4), 0);
    player.frame();
    player.frame();
    CHECK(player.log.lines.size() == 1);
    player.frame();
    CHECK(player.log.lines == std::vector<std::string>{"mark 1", "mark 2", "mark 3"});
    CHECK(player.frame() == 2);
    CHECK(player.log.lines.back() == "mark 4");
    CHECK(player.frame() == none);
    CHECK(player.log.lines.back() == "drained");
}

TEST_CASE("clearing fades within 5 ms, then there is silence") {
    Player player;
    player.queue.append(audio(level(10000, 8000)), 0);
    player.queue.append(mark(1), 0);
    CHECK(player.frame() == 10000);
    player.queue.clear();
    CHECK(player.log.lines == std::vector<std::string>{"cleared 1", "drained"});
    CHECK(player.frame() == 9756);
    for (std::size_t n = 1; n < 40; ++n) {
        CHECK(player.last[n] < player.last[n - 1]);
    }
    for (std::size_t n = 40; n < 160; ++n) {
        CHECK(player.last[n] == 0);
    }
    CHECK(player.frame() == none);
    CHECK(player.queue.consumed_bytes() == 16000);
    // What is written afterwards plays as after a pause.
    player.queue.append(audio(level(7, 480)), player.now_ns);
    CHECK(player.frame() == 7);
}

TEST_CASE("a pause fades within 5 ms, keeps what is queued, and goes on from there") {
    Player player;
    player.queue.append(audio(level(10000, 1600)), 0);
    player.queue.append(mark(1), 0);
    CHECK(player.frame() == 10000);
    player.queue.pause(true);
    CHECK(player.frame() == 9756);
    for (int n = 0; n < 100; ++n) {
        CHECK(player.frame() == none);
    }
    player.queue.append(audio(level(7, 160)), player.now_ns);
    CHECK(player.log.lines.empty());
    CHECK(player.queue.consumed_bytes() == 2 * 200);
    player.queue.pause(false);
    CHECK(player.frame() == 10000);
    for (int n = 0; n < 7; ++n) {
        REQUIRE(player.frame() == 10000);
    }
    CHECK(player.frame() == 10000);
    CHECK(player.last[159] == 7);
    CHECK(player.log.lines == std::vector<std::string>{"mark 1"});
    CHECK(player.log.underruns == 0);
}

TEST_CASE("clearing ends a pause, without a sound of what was dropped") {
    Player player;
    player.queue.pause(true);
    player.queue.append(audio(level(10000, 1600)), 0);
    CHECK(player.frame() == none);
    player.queue.clear();
    CHECK(player.log.lines == std::vector<std::string>{"drained"});
    CHECK(player.frame() == none);
    player.queue.append(audio(level(7, 480)), player.now_ns);
    CHECK(player.frame() == 7);
}

TEST_CASE("clearing an empty queue does nothing") {
    Player player;
    player.queue.clear();
    CHECK(player.log.lines.empty());
    CHECK(player.frame() == none);
}

TEST_CASE("a minute that arrives at once is played and counted") {
    Player player;
    player.queue.append(audio(level(1, 480000)), 0);
    for (int n = 0; n < 3000; ++n) {
        REQUIRE(player.frame() == 1);
    }
    CHECK(player.frame() == none);
    CHECK(player.queue.consumed_bytes() == 960000);
}

TEST_CASE("wide audio keeps its rate, and fades as fast") {
    Player player({graph::Encoding::l16, 16000});
    player.queue.append(audio(tests::tone(1000, 16000, 16000)), 0);
    std::vector<std::int16_t> heard;
    while (player.frame() != none && heard.size() < 8000) {
        heard.insert(heard.end(), player.last.begin(), player.last.end());
    }
    CHECK(tests::amplitude_at(heard, 1000, 16000) == doctest::Approx(12000).epsilon(0.01));
    player.queue.clear();
    REQUIRE(player.frame() != none);
    CHECK(tests::rms(std::span<const std::int16_t>(player.last).first(40)) > 1000);
    CHECK(tests::rms(std::span<const std::int16_t>(player.last).subspan(80)) == 0);
    CHECK(player.frame() == none);
}

TEST_CASE("companded audio is decoded") {
    Player player({graph::Encoding::mulaw, 8000});
    auto* item = new PlayoutItem;
    item->size_bytes = 480;
    item->bytes = std::make_unique<std::uint8_t[]>(480);
    std::memset(item->bytes.get(), 0x80, 480);
    player.queue.append(item, 0);
    CHECK(player.frame() == 32124);
    CHECK(player.queue.consumed_bytes() == 160);
}

TEST_CASE("the level is told where it is crossed, and once each way") {
    Player player;
    player.queue.watch_level(200, 100);
    player.queue.append(audio(level(1, 1592)), 0);
    CHECK(player.log.lines.empty());
    player.queue.append(audio(level(1, 8)), 0);
    player.queue.append(audio(level(1, 800)), 0);
    CHECK(player.log.lines == std::vector<std::string>{"full at 200"});
    for (int n = 0; n < 9; ++n) {
        player.frame();
    }
    CHECK(player.log.lines.size() == 1);
    player.frame();
    CHECK(player.log.lines.back() == "low at 100");
    player.queue.append(audio(level(1, 1600)), player.now_ns);
    CHECK(player.log.lines.back() == "full at 300");
    player.queue.clear();
    CHECK(player.log.lines ==
          std::vector<std::string>{"full at 200", "low at 100", "full at 300", "low at 0", "drained"});
}

TEST_CASE("watching a level tells how it stands; nobody is told any more when it is not watched") {
    Player player;
    player.queue.append(audio(level(1, 1600)), 0);
    player.queue.watch_level(150, 100);
    CHECK(player.log.lines == std::vector<std::string>{"full at 200"});
    player.queue.watch_level(0, 0);
    player.queue.clear();
    CHECK(player.log.lines == std::vector<std::string>{"full at 200", "drained"});
}

TEST_CASE("a frame buffer forwards everything, whatever the lengths of chunks and frames") {
    for (const std::size_t chunk_ms : {10, 20, 30, 40, 60}) {
        CAPTURE(chunk_ms);
        graph::FrameBuffer buffer(8000);
        std::vector<std::int16_t> taken;
        std::int16_t next = 1;
        std::vector<std::int16_t> frame(160);
        // The ticks fall together, in either order.
        for (std::size_t now_ms = 0; now_ms < 1200; now_ms += 10) {
            if (now_ms % 20 == 0 && now_ms % 40 == 0) {
                buffer.take(frame);
                taken.insert(taken.end(), frame.begin(), frame.end());
            }
            if (now_ms % chunk_ms == 0) {
                std::vector<std::int16_t> chunk(8 * chunk_ms);
                for (auto& sample : chunk) {
                    sample = next++;
                }
                buffer.put(chunk);
            }
            if (now_ms % 20 == 0 && now_ms % 40 != 0) {
                buffer.take(frame);
                taken.insert(taken.end(), frame.begin(), frame.end());
            }
        }
        const auto first = std::find(taken.begin(), taken.end(), std::int16_t{1});
        CHECK(first - taken.begin() <= static_cast<std::ptrdiff_t>(8 * (2 * chunk_ms + 40)));
        std::int16_t expected = 1;
        CHECK(std::all_of(first, taken.end(), [&](std::int16_t sample) { return sample == expected++; }));
    }
}

TEST_CASE("a frame buffer gives silence for missing audio and drops the oldest when nobody reads") {
    graph::FrameBuffer buffer(8000);
    std::vector<std::int16_t> frame(160, 9);
    buffer.take(frame);
    CHECK(frame == level(0, 160));
    for (std::int16_t n = 1; n <= 20; ++n) {
        buffer.put(level(n, 160));
    }
    // 160 ms are kept: the last eight chunks.
    for (std::int16_t n = 13; n <= 20; ++n) {
        buffer.take(frame);
        CHECK(frame == level(n, 160));
    }
    buffer.take(frame);
    CHECK(frame == level(0, 160));
    // After a gap it gathers anew.
    buffer.put(level(21, 160));
    buffer.take(frame);
    CHECK(frame == level(0, 160));
}
