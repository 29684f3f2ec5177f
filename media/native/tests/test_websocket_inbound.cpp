// The reading end of a WebSocket: messages, audio among them, order and limits.

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "trunkline/text/base64.hpp"
#include "trunkline/websocket/inbound.hpp"
#include "websocket_peer.hpp"

using namespace trunkline;
using namespace trunkline::websocket;
using tests::ms;
using tests::server_frame;
using tests::server_text;

namespace {

/// Takes notes of what comes.
class Notes final : public InboundListener {
  public:
    bool audio(std::span<const std::uint8_t> bytes, bool base64) override {
        std::vector<std::uint8_t> decoded(bytes.begin(), bytes.end());
        if (base64) {
            decoded.resize(bytes.size());
            const auto size = text::from_base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                                decoded.data());
            if (!size) return false;
            decoded.resize(*size);
        }
        if (decoded.size() % 2 != 0) return false;
        seen.push_back("audio " + std::string(decoded.begin(), decoded.end()));
        return true;
    }
    void message(MessageKind kind, std::uint16_t code, std::span<const std::uint8_t> bytes) override {
        static const char* const names[] = {"",           "text ",  "binary ",  "pong ", "close ",
                                            "violation ", "abuse ", "stalled ", "lost "};
        std::string note = names[static_cast<std::size_t>(kind)];
        if (code != 0) note += std::to_string(code) + " ";
        seen.push_back(note + std::string(bytes.begin(), bytes.end()));
    }
    void ping(std::span<const std::uint8_t> payload) override {
        seen.push_back("ping " + std::string(payload.begin(), payload.end()));
    }

    std::vector<std::string> taken() { return std::exchange(seen, {}); }

    std::vector<std::string> seen;
};

struct Reader {
    explicit Reader(std::size_t max_message_bytes = 1 << 20) : inbound(max_message_bytes, notes) {}

    void read(const std::vector<std::uint8_t>& bytes) { inbound.receive(bytes, now_ns); }

    void learn(std::string before, std::string after) {
        inbound.learn(before, after);
        inbound.play(true);
    }

    Notes notes;
    Inbound inbound;
    std::int64_t now_ns = 1000 * ms;
};

using Seen = std::vector<std::string>;

std::vector<std::uint8_t> operator+(std::vector<std::uint8_t> first,
                                    const std::vector<std::uint8_t>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

const std::vector<std::uint8_t> audio_ab = server_text("<YWI=>");
const std::vector<std::uint8_t> audio_cd = server_text("<Y2Q=>");

}  // namespace

TEST_CASE("messages are passed on whole, however they are cut") {
    const auto bytes = server_text("one") + server_frame(0x01, "tw") + server_frame(0x89, "now") +
                       server_frame(0x00, "") + server_frame(0x80, "o") + server_frame(0x82, "three");
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
        CAPTURE(piece);
        Reader reader;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            const auto end = std::min(at + piece, bytes.size());
            reader.read({bytes.begin() + static_cast<std::ptrdiff_t>(at),
                         bytes.begin() + static_cast<std::ptrdiff_t>(end)});
        }
        CHECK(reader.notes.taken() == Seen{"text one", "ping now", "text two", "binary three"});
    }
}

