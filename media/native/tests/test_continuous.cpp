// Streams that must be heard all the time: what fills their pauses, and how the packets are numbered.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "driven.hpp"

using namespace trunkline;
using tests::Driven;
using tests::Heard;
using tests::ms;
using tests::Peer;
using tests::towards;

namespace {

constexpr std::uint8_t noise_type = 13;
constexpr std::uint8_t event_type = 101;

/// A packet, and when it came.
struct Arrival {
    std::int64_t ns;
    Heard packet;

    bool silent() const {
        return std::all_of(packet.payload.begin(), packet.payload.end(),
                           [](std::uint8_t byte) { return byte == 0xff; });
    }
};

/// A far end of a driven engine: speaks packets of its own and keeps what it hears.
struct Party {
    explicit Party(Driven& bench) : driven(bench), stream(bench.media->open_stream(nullptr)) {}
    Party(Driven& bench, const Party& near)
        : driven(bench), stream(bench.media->open_stream(near.stream.get())) {}

    /// Say 20 ms that are not silent.
    void speak(bool marker = false) {
        say({.payload_type = 0, .marker = marker, .sequence = sequence, .timestamp = timestamp, .ssrc = 7},
            std::vector<std::uint8_t>(160, 0x55));
        timestamp += 160;
    }

    void say(const rtp::Header& header, const std::vector<std::uint8_t>& payload) {
        peer.send(stream->udp_port(), header, payload);
        ++sequence;
    }

    /// Let the timestamps go on, as in a pause.
    void pass(std::uint32_t for_ms) { timestamp += 8 * for_ms; }

    void listen() {
        while (!peer.hears_nothing(0)) {
            const auto packet = peer.hear(0);
            if (packet) heard.push_back({driven.now_ns, *packet});
        }
    }

    std::vector<Arrival> flush() {
        listen();
        return std::exchange(heard, {});
    }

    Driven& driven;
    Peer peer;
    std::shared_ptr<engine::StreamHandle> stream;
    std::uint16_t sequence = 100;
    std::uint32_t timestamp = 5000;
    std::vector<Arrival> heard;
};

/// Two parties of one call.
struct Call {
    explicit Call(const engine::MediaSettings& for_left = towards(1),
                  const engine::MediaSettings& for_right = towards(1)) {
        connect(left, for_left);
        connect(right, for_right);
        left.stream->link(*right.stream);
        run_for(0);
    }

    static void connect(Party& party, engine::MediaSettings settings) {
        settings.remote = *io::Address::parse("127.0.0.1", party.peer.udp_port());
        party.stream->connect(settings);
    }

    /// Let time pass, in steps by which what is heard is timed.
    void run_for(std::int64_t for_ms) {
        for (std::int64_t step = 0; step <= for_ms / 5; ++step) {
            driven.run_for(step == 0 ? 0 : 5 * ms);
            left.listen();
            right.listen();
        }
    }

    /// The left party says so many packets of 20 ms.
    void speak(int packets) {
        for (int n = 0; n < packets; ++n) {
            left.speak();
            run_for(20);
        }
    }

    Driven driven{0, true};
    Party left{driven};
    Party right{driven, left};
};

/// Numbers and times are those of one stream that never stops: one SSRC, sequence numbers without a hole,
/// timestamps that go on, no gap above `gap_ms`.
void check_unbroken(const std::vector<Arrival>& heard, std::int64_t gap_ms = 60) {
    REQUIRE(heard.size() > 1);
    for (std::size_t n = 1; n < heard.size(); ++n) {
        const rtp::Header& before = heard[n - 1].packet.header;
        const rtp::Header& header = heard[n].packet.header;
        CAPTURE(n);
        REQUIRE(header.ssrc == before.ssrc);
        REQUIRE(header.sequence == static_cast<std::uint16_t>(before.sequence + 1));
        REQUIRE(static_cast<std::int32_t>(header.timestamp - before.timestamp) >= 0);
        REQUIRE(heard[n].ns - heard[n - 1].ns <= gap_ms * ms);
    }
}

/// How far the last packet's timestamp is from the time since the first, in milliseconds.
std::int64_t drift_ms(const std::vector<Arrival>& heard) {
    const auto units = static_cast<std::int32_t>(heard.back().packet.header.timestamp -
                                                 heard.front().packet.header.timestamp);
    return units / 8 - (heard.back().ns - heard.front().ns) / ms;
}

std::size_t spoken(const std::vector<Arrival>& heard) {
    return static_cast<std::size_t>(
        std::count_if(heard.begin(), heard.end(), [](const Arrival& arrival) { return !arrival.silent(); }));
}

}  // namespace

TEST_CASE("continuous: a stream with nothing to send sends silence") {
    Driven driven{0, true};
    Party party{driven};
    Call::connect(party, towards(1));
    for (int n = 0; n < 200; ++n) {
        driven.run_for(5 * ms);
        party.listen();
    }
    const auto heard = party.flush();
    CHECK(heard.size() >= 49);
    check_unbroken(heard, 20);
    CHECK(spoken(heard) == 0);
    CHECK(heard.front().packet.header.marker);
    CHECK_FALSE(heard.back().packet.header.marker);
    CHECK(drift_ms(heard) == 0);
}

