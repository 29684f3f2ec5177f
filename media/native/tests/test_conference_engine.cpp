// Conferences whose members live on several threads of a real engine.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "peer.hpp"
#include "support.hpp"
#include "trunkline/dsp/g711.hpp"

using namespace trunkline;
using engine::ConferenceHandle;
using engine::EventKind;
using engine::Participation;
using engine::StreamHandle;
using tests::Bench;

namespace {

/// Tones that say who is heard: a party sends one and looks for the others.
struct Party {
    explicit Party(Bench& bench, double tone_hz) : stream(bench.open()), freq_hz(tone_hz) {
        stream->connect(tests::towards(peer.udp_port()));
    }

    void say() {
        std::vector<std::int16_t> samples(160);
        for (std::int16_t& sample : samples) {
            sample = static_cast<std::int16_t>(
                4000 * std::sin(2 * std::numbers::pi * freq_hz * static_cast<double>(said++) / 8000));
        }
        std::vector<std::uint8_t> payload(160);
        dsp::encode(dsp::Law::mu, samples, payload.data());
        peer.send(stream->udp_port(), {0, false, sequence++, static_cast<std::uint32_t>(said), 5}, payload);
    }

    void hear() {
        while (const auto packet = peer.hear(0)) {
            std::vector<std::int16_t> samples(packet->payload.size());
            dsp::decode(dsp::Law::mu, packet->payload, samples.data());
            heard.insert(heard.end(), samples.begin(), samples.end());
        }
    }

    double hears(const Party& other) const {
        if (heard.size() < 4000) return 0;
        return tests::amplitude_at(std::span(heard).last(4000), other.freq_hz, 8000);
    }

    tests::Peer peer;
    std::shared_ptr<StreamHandle> stream;
    double freq_hz;
    std::uint64_t said = 0;
    std::uint16_t sequence = 0;
    std::vector<std::int16_t> heard;
};

void talk(Bench& bench, std::vector<std::unique_ptr<Party>>& parties, int frames) {
    auto due = std::chrono::steady_clock::now();
    for (int n = 0; n < frames; ++n) {
        for (const auto& party : parties) {
            party->say();
            party->hear();
        }
        bench.fetch(0);
        std::this_thread::sleep_until(due += std::chrono::milliseconds(20));
    }
}

}  // namespace

TEST_CASE("members on two threads hear one another, and the conference is recorded") {
    Bench bench(2, 100);
    const auto path =
        std::filesystem::temp_directory_path() / ("conference-" + std::to_string(getpid()) + ".wav");
    auto conference = bench.media->open_conference(8000);
    std::vector<std::unique_ptr<Party>> parties;
    for (const double freq_hz : {400.0, 700.0, 1100.0}) {
        parties.push_back(std::make_unique<Party>(bench, freq_hz));
        REQUIRE(conference->add(parties.back()->stream, {}));
    }
    engine::RecordingOptions options;
    options.layout.channels = 1;
    REQUIRE(conference->start_recording(99, path.string(), options) == 0);
    // On a slow machine it takes longer until half a second was heard without a stall.
    bool all_heard = false;
    for (int turn = 0; turn < 5 * tests::patience() && !all_heard; ++turn) {
        talk(bench, parties, 100);
        all_heard = true;
        for (const auto& one : parties) {
            for (const auto& other : parties) {
                const double heard = one->hears(*other);
                all_heard = all_heard && (one == other ? heard < 150 : heard > 3000);
            }
        }
    }
    CHECK(all_heard);
    CHECK(bench.expect(EventKind::active_talker));
    SUBCASE("a stream that is closed has left") {
        const std::uint64_t id = parties[0]->stream->id();
        parties[0]->stream->close();
        const auto left = bench.expect(EventKind::conference_left);
        REQUIRE(left);
        CHECK(left->b == id);
        CHECK(left->stream == conference->id());
    }
    SUBCASE("who was removed hears nothing more") {
        conference->remove(parties[0]->stream->id());
        talk(bench, parties, 10);
        parties[0]->heard.clear();
        talk(bench, parties, 20);
        CHECK(parties[0]->heard.empty());
    }
    conference->close();
    const auto finished = bench.expect(EventKind::recording_finished);
    REQUIRE(finished);
    CHECK(finished->stream == 99);
    CHECK(finished->b >= 1900);
    std::filesystem::remove(path);
}

