// Conferences on virtual time: lines are fed and pulled by hand, so that every sample is known.

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "support.hpp"
#include "trunkline/engine/conference.hpp"

using namespace trunkline;
using engine::Conference;
using engine::ConferenceLine;
using engine::ConferenceMember;
using engine::ConferenceRole;
using tests::ms;

namespace {

/// A member with a tone of its own, which keeps what it hears.
struct Voice {
    std::shared_ptr<ConferenceLine> line;
    double freq_hz = 0;
    double amplitude = 3000;
    std::uint32_t send_rate_hz = 16000;
    std::uint32_t send_ms = 20;
    std::size_t said = 0;
    std::int64_t pulled_ms = 0;
    std::vector<std::int16_t> heard;

    double hears(double freq) const {
        const std::size_t window = send_rate_hz / 2;
        return tests::amplitude_at(std::span(heard).last(window), freq, send_rate_hz);
    }
};

/// A conference whose thread is the test's.
class Room {
  public:
    explicit Room(std::uint32_t rate_hz = 16000)
        : rate_hz_(rate_hz), conference_(new Conference(7, rate_hz, event_queue_, wheel_)) {}

    ~Room() {
        conference_->shut(now_ms_ * ms);
        util::NodeStack::destroy(event_queue_.spent().take_newest_first());
    }

    Voice& add(std::uint64_t stream, double freq_hz, ConferenceRole role = {}) {
        Voice& voice = voices_[stream];
        voice.line = std::make_shared<ConferenceLine>(rate_hz_);
        voice.freq_hz = freq_hz;
        auto* member = new ConferenceMember;
        member->stream = stream;
        member->slot = static_cast<std::size_t>(stream);
        member->role = role;
        member->line = voice.line;
        conference_->add(member, now_ms_ * ms);
        return voice;
    }

    void remove(std::uint64_t stream) {
        conference_->remove(stream, now_ms_ * ms);
        voices_.erase(stream);
    }

    void run(std::int64_t for_ms) {
        for (const std::int64_t until = now_ms_ + for_ms; now_ms_ < until; now_ms_ += 5) {
            for (auto& [stream, voice] : voices_) {
                if (now_ms_ % 20 == 10) say(voice);
                if (now_ms_ - voice.pulled_ms >= voice.send_ms) pull(voice);
            }
            wheel_.advance(now_ms_ * ms);
        }
    }

    std::vector<engine::Event> events() {
        std::vector<engine::Event> all;
        for (engine::Event event; event_queue_.events().pop(event);) {
            all.push_back(event);
        }
        return all;
    }

    Conference& conference() { return *conference_; }
    Voice& operator[](std::uint64_t stream) { return voices_[stream]; }

  private:
    void say(Voice& voice) {
        std::vector<std::int16_t> samples(rate_hz_ / 50);
        for (std::int16_t& sample : samples) {
            const double phase =
                2 * std::numbers::pi * voice.freq_hz * static_cast<double>(voice.said++) / rate_hz_;
            sample = static_cast<std::int16_t>(voice.amplitude * std::sin(phase));
        }
        voice.line->put({samples, graph::Origin::received}, now_ms_ * ms);
    }

    void pull(Voice& voice) {
        voice.pulled_ms = now_ms_;
        std::vector<std::int16_t> frame(voice.send_rate_hz / 1000 * voice.send_ms);
        CHECK(voice.line->pull(frame, voice.send_rate_hz, now_ms_ * ms));
        voice.heard.insert(voice.heard.end(), frame.begin(), frame.end());
    }

    std::uint32_t rate_hz_;
    engine::Notifier notifier_;
    engine::EventQueue event_queue_{notifier_};
    engine::TimerWheel wheel_;
    Conference* conference_;
    std::map<std::uint64_t, Voice> voices_;
    std::int64_t now_ms_ = 1000;
};

constexpr double loud = 2500;
constexpr double faint = 60;

ConferenceRole whisper_to(std::initializer_list<std::size_t> slots) {
    ConferenceRole role;
    role.whispers = true;
    for (const std::size_t slot : slots) {
        role.whisper_to.set(slot);
    }
    return role;
}

}  // namespace

TEST_CASE("a mix gives each voice all others, limited only at the end") {
    graph::Mix mix;
    const auto one = tests::level(30000, 160);
    const auto two = tests::level(20000, 160);
    const auto three = tests::level(-25000, 160);
    std::vector<std::int16_t> out(160);
    mix.begin(160);
    mix.add(one);
    mix.add(two);
    mix.others(two, {}, out);
    CHECK(out == one);
    mix.all(out);
    CHECK(out == tests::level(32767, 160));
    mix.add(three);
    mix.all(out);
    CHECK(out == tests::level(25000, 160));
    mix.others(three, {}, out);
    CHECK(out == tests::level(32767, 160));
    const std::array<std::span<const std::int16_t>, 1> besides{three};
    mix.others(one, besides, out);
    CHECK(out == tests::level(-30000, 160));
}

