// Messages of JSON that hold audio: what is one of those described, and what is left to others.

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "trunkline/websocket/audio_event.hpp"

using trunkline::websocket::AudioEvent;
using Kind = AudioEvent::Kind;

namespace {

std::string found(const AudioEvent& event, const std::string& text) {
    const auto audio = event.find({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return audio ? std::string(audio->begin(), audio->end()) : "-";
}

const AudioEvent delta({{"/delta", Kind::audio, "", 0},
                        {"/type", Kind::equal, "\"d\"", 0},
                        {"/index", Kind::equal, "0", 0}},
                       false);
const AudioEvent numbered({{"/event/audio", Kind::audio, "", 0}, {"/event/id", Kind::at_least, "", 5}},
                          false);
const AudioEvent parts({{"/turn/parts/0/data", Kind::audio, "", 0},
                        {"", Kind::alone, "", 0},
                        {"/turn/parts", Kind::alone, "", 0}},
                       true);

}  // namespace

TEST_CASE("audio is found wherever its members stand, whatever stands beside them") {
    for (
        const char* text : {
            R"({"type":"d","index":0,"delta":"QUJD"})",
            R"({"delta":"QUJD","index":0,"type":"d"})",
            "\n{ \"type\" : \"d\" ,\t\"index\":0, \"delta\": \"QUJD\" }\r\n",
            R"({"id":"e_1","type":"d","index":0,"n":[1,-2.5e+3,[],{}],"t":[true,false,null],"delta":"QUJD"})",
            R"({"x":{"type":"other","delta":"AAAA"},"type":"d","index":0,"delta":"QUJD"})",
            R"({"x":"\"delta\":\"AAAA\" \\ \u00e9 \ud83d\ude00","type":"d","index":0,"delta":"QUJD"})",
            "{\"x\":\"\xe0\xa4\xa8\",\"type\":\"d\",\"index\":0,\"delta\":\"QUJD\"}",
        }) {
        CAPTURE(text);
        CHECK(found(delta, text) == "QUJD");
    }
}

TEST_CASE("a message that is doubtful, or says something else, is none") {
    for (const char* text : {
             "",
             " ",
             "x",
             "[]",
             "\"d\"",
             "{}",
             R"({"type":"d","index":0})",
             R"({"type":"e","index":0,"delta":"QUJD"})",
             R"({"type":"d","index":1,"delta":"QUJD"})",
             R"({"type":"d","index":"0","delta":"QUJD"})",
             R"({"type":"d","index":0.0,"delta":"QUJD"})",
             R"({"type":"d","index":-0,"delta":"QUJD"})",
             R"({"type":"d","index":0,"delta":""})",
             R"({"type":"d","index":0,"delta":null})",
             R"({"type":"d","index":0,"delta":["QUJD"]})",
             R"({"type":["d"],"index":0,"delta":"QUJD"})",
             R"({"type":"\u0064","index":0,"delta":"QUJD"})",
             R"({"t\u0079pe":"d","type":"d","index":0,"delta":"QUJD"})",
             R"({"type":"d","type":"e","index":0,"delta":"QUJD"})",
             R"({"type":"d","index":0,"delta":"QUJD","delta":"AAAA"})",
             R"({"x":{"type":"d","index":0,"delta":"QUJD"}})",
             R"([{"type":"d","index":0,"delta":"QUJD"}])",
             R"({"type":"d","index":0,"delta":"QUJD"} x)",
             R"({"type":"d","index":0,"delta":"QUJD"}{})",
             R"({"type":"d","index":0,"delta":"QUJD",})",
             R"({"type":"d","index":0,"delta":"QUJD")",
             R"({"type":"d","index":0,"delta":"QUJD)",
             R"({"type":"d" "index":0,"delta":"QUJD"})",
             R"({"type":"d","index":00,"delta":"QUJD"})",
             R"({"x":01,"type":"d","index":0,"delta":"QUJD"})",
             R"({"x":NaN,"type":"d","index":0,"delta":"QUJD"})",
             R"({"x":[1,],"type":"d","index":0,"delta":"QUJD"})",
             R"({"x":"\x","type":"d","index":0,"delta":"QUJD"})",
             R"({"x":"\u12g4","type":"d","index":0,"delta":"QUJD"})",
             "{\"x\":\"\n\",\"type\":\"d\",\"index\":0,\"delta\":\"QUJD\"}",
             "{\"x\":\"\xff\",\"type\":\"d\",\"index\":0,\"delta\":\"QUJD\"}",
             "\xef\xbb\xbf{\"type\":\"d\",\"index\":0,\"delta\":\"QUJD\"}",
         }) {
        CAPTURE(text);
        CHECK(found(delta, text) == "-");
    }
    const std::string end = R"(,"type":"d","index":0,"delta":"QUJD"})";
    CHECK(found(delta, R"({"x":)" + std::string(5000, '[') + std::string(5000, ']') + end) == "-");
    CHECK(found(delta, R"({"x":)" + std::string(5000, '9') + end) == "-");
    CHECK(found(delta, R"({"x":")" + std::string(5000, '9') + '"' + end) == "QUJD");
    CHECK(found(delta, std::string("{\"x\0\":1", 8) + end) == "-");
}

