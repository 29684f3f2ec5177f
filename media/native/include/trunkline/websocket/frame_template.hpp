#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trunkline::websocket {

/// What a template's places are filled with.
struct FrameValues {
    std::uint64_t number = 0;
    std::uint64_t chunk = 0;
    std::uint64_t time_ms = 0;
    std::span<const std::uint8_t> audio;
};

/// Text of a frame with places for values that are known when it is written. A place is one control
/// character, which no text of JSON contains (RFC 8259 7).
class FrameTemplate {
  public:
    /// Characters that make a place, and what is written there.
    enum Place : char {
        number = 1,       ///< Number of the frame, in decimal.
        chunk = 2,        ///< Number of the piece of audio on its track, in decimal.
        time = 3,         ///< Time of the audio in ms, in decimal.
        audio_base64 = 4  ///< The audio.
    };

    FrameTemplate() = default;
    explicit FrameTemplate(std::string text);

    void swap(FrameTemplate& other) noexcept {
        text_.swap(other.text_);
        places_.swap(other.places_);
        std::swap(numbered_, other.numbered_);
    }

    /// True if it has a place for the frame's number.
    bool numbered() const { return numbered_; }

    /// Bytes of the frame with these values.
    std::size_t size(const FrameValues& values) const;

    /// Write the frame: `size(values)` bytes.
    void write(const FrameValues& values, std::uint8_t* out) const;

  private:
    std::string text_;
    std::vector<std::size_t> places_;  ///< Offsets in the text.
    bool numbered_ = false;
};

}  // namespace trunkline::websocket