TEST_CASE("continuous: other engines send nothing of their own") {
    Driven driven;
    Party party{driven};
    Call::connect(party, towards(1));
    driven.run_for(1000 * ms);
    CHECK(party.flush().empty());
}

TEST_CASE("continuous: a stream that may not send is silent, and its clock goes on") {
    Call call;
    call.run_for(200);
    call.left.flush();
    engine::MediaSettings held = towards(1);
    held.send = false;
    const auto before = [&] {
        call.run_for(20);
        return call.left.flush().back();
    }();
    Call::connect(call.left, held);
    call.run_for(0);
    call.left.flush();
    call.run_for(1000);
    CHECK(call.left.flush().empty());
    Call::connect(call.left, towards(1));
    call.run_for(100);
    const auto heard = call.left.flush();
    REQUIRE(!heard.empty());
    const auto& after = heard.front();
    CHECK(after.packet.header.sequence == static_cast<std::uint16_t>(before.packet.header.sequence + 1));
    const std::int64_t passed_ms = (after.ns - before.ns) / ms;
    CHECK(std::abs((after.packet.header.timestamp - before.packet.header.timestamp) / 8 - passed_ms) <= 20);
}

TEST_CASE("continuous: two parties that say nothing hear silence") {
    Call call;
    call.run_for(1000);
    for (Party* party : {&call.left, &call.right}) {
        const auto heard = party->flush();
        CHECK(heard.size() >= 48);
        check_unbroken(heard);
        CHECK(drift_ms(heard) == 0);
    }
}

TEST_CASE("continuous: the pauses of the other party are filled") {
    Call call;
    call.speak(50);
    call.right.flush();
    call.speak(1);
    for (int pauses = 0; pauses < 20; ++pauses) {
        call.run_for(500 + 5 * pauses);
        call.left.pass(500 + 5 * static_cast<std::uint32_t>(pauses));
        call.speak(10);
    }
    const auto heard = call.right.flush();
    check_unbroken(heard);
    CHECK(spoken(heard) == 1 + 20 * 10);
    CHECK(std::abs(drift_ms(heard)) <= 20);
}

TEST_CASE("continuous: jitter is no pause") {
    Call call;
    std::int64_t late_ms = 0;
    for (int n = 0; n < 500; ++n) {
        const std::int64_t before_ms = std::exchange(late_ms, n % 4 == 3 ? 15 : 0);
        call.run_for(20 + late_ms - before_ms);
        call.left.speak();
    }
    const auto heard = call.right.flush();
    check_unbroken(heard);
    // The first late ones tell how much jitter there is.
    CHECK(heard.size() - spoken(heard) <= 4);
}

TEST_CASE("continuous: audio that comes late goes on at most 100 ms behind, and catches up in a pause") {
    Call call;
    call.speak(50);
    call.right.flush();
    // The network holds back 300 ms of it.
    call.run_for(300);
    for (int n = 0; n < 15; ++n)
        call.left.speak();
    call.run_for(0);
    call.speak(50);
    auto heard = call.right.flush();
    check_unbroken(heard);
    const std::size_t kept = spoken(heard);
    CHECK(kept >= 50 + 4);
    CHECK(kept < 50 + 15);
    CHECK(drift_ms(heard) <= 100);
    CHECK(drift_ms(heard) > 40);
    const auto first = heard.front();
    call.run_for(400);
    call.left.pass(400);
    call.speak(10);
    heard = call.right.flush();
    check_unbroken(heard);
    heard.insert(heard.begin(), first);
    CHECK(std::abs(drift_ms(heard)) <= 20);
}

TEST_CASE("continuous: a party whose timestamps stand still in its pauses is heard") {
    for (const bool marker : {true, false}) {
        Call call;
        call.speak(50);
        call.right.flush();
        call.run_for(1000);
        call.left.speak(marker);
        call.run_for(20);
        call.speak(49);
        const auto heard = call.right.flush();
        check_unbroken(heard);
        CAPTURE(marker);
        CHECK(spoken(heard) >= (marker ? 50 : 43));
    }
}

