#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace trunkline::rtp {

/// A key the far end pressed.
struct Digit {
    char key = 0;
    std::uint32_t duration_ms = 0;
};

/// Turns telephone-event packets into one digit per key press (RFC 4733 2.5).
///
/// A press is known by its timestamp, so repeats and late packets add nothing. It is over with its end bit,
/// with the start of the next press, or when no packet of it came for `lost_end_ns`. Events that are no key
/// (flash, fax and modem tones) are passed over: nobody agreed on them.
class DtmfReceiver {
  public:
    static constexpr std::int64_t lost_end_ns = 160'000'000;

    explicit DtmfReceiver(std::uint32_t clock_hz = 8000) : clock_hz_(clock_hz) {}

    /// Durations and timestamps are counted in another clock from the next press on.
    void set_clock(std::uint32_t clock_hz) { clock_hz_ = clock_hz; }

    /// Timestamps begin anew: whatever comes next is a press of its own. The digit that was still pressed.
    std::optional<Digit> restart();

    /// Process the payload of a telephone-event packet; a digit when a press is over by it.
    std::optional<Digit> packet(std::uint32_t timestamp, std::span<const std::uint8_t> payload,
                                std::int64_t now_ns);

    /// The press whose end bits were all lost, once that is certain.
    std::optional<Digit> expire(std::int64_t now_ns);

    /// True if a press is going on, so that `expire` must be asked.
    bool pressed() const { return pressed_; }

    /// Number of presses begun so far, for callers that must know before they are over.
    std::uint32_t presses() const { return presses_; }

    /// True if a packet with this timestamp is of the press that began last, and no late one of an earlier.
    bool is_latest(std::uint32_t timestamp) const { return started_ && timestamp == timestamp_; }

    /// Duration of the latest press so far, in units of its clock, all its segments together.
    std::uint32_t lasting() const { return before_ + duration_; }

    /// The key last pressed; 0 before the first.
    char key() const;

  private:
    std::optional<Digit> begin(std::uint32_t timestamp, std::uint8_t event, std::uint16_t duration,
                               bool ended);
    Digit finish();

    std::uint32_t clock_hz_;
    std::uint32_t presses_ = 0;
    bool pressed_ = false;
    bool started_ = false;
    std::uint32_t timestamp_ = 0;  ///< Of the press last seen, over or not.
    std::uint8_t event_ = 0;
    std::uint32_t before_ = 0;  ///< Duration of earlier segments of a very long press.
    std::uint16_t duration_ = 0;
    std::int64_t last_ns_ = 0;
};

/// The key of an event code, or 0 when the code is no DTMF key (RFC 4733 3.2).
char key_of_event(std::uint8_t event);

/// The event code of a key; nothing when the character is no DTMF key.
std::optional<std::uint8_t> event_of_key(char key);

}  // namespace trunkline::rtp
