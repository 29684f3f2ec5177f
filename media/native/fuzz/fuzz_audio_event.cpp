// JSON of a speech model: audio is found within the message, once, and as often as the same is read again.

#include <string>
#include <string_view>

#include "input.hpp"
#include "trunkline/websocket/audio_event.hpp"

using namespace trunkline;
using websocket::AudioEvent;
using Kind = AudioEvent::Kind;

namespace {

const AudioEvent events[] = {
    {{{"/delta", Kind::audio, "", 0},
      {"/type", Kind::equal, "\"response.output_audio.delta\"", 0},
      {"/item_id", Kind::equal, "\"item\"", 0},
      {"/content_index", Kind::equal, "0", 0}},
     false},
    {{{"/audio_event/audio_base_64", Kind::audio, "", 0},
      {"/type", Kind::equal, "\"audio\"", 0},
      {"/audio_event/event_id", Kind::at_least, "", 5}},
     false},
    {{{"/serverContent/modelTurn/parts/0/inlineData/data", Kind::audio, "", 0},
      {"/serverContent/modelTurn/parts/0/inlineData/mimeType", Kind::equal, "\"audio/pcm;rate=24000\"", 0},
      {"", Kind::alone, "", 0},
      {"/serverContent", Kind::alone, "", 0},
      {"/serverContent/modelTurn/parts", Kind::alone, "", 0}},
     true},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto bytes_of = [](const std::string& from) {
        return std::span(reinterpret_cast<const std::uint8_t*>(from.data()), from.size());
    };
    for (const AudioEvent& event : events) {
        const auto audio = event.find(bytes_of(text));
        if (!audio) continue;
        const auto at = static_cast<std::size_t>(audio->data() - bytes_of(text).data());
        fuzz::require(!audio->empty() && at >= 1 && at + audio->size() < size);
        fuzz::require(text[at - 1] == '"' && text[at + audio->size()] == '"');
        // Another payload is another message of the same kind; no shorter text is one at all.
        std::string other = text;
        other.replace(at, audio->size(), "QUJD");
        const auto again = event.find(bytes_of(other));
        fuzz::require(again && std::string(again->begin(), again->end()) == "QUJD");
        fuzz::require(!event.find(bytes_of(text.substr(0, text.find_last_of('}')))));
    }
    return 0;
}