TEST_CASE("continuous: a press in a pause is one event, with nothing in between") {
    Call call;
    call.speak(50);
    call.run_for(500);
    call.left.pass(500);
    call.right.flush();
    const std::uint32_t pressed_at = call.left.timestamp;
    for (std::uint16_t n = 1; n <= 8; ++n) {
        call.run_for(20);
        const std::uint16_t units = static_cast<std::uint16_t>(160 * std::min<int>(n, 6));
        const std::uint8_t end = n >= 6 ? 0x80 : 0;
        call.left.say({.payload_type = event_type,
                       .marker = n == 1,
                       .sequence = call.left.sequence,
                       .timestamp = pressed_at,
                       .ssrc = 7},
                      {5, static_cast<std::uint8_t>(end | 10), static_cast<std::uint8_t>(units >> 8),
                       static_cast<std::uint8_t>(units)});
    }
    call.run_for(0);
    auto heard = call.right.flush();
    std::set<std::uint32_t> timestamps;
    const auto is_event = [](const Arrival& arrival) {
        return arrival.packet.header.payload_type == event_type;
    };
    const auto first = std::find_if(heard.begin(), heard.end(), is_event);
    REQUIRE(std::count_if(heard.begin(), heard.end(), is_event) == 8);
    CHECK(std::all_of(first, heard.end(), is_event));
    for (auto at = first; at != heard.end(); ++at)
        timestamps.insert(at->packet.header.timestamp);
    CHECK(timestamps.size() == 1);
    // Silence follows once the last of its packets must have come.
    call.run_for(300);
    heard = call.right.flush();
    CHECK(heard.size() >= 8);
    CHECK(spoken(heard) == 0);
}

TEST_CASE("continuous: silence is sent between the keys of our own too") {
    for (const bool talking : {false, true}) {
        CAPTURE(talking);
        Call call;
        call.speak(50);
        if (!talking) call.run_for(500);
        call.right.flush();
        auto keys = std::make_unique<engine::DtmfText>();
        keys->digits = "1W2w3";
        keys->duration_ms = 160;
        keys->gap_ms = 80;
        call.right.stream->send_dtmf(std::move(keys));
        if (talking) {
            call.speak(150);
        } else {
            call.run_for(3000);
        }
        const auto heard = call.right.flush();
        check_unbroken(heard);
        std::set<std::uint32_t> presses;
        for (const Arrival& arrival : heard)
            if (arrival.packet.header.payload_type == event_type)
                presses.insert(arrival.packet.header.timestamp);
        REQUIRE(presses.size() == 3);
        // The presses are as far apart as they were asked to be: 160 ms long, with 80 ms behind them.
        const std::vector<std::uint32_t> begun(presses.begin(), presses.end());
        CHECK((begun[1] - begun[0]) / 8 >= 160 + 80 + 1000 - 20);
        CHECK((begun[2] - begun[1]) / 8 >= 160 + 80 + 500 - 20);
        CHECK(std::abs(drift_ms(heard)) <= 60);
        // What the linked party says is heard between the keys.
        const auto audio = std::count_if(heard.begin(), heard.end(), [](const Arrival& arrival) {
            return arrival.packet.header.payload_type == 0 && !arrival.silent();
        });
        CHECK(audio >= (talking ? 80 : 0));
        CHECK(audio <= (talking ? 150 : 0));
    }
}

TEST_CASE("continuous: a far end that takes comfort noise gets its description each second") {
    auto settings = towards(1);
    settings.noise_type = noise_type;
    Call call(towards(1), settings);
    call.speak(10);
    call.right.flush();
    call.run_for(3500);
    const auto heard = call.right.flush();
    const auto described = std::count_if(heard.begin(), heard.end(), [](const Arrival& arrival) {
        return arrival.packet.header.payload_type == noise_type;
    });
    CHECK(described == 4);
    // Silence until then.
    CHECK(heard.size() <= 4 + 12);
    check_unbroken(heard, 1000);
}

TEST_CASE("continuous: noise that the other party described is described again") {
    auto settings = towards(1);
    settings.noise_type = noise_type;
    Call call(settings, settings);
    call.speak(10);
    call.left.say({.payload_type = noise_type,
                   .marker = false,
                   .sequence = call.left.sequence,
                   .timestamp = call.left.timestamp,
                   .ssrc = 7},
                  {61});
    call.right.flush();
    call.run_for(2500);
    const auto heard = call.right.flush();
    CHECK(heard.size() == 3);
    for (const Arrival& arrival : heard) {
        CHECK(arrival.packet.header.payload_type == noise_type);
        CHECK(arrival.packet.payload == std::vector<std::uint8_t>{61});
    }
}

TEST_CASE("continuous: pauses of audio that is packed anew are filled too") {
    auto settings = towards(1);
    settings.ptime_ms = 40;
    Call call(towards(1), settings);
    call.speak(50);
    call.right.flush();
    for (int pauses = 0; pauses < 5; ++pauses) {
        call.run_for(700);
        call.left.pass(700);
        call.speak(10);
    }
    const auto heard = call.right.flush();
    check_unbroken(heard, 100);
    CHECK(std::abs(drift_ms(heard)) <= 60);
    CHECK(spoken(heard) >= 5 * 4);
}

TEST_CASE("continuous: silence that is sent is no sign of life of the far end") {
    Call call;
    call.left.stream->set_media_timeout(500 * ms, 0);
    call.run_for(0);
    call.driven.events();
    call.run_for(1000);
    const auto events = call.driven.events();
    CHECK(std::count(events.begin(), events.end(), engine::EventKind::media_timeout) == 1);
}