TEST_CASE("a conference refuses what makes no sense") {
    Bench bench(1, 100);
    CHECK_THROWS_AS(bench.media->open_conference(44100), std::invalid_argument);
    auto conference = bench.media->open_conference(16000);
    auto one = bench.open();
    auto other = bench.open();
    REQUIRE(conference->add(one, {}));
    CHECK_THROWS_AS(conference->add(one, {}), std::invalid_argument);
    CHECK_THROWS_AS(conference->change(other->id(), {}), std::invalid_argument);
    Participation whispering;
    whispering.whisper_to = {other->id()};
    CHECK_THROWS_AS(conference->add(other, whispering), std::invalid_argument);
    conference->remove(other->id());
    CHECK(conference->levels().size() == 1);
    conference->close();
    conference->close();
    CHECK(conference->add(one, {}));
    CHECK(conference->levels().empty());
}

TEST_CASE("a conference takes as many members as it has places") {
    Bench bench(2, 600);
    auto conference = bench.media->open_conference(8000);
    std::vector<std::shared_ptr<StreamHandle>> streams;
    for (std::size_t n = 0; n < engine::Conference::max_members; ++n) {
        streams.push_back(bench.open());
        REQUIRE(conference->add(streams.back(), {}));
    }
    auto late = bench.open();
    CHECK_FALSE(conference->add(late, {}));
    streams[5]->close();
    CHECK(conference->add(late, {}));
}

TEST_CASE("members join, change, leave and die in any order") {
    std::mt19937 random(3);
    const auto path =
        std::filesystem::temp_directory_path() / ("conference-stress-" + std::to_string(getpid()));
    {
        Bench bench(3, 200);
        std::vector<std::shared_ptr<ConferenceHandle>> conferences;
        std::vector<std::shared_ptr<StreamHandle>> streams;
        std::uint64_t id = 1'000'000;
        for (int step = 0; step < 4000; ++step) {
            if (conferences.size() < 2)
                conferences.push_back(bench.media->open_conference(random() % 2 == 0 ? 8000 : 16000));
            if (streams.size() < 20) {
                streams.push_back(bench.open());
                // Members talk to one another through their sockets: what one hears another says.
                streams.back()->connect(tests::towards(streams[random() % streams.size()]->udp_port()));
                continue;
            }
            auto& conference = conferences[random() % conferences.size()];
            auto& stream = streams[random() % streams.size()];
            Participation participation;
            participation.listen_only = random() % 4 == 0;
            participation.muted = random() % 4 == 0;
            if (random() % 4 == 0) participation.whisper_to = {streams[random() % streams.size()]->id()};
            switch (random() % 12) {
                case 0:
                    stream->close();
                    std::swap(stream, streams.back());
                    streams.pop_back();
                    break;
                case 1:
                    if (random() % 20 == 0) {
                        conference->close();
                        std::swap(conference, conferences.back());
                        conferences.pop_back();
                    }
                    break;
                case 2:
                    conference->play(tests::playback(++id, tests::tone(500, 8000, 2000), 1));
                    break;
                case 3:
                    conference->stop_playback();
                    break;
                case 4: {
                    engine::RecordingOptions options;
                    options.layout.channels = 1;
                    if (random() % 8 == 0) conference->start_recording(++id, path.string(), options);
                    if (random() % 8 == 0) conference->stop_recording();
                    break;
                }
                case 5:
                case 6:
                    conference->remove(stream->id());
                    break;
                default:
                    try {
                        if (random() % 3 == 0) {
                            conference->change(stream->id(), participation);
                        } else {
                            for (auto& other : conferences) {
                                if (other != conference) other->remove(stream->id());
                            }
                            conference->add(stream, participation);
                        }
                    } catch (const std::invalid_argument&) {
                        // A member already, or none, or a whisper to nobody.
                    }
            }
            if (step % 20 == 0) bench.fetch(5);
        }
        CHECK(bench.media->figures().events_dropped == 0);
    }
    std::filesystem::remove(path);
}