TEST_CASE("breaches of the protocol end the reading with their code") {
    struct Breach {
        std::vector<std::uint8_t> bytes;
        std::string note;
    };
    const Breach breaches[] = {
        {server_frame(0x01, "x") + server_text("y"), "violation 1002 fragments out of order"},
        {server_frame(0x80, "x"), "violation 1002 fragments out of order"},
        {server_frame(0xc1, "x"), "violation 1002 reserved bit set"},
        {server_frame(0x92, "x"), "violation 1002 reserved bit set"},
        {server_frame(0x83, "x"), "violation 1002 unknown frame"},
        {server_frame(0x8b, ""), "violation 1002 unknown frame"},
        {server_frame(0x09, "x"), "violation 1002 invalid control frame"},
        {server_frame(0x89, std::string(126, 'x')), "violation 1002 invalid control frame"},
        {{0x81, 0x81, 0, 0, 0, 0, 'x'}, "violation 1002 masked frame"},
        {server_frame(0x88, "x"), "violation 1002 invalid close code"},
        {server_frame(0x88, "\x03\xe7"), "violation 1002 invalid close code"},
        {server_frame(0x88, "\x03\xe8\xff"), "violation 1007 invalid close reason"},
        {server_text(std::string(101, 'x')), "violation 1009 message too long"},
        {server_frame(0x01, std::string(60, 'x')) + server_frame(0x80, std::string(60, 'x')),
         "violation 1009 message too long"},
        {{0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "violation 1009 message too long"},
        {{'G', 'E', 'T'}, "violation 1002 reserved bit set"},
    };
    for (const Breach& breach : breaches) {
        CAPTURE(breach.note);
        Reader reader(100);
        reader.read(breach.bytes + server_text("later"));
        CHECK(reader.notes.taken() == Seen{breach.note});
        reader.read(server_text("later still"));
        CHECK(reader.notes.taken().empty());
        CHECK(reader.inbound.wants_more());
    }
}

TEST_CASE("a message of exactly the limit is read") {
    Reader reader(100);
    reader.read(server_text(std::string(100, 'x')) + server_frame(0x01, std::string(99, 'y')) +
                server_frame(0x80, "z"));
    CHECK(reader.notes.taken() ==
          Seen{"text " + std::string(100, 'x'), "text " + std::string(99, 'y') + "z"});
}

TEST_CASE("a close frame is the last thing that counts") {
    Reader reader;
    reader.read(server_frame(0x88,
                             "\x0f\xa3"
                             "bye") +
                server_text("late"));
    CHECK(reader.notes.taken() == Seen{"close 4003 bye"});
    Reader silent;
    silent.read(server_frame(0x88, ""));
    CHECK(silent.notes.taken() == Seen{"close "});
}

TEST_CASE("frames that look like earlier audio are played at once") {
    Reader reader;
    reader.read(audio_ab);
    CHECK(reader.notes.taken() == Seen{"text <YWI=>"});
    reader.learn("<", ">");
    reader.inbound.handled(0, reader.now_ns);
    reader.read(audio_ab + audio_cd);
    CHECK(reader.notes.taken() == Seen{"audio ab", "audio cd"});
}

TEST_CASE("what only looks like audio is a message") {
    // No base64, half a sample, no payload that ends the same way, fragments, and a binary frame.
    for (const auto& bytes :
         {server_text("<YWI\">"), server_text("<YWJj>"), server_text("<YWI=]"), server_text("<"),
          server_frame(0x01, "<YW") + server_frame(0x80, "I=>"), server_frame(0x82, "ab")}) {
        Reader reader;
        reader.learn("<", ">");
        reader.read(bytes);
        const auto seen = reader.notes.taken();
        REQUIRE(seen.size() == 1);
        CHECK(seen[0].rfind("audio", 0) == std::string::npos);
    }
}

TEST_CASE("binary frames are audio where nothing is around it, but for empty ones") {
    Reader reader;
    reader.learn("", "");
    reader.read(server_frame(0x82, "abcd") + server_frame(0x82, "abc") + server_frame(0x82, ""));
    CHECK(reader.notes.taken() == Seen{"audio abcd", "binary abc", "binary "});
    reader.read(server_text("x"));
    CHECK(reader.notes.taken() == Seen{"text x"});
}

TEST_CASE("audio behind a message waits until that is handled") {
    Reader reader;
    reader.learn("<", ">");
    reader.read(audio_ab + server_text("mark") + server_text("clear") + server_frame(0x89, "p") + audio_cd +
                server_text("end"));
    CHECK(reader.notes.taken() == Seen{"audio ab", "text mark", "text clear", "ping p"});
    CHECK(!reader.inbound.wants_more());
    reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken().empty());
    reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken() == Seen{"audio cd", "text end"});
    CHECK(reader.inbound.wants_more());
}

