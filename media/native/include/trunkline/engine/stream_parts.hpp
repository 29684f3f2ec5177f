#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>

#include "trunkline/engine/receive_path.hpp"
#include "trunkline/engine/send_path.hpp"
#include "trunkline/engine/settings.hpp"

namespace trunkline::engine {

/// Parts that the control thread makes for a stream, because engine threads never allocate. Null keeps the
/// present part.
struct StreamParts {
    std::unique_ptr<ReceivePath> receive_path;
    std::unique_ptr<DecoderSet> decoders;
    std::unique_ptr<SendPath> send_path;
    bool drop_receive_path = false;

    bool empty() const {
        return receive_path == nullptr && decoders == nullptr && send_path == nullptr && !drop_receive_path;
    }
};

/// Uses of a stream besides relaying.
enum class Use : std::uint8_t {
    tap,       ///< Hears and speaks.
    recorder,  ///< Hears the stream and, through the linked stream, what is sent.
    listener,  ///< Hears.
    monitor,   ///< Hears as a recorder does.
    keys,      ///< The linked stream speaks: it sends on what keys are found in this one's audio.
    source,    ///< Speaks: a mixer's output.
    output,    ///< Speaks: playback and digits; once for all.
    tracks,    ///< Speaks, and has the linked stream decode: sounds that are added; once for all.
    silence,   ///< Speaks: stands in for audio that is muted.
};

/// The control thread's account of what a stream is used for, and of the parts it was given for that.
class StreamOutfit {
  public:
    /// Note that a use begins or ends; they are counted.
    void note(Use use, bool begins);
    void connect(const MediaSettings& settings);
    const MediaSettings& settings() const { return settings_; }

    /// Make what is missing for the uses noted, given the stream it is linked with, if any.
    StreamParts make_missing(const StreamOutfit* peer);

    /// True if anything may make the stream run a clock of its own.
    bool speaks() const {
        return settings_.speaks_always() || uses(Use::output) || uses(Use::tap) || uses(Use::recorder) ||
               uses(Use::source) || uses(Use::tracks);
    }
    bool uses(Use use) const { return counts_[index(use)] != 0; }

    /// True if nothing is done with the stream but relaying, at most.
    bool unused() const {
        return std::all_of(std::begin(counts_), std::end(counts_),
                           [](std::uint32_t count) { return count == 0; });
    }

  private:
    static constexpr std::size_t use_count = 9;

    static std::size_t index(Use use) { return static_cast<std::size_t>(use); }
    bool must_hear(const StreamOutfit* peer) const;
    bool must_speak(const StreamOutfit* peer) const;

    std::uint32_t counts_[use_count] = {};
    bool connected_ = false;
    MediaSettings settings_;
    bool hears_ = false;
    bool can_speak_ = false;
    codec::Format decodes_;           ///< Format the decoders were made for.
    codec::Format encodes_;           ///< The same of the encoder,
    codec::EncoderOptions encoding_;  ///< and how.
};

}  // namespace trunkline::engine
