#include "trunkline/engine/stream_parts.hpp"

#include <utility>

namespace trunkline::engine {

void StreamOutfit::note(Use use, bool begins) {
    std::uint32_t& count = counts_[index(use)];
    if (begins) {
        ++count;
    } else if (count != 0) {
        --count;
    }
}

void StreamOutfit::connect(const MediaSettings& settings) {
    connected_ = true;
    settings_ = settings;
}

bool StreamOutfit::must_hear(const StreamOutfit* peer) const {
    if (uses(Use::tap) || uses(Use::recorder) || uses(Use::listener)) return true;
    return peer != nullptr && (peer->uses(Use::recorder) || peer->uses(Use::monitor) ||
                               peer->uses(Use::tracks) || !alike(settings_, peer->settings_));
}

bool StreamOutfit::must_speak(const StreamOutfit* peer) const {
    if (!connected_) return false;
    if (settings_.speaks_always()) return true;
    if (uses(Use::tap) || uses(Use::source) || uses(Use::output) || uses(Use::tracks) || uses(Use::silence)) {
        return true;
    }
    // What is muted at the linked stream's receiving side is silence here, and a key found in its audio is
    // sent as a press.
    return peer != nullptr && (peer->uses(Use::silence) || peer->uses(Use::keys) || sends_tones(settings_) ||
                               !alike(settings_, peer->settings_));
}

StreamParts StreamOutfit::make_missing(const StreamOutfit* peer) {
    StreamParts parts;
    if (!must_hear(peer)) {
        parts.drop_receive_path = std::exchange(hears_, false);
    } else if (!hears_) {
        hears_ = true;
        decodes_ = settings_.format;
        parts.receive_path = std::make_unique<ReceivePath>(std::make_unique<DecoderSet>(decodes_));
    } else if (!(decodes_ == settings_.format)) {
        decodes_ = settings_.format;
        parts.decoders = std::make_unique<DecoderSet>(decodes_);
    }
    const bool fits = can_speak_ && encodes_ == settings_.format && encoding_ == settings_.encoder;
    if (must_speak(peer) && !fits) {
        can_speak_ = true;
        encodes_ = settings_.format;
        encoding_ = settings_.encoder;
        parts.send_path = std::make_unique<SendPath>(settings_);
    }
    return parts;
}

}  // namespace trunkline::engine