TEST_CASE("audio is a message while there is nothing to play it, or it is no longer known") {
    Reader reader;
    reader.learn("<", ">");
    reader.inbound.play(false);
    reader.read(audio_ab);
    CHECK(reader.notes.taken() == Seen{"text <YWI=>"});
    reader.inbound.handled(0, reader.now_ns);
    reader.inbound.play(true);
    reader.read(audio_ab);
    CHECK(reader.notes.taken() == Seen{"audio ab"});
    reader.inbound.unlearn();
    reader.read(audio_ab);
    CHECK(reader.notes.taken() == Seen{"text <YWI=>"});
}

TEST_CASE("few messages are on their way at the same time") {
    Reader reader;
    for (int n = 0; n < 100; ++n)
        reader.read(server_text("x"));
    CHECK(reader.notes.taken().size() == Inbound::max_unhandled);
    CHECK(!reader.inbound.wants_more());
    for (int n = 0; n < 100; ++n)
        reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken().size() == 100 - Inbound::max_unhandled);
    CHECK(reader.inbound.wants_more());
}

TEST_CASE("long messages count for many") {
    Reader reader;
    const auto message = server_text(std::string(200'000, 'x'));
    reader.read(message + message);
    CHECK(reader.notes.taken().size() == 1);
    reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken().size() == 1);
}

TEST_CASE("a pong is reported once for each ping") {
    Reader reader;
    reader.read(server_frame(0x8a, ""));
    CHECK(reader.notes.taken().empty());
    reader.inbound.expect_pong();
    reader.read(server_frame(0x8a, "") + server_frame(0x8a, ""));
    CHECK(reader.notes.taken() == Seen{"pong "});
}

TEST_CASE("after our close frame only the answer to it counts") {
    Reader reader;
    reader.learn("<", ">");
    reader.read(server_text("first") + audio_ab);
    CHECK(reader.notes.taken() == Seen{"text first"});
    reader.inbound.close(reader.now_ns);
    reader.read(server_text("late") + audio_cd + server_frame(0x89, "x") + server_frame(0x01, "a") +
                server_frame(0x80, "b") + server_frame(0x88, "\x03\xe8"));
    CHECK(reader.notes.taken() == Seen{"close 1000 "});
}

TEST_CASE("a flood of bytes rests and goes on, and loses nothing") {
    Reader reader;
    reader.learn("<", ">");
    const auto frame = server_text("<" + std::string(40'000, 'A') + ">");
    int sent = 0;
    for (; reader.inbound.wants_more(); ++sent)
        reader.read(frame);
    CHECK(sent > 20);
    CHECK(sent < 30);
    CHECK(reader.inbound.paused());
    reader.inbound.resume(reader.now_ns + 10 * ms);
    CHECK(reader.inbound.paused());
    reader.inbound.resume(reader.now_ns + 60 * ms);
    CHECK(!reader.inbound.paused());
    CHECK(reader.notes.taken().size() == static_cast<std::size_t>(sent));
}

TEST_CASE("more frames at once than an agent has use for are abuse") {
    Reader reader;
    std::vector<std::uint8_t> flood;
    for (int n = 0; n < 8000; ++n)
        flood.insert(flood.end(), {0x8a, 0});
    reader.read(flood);
    CHECK(reader.notes.taken() == Seen{"abuse 1008 too many frames"});
    CHECK(reader.inbound.wants_more());
}

TEST_CASE("a thousand pings are borne") {
    Reader reader;
    std::vector<std::uint8_t> pings;
    for (int n = 0; n < 1000; ++n)
        pings = pings + server_frame(0x89, "1234");
    reader.read(pings);
    for (int n = 0; n < 20 && reader.inbound.paused(); ++n)
        reader.inbound.resume(reader.now_ns += 60 * ms);
    CHECK(reader.notes.taken().size() == 1000);
}

TEST_CASE("messages that take long leave most of the time to others") {
    Reader reader;
    reader.read(server_text("x"));
    reader.inbound.handled(200 * ms, reader.now_ns);
    CHECK(reader.inbound.paused());
    std::int64_t waited_ns = 0;
    while (reader.inbound.paused()) {
        waited_ns += 5 * ms;
        reader.inbound.resume(reader.now_ns + waited_ns);
    }
    CHECK(waited_ns > 400 * ms);
}

TEST_CASE("random bytes end in a violation or in waiting, never elsewhere") {
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
        Reader reader(4096);
        reader.learn(round % 2 == 0 ? "<" : "", round % 2 == 0 ? ">" : "");
        for (int part = 0; part < 20; ++part) {
            std::vector<std::uint8_t> bytes(random() % 200);
            for (auto& byte : bytes)
                byte = static_cast<std::uint8_t>(random());
            reader.read(bytes);
            reader.inbound.handled(0, reader.now_ns);
        }
        std::size_t ends = 0;
        for (const auto& note : reader.notes.taken())
            ends += note.rfind("violation", 0) == 0 || note.rfind("close", 0) == 0 ? 1 : 0;
        CHECK(ends <= 1);
    }
}

TEST_CASE("audio that waits is searched for again only when all messages before it are handled") {
    Reader reader;
    const auto describe = [](const char* place) {
        const std::vector<AudioEvent::Member> members{{place, AudioEvent::Kind::audio, "", 0}};
        return std::make_unique<AudioEvent>(members, false);
    };
    auto event = describe("/a");
    reader.inbound.learn(event);
    reader.inbound.play(true);
    const std::string audio = R"({"a":"YWI="})";
    reader.read(server_text("one") + server_text("two") + server_text(audio) + server_text("three"));
    CHECK(reader.notes.taken() == Seen{"text one", "text two"});
    event = describe("/b");
    reader.inbound.learn(event);
    reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken().empty());
    reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken() == Seen{"text " + audio, "text three"});
}

