#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trunkline::rtp {

/// The payload of one telephone-event packet and what its header needs.
struct DtmfPacket {
    std::array<std::uint8_t, 4> payload{};
    bool first = false;  ///< First packet of a key press: carries the marker bit.
    /// Time since the start of the press, or of its present segment; its timestamp lies that far back.
    std::uint32_t age_samples = 0;
};

/// Plays out key presses as telephone events, one packet per frame (RFC 4733 2.5.1).
///
/// The last packet of a press is sent three times. A press longer than the duration field goes on in segments
/// (2.5.1.3). `w` pauses half a second, `W` a second.
class DtmfSender {
  public:
    /// Begin to send `digits`; characters that are no key are skipped. The text must stay valid until `busy`
    /// is false.
    void start(std::string_view digits, std::uint32_t duration_ms, std::uint32_t gap_ms,
               std::uint32_t clock_hz = 8000);

    /// True if a digit or a gap of the current text is still to come.
    bool busy() const { return state_ != State::idle; }

    /// True if the next frame belongs to a key press, so that no audio may be sent with it.
    bool pressing() const { return state_ == State::press || state_ == State::ending; }

    /// The packet to send for the next frame, or nothing when audio may be sent instead.
    std::optional<DtmfPacket> step(std::uint32_t frame_samples);

  private:
    enum class State : std::uint8_t { idle, press, ending, gap };

    DtmfPacket press(std::uint32_t frame_samples);
    void next_digit();
    DtmfPacket make(bool ended) const;

    State state_ = State::idle;
    std::string_view digits_;
    std::uint32_t clock_per_ms_ = 8;
    std::uint32_t press_samples_ = 0;
    std::uint32_t gap_samples_ = 0;
    std::uint8_t event_ = 0;
    std::uint32_t elapsed_ = 0;   ///< Samples since the press began.
    std::uint32_t segment_ = 0;   ///< Those before its present segment.
    std::uint32_t duration_ = 0;  ///< What the packets of the segment say.
    std::uint32_t gap_left_ = 0;
    int repeats_left_ = 0;
};

}  // namespace trunkline::rtp