TEST_CASE("levels are told in decibels below full scale") {
    CHECK(graph::level_dbov(0) == 127);
    CHECK(graph::level_dbov(graph::power_of(tests::level(-32768, 10))) == 0);
    CHECK(graph::level_dbov(graph::power_of(tests::level(3277, 10))) == 19);
}

TEST_CASE("each member of a conference hears all others and not itself") {
    for (const std::uint32_t rate_hz : {8000U, 16000U}) {
        CAPTURE(rate_hz);
        Room room(rate_hz);
        const std::array<double, 4> tones{400, 700, 1100, 1700};
        for (std::uint64_t n = 0; n < 4; ++n) {
            Voice& voice = room.add(n + 1, tones[n]);
            voice.send_rate_hz = n % 2 == 0 ? 8000 : 16000;
            voice.send_ms = n == 3 ? 30 : n == 2 ? 10 : 20;
        }
        room.run(2000);
        for (std::uint64_t one = 0; one < 4; ++one) {
            for (std::uint64_t other = 0; other < 4; ++other) {
                CAPTURE(one);
                CAPTURE(other);
                const double heard = room[one + 1].hears(tones[other]);
                CHECK((one == other ? heard < faint : heard > loud));
            }
        }
    }
}

TEST_CASE("listeners, muted members and whispers are heard by whom they should be") {
    Room room;
    ConferenceRole listens;
    listens.heard = false;
    room.add(1, 400);
    room.add(2, 700);
    room.add(3, 1100, listens);
    room.add(4, 1700, whisper_to({2}));
    room.run(1500);
    CHECK(room[1].hears(700) > loud);
    CHECK(room[1].hears(1100) < faint);
    CHECK(room[1].hears(1700) < faint);
    CHECK(room[2].hears(400) > loud);
    CHECK(room[2].hears(1700) > loud);
    CHECK(room[3].hears(400) > loud);
    CHECK(room[3].hears(700) > loud);
    CHECK(room[3].hears(1700) < faint);
    CHECK(room[4].hears(400) > loud);
    CHECK(room[4].hears(1700) < faint);
    SUBCASE("a listener may speak and a whisperer be heard by all") {
        room.conference().change(3, {});
        room.conference().change(4, {});
        room.run(1500);
        CHECK(room[1].hears(1100) > loud);
        CHECK(room[1].hears(1700) > loud);
        CHECK(room[2].hears(1700) > loud);
    }
    SUBCASE("who takes the place of a whisper's target hears nothing of it") {
        room.remove(2);
        room.add(2, 900);
        room.run(1500);
        CHECK(room[2].hears(400) > loud);
        CHECK(room[2].hears(1700) < faint);
    }
}

TEST_CASE("a conference tells who talks and who was cut off") {
    Room room;
    room.add(1, 400).amplitude = 0;
    room.add(2, 700);
    room.run(1000);
    auto events = room.events();
    REQUIRE(events.size() == 1);
    CHECK(events[0].kind == engine::EventKind::active_talker);
    CHECK(events[0].stream == 7);
    CHECK(events[0].b == 2);
    CHECK(room[2].line->level_dbov.get() < 30);
    CHECK(room[1].line->level_dbov.get() == 127);
    room[2].amplitude = 0;
    room[1].amplitude = 3000;
    room.run(600);
    events = room.events();
    REQUIRE(events.size() == 1);
    CHECK(events[0].b == 1);
    room[1].line->hang_up();
    room.run(2000);
    events = room.events();
    REQUIRE(events.size() == 2);
    CHECK(events[0].kind == engine::EventKind::conference_left);
    CHECK(events[0].b == 1);
    CHECK(events[1].b == 0);
}

TEST_CASE("a member that neither speaks nor listens costs the others nothing") {
    Room room;
    room.add(1, 400);
    room.add(2, 700);
    const std::shared_ptr<ConferenceLine> deaf = room.add(3, 900).line;
    room.run(500);
    room[3].send_ms = 1'000'000;
    room.run(3000);
    CHECK(room[1].hears(700) > loud);
    room[3].send_ms = 20;
    room.run(40);
    room[3].heard.clear();
    room.run(1000);
    // What it hears first is not what was said seconds ago.
    CHECK(room[3].hears(400) > loud);
}

TEST_CASE("no member hears a click while others come and go") {
    Room room;
    std::mt19937 random(5);
    room.add(1, 300).amplitude = 0;
    room.add(2, 200);
    room.run(500);
    room[1].heard.clear();
    for (int n = 0; n < 50; ++n) {
        const std::uint64_t stream = 3 + random() % 10;
        room.remove(stream);
        if (random() % 2 == 0) room.add(stream, 0).amplitude = 0;
        room.run(5 * static_cast<std::int64_t>(random() % 20));
    }
    int largest = 0;
    for (std::size_t n = 1; n < room[1].heard.size(); ++n) {
        largest = std::max(largest, std::abs(room[1].heard[n] - room[1].heard[n - 1]));
    }
    // A sine of 200 Hz at 16 kHz moves by 236 at most.
    CHECK(largest < 300);
}