TEST_CASE("audio by its description is played at once, in its order among the messages") {
    Reader reader;
    const auto describe = [](std::uint64_t least, bool binary) {
        using Kind = AudioEvent::Kind;
        return std::make_unique<AudioEvent>(
            std::vector<AudioEvent::Member>{{"/a", Kind::audio, "", 0}, {"/n", Kind::at_least, "", least}},
            binary);
    };
    auto event = describe(1, false);
    reader.inbound.learn(event);
    CHECK(event == nullptr);
    const auto audio = server_text(R"({"n":1,"a":"YWI="})");
    reader.read(audio);
    CHECK(reader.notes.taken() == Seen{R"(text {"n":1,"a":"YWI="})"});
    reader.inbound.handled(0, reader.now_ns);
    reader.inbound.play(true);
    reader.read(audio + server_text("one") + audio + audio);
    CHECK(reader.notes.taken() == Seen{"audio ab", "text one"});
    // What comes next is another's audio now.
    event = describe(2, false);
    reader.inbound.learn(event);
    CHECK(event != nullptr);
    reader.inbound.handled(0, reader.now_ns);
    CHECK(reader.notes.taken() == Seen{R"(text {"n":1,"a":"YWI="})", R"(text {"n":1,"a":"YWI="})"});
    reader.inbound.handled(0, reader.now_ns);
    reader.inbound.handled(0, reader.now_ns);
    const std::string later = R"({"n":2,"a":"Y2Q="})";
    reader.read(server_text(later) + server_frame(0x82, later));
    CHECK(reader.notes.taken() == Seen{"audio cd", "binary " + later});
    event = describe(2, true);
    reader.inbound.learn(event);
    reader.inbound.handled(0, reader.now_ns);
    reader.read(server_frame(0x82, later) + server_frame(0x01, later) + server_frame(0x80, ""));
    CHECK(reader.notes.taken() == Seen{"audio cd", "text " + later});
    reader.inbound.handled(0, reader.now_ns);
    for (const char* payload : {"YWI", "Y", "YW=I", "YWI=YWI=", "YQ==", "Y-I="}) {
        const std::string wrong = R"({"n":2,"a":")" + std::string(payload) + "\"}";
        reader.read(server_text(wrong));
        CHECK(reader.notes.taken() == Seen{"text " + wrong});
        reader.inbound.handled(0, reader.now_ns);
    }
    reader.inbound.unlearn();
    reader.read(server_text(later));
    CHECK(reader.notes.taken() == Seen{"text " + later});
}