TEST_CASE("base64 is not checked, and ends at the first quote") {
    CHECK(found(delta, R"({"type":"d","index":0,"delta":"Q-="})") == "Q-=");
    CHECK(found(delta, R"({"type":"d","index":0,"delta":"QU\"JD"})") == "-");
}

TEST_CASE("a number is at least as large as it must be") {
    const auto of = [](const std::string& id) {
        return found(numbered, R"({"event":{"audio":"QUJD","id":)" + id + "}}");
    };
    CHECK(of("5") == "QUJD");
    CHECK(of("999999999999999") == "QUJD");
    for (const char* id :
         {"4", "-5", "5.0", "5e1", "\"5\"", "null", "1000000000000000", "18446744073709551621"}) {
        CAPTURE(id);
        CHECK(of(id) == "-");
    }
    CHECK(found(numbered, R"({"event":{"audio":"QUJD"},"id":7})") == "-");
    CHECK(found(numbered, R"({"event":{"audio":"QUJD","id":7},"event":{}})") == "-");
    CHECK(found(numbered, R"({"event":{"audio":"QUJD","id":7},"event":null})") == "-");
}

TEST_CASE("where members must be alone, any other makes the message none") {
    CHECK(found(parts, R"({"turn":{"parts":[{"data":"QUJD","type":"x"}],"role":"model"}})") == "QUJD");
    for (const char* text : {
             R"({"turn":{"parts":[{"data":"QUJD"}]},"usage":{}})",
             R"({"usage":{},"turn":{"parts":[{"data":"QUJD"}]}})",
             R"({"turn":{"parts":[{"data":"QUJD"},{"data":"QUJD"}]}})",
             R"({"turn":{"parts":[{"text":"x"},{"data":"QUJD"}]}})",
             R"({"turn":{"parts":{"0":{"data":"QUJD"}}}})",
             R"({"turn":{"parts":[]}})",
             R"({"turn":{"parts":[["QUJD"]]}})",
         }) {
        CAPTURE(text);
        CHECK(found(parts, text) == "-");
    }
}

TEST_CASE("a description has one place for the audio, and no member within another") {
    using Members = std::vector<AudioEvent::Member>;
    for (const Members& members : {
             Members{},
             Members{{"/a", Kind::equal, "1", 0}},
             Members{{"/a", Kind::audio, "", 0}, {"/b", Kind::audio, "", 0}},
             Members{{"/a", Kind::audio, "", 0}, {"/a/b", Kind::equal, "1", 0}},
             Members{{"/a/b", Kind::equal, "1", 0}, {"/a", Kind::audio, "", 0}},
             Members{{"/a", Kind::audio, "", 0}, {"/a", Kind::equal, "1", 0}},
             Members{{"a", Kind::audio, "", 0}},
             Members{{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", Kind::audio, "", 0}},
             Members(17, {"", Kind::alone, "", 0}),
         })
        CHECK_THROWS_AS(AudioEvent(members, false), std::invalid_argument);
}
