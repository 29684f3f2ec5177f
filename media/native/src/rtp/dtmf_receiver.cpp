#include "trunkline/rtp/dtmf_receiver.hpp"

#include <algorithm>
#include <string_view>

namespace trunkline::rtp {

namespace {

constexpr std::string_view keys = "0123456789*#ABCD";
constexpr std::uint32_t max_segment = 0xFFFF;
/// A packet from further back than this is no late one: the far end's timestamps jumped.
constexpr std::uint32_t max_late_s = 60;
/// Longer presses are told as this long.
constexpr std::uint32_t max_press_s = 3600;

}  // namespace

char key_of_event(std::uint8_t event) {
    return event < keys.size() ? keys[event] : '\0';
}

std::optional<std::uint8_t> event_of_key(char key) {
    const char upper = key >= 'a' && key <= 'd' ? static_cast<char>(key - 'a' + 'A') : key;
    const auto at = keys.find(upper);
    if (at == std::string_view::npos) return std::nullopt;
    return static_cast<std::uint8_t>(at);
}

std::optional<Digit> DtmfReceiver::restart() {
    started_ = false;
    if (!pressed_) return std::nullopt;
    return finish();
}

std::optional<Digit> DtmfReceiver::packet(std::uint32_t timestamp, std::span<const std::uint8_t> payload,
                                          std::int64_t now_ns) {
    if (payload.size() < 4 || key_of_event(payload[0]) == '\0') return std::nullopt;
    const std::uint8_t event = payload[0];
    const bool ended = (payload[1] & 0x80) != 0;
    const auto duration = static_cast<std::uint16_t>(payload[2] << 8 | payload[3]);
    const auto age = static_cast<std::int32_t>(timestamp - timestamp_);
    if (started_ && age < 0 && -std::int64_t{age} < std::int64_t{max_late_s} * clock_hz_) return std::nullopt;
    last_ns_ = now_ns;
    if (!started_ || age != 0) return begin(timestamp, event, duration, ended);
    if (!pressed_) return std::nullopt;
    if (duration > duration_) duration_ = duration;
    if (!ended) return std::nullopt;
    return finish();
}

char DtmfReceiver::key() const {
    return presses_ == 0 ? '\0' : key_of_event(event_);
}

std::optional<Digit> DtmfReceiver::expire(std::int64_t now_ns) {
    if (!pressed_ || now_ns - last_ns_ < lost_end_ns) return std::nullopt;
    return finish();
}

std::optional<Digit> DtmfReceiver::begin(std::uint32_t timestamp, std::uint8_t event, std::uint16_t duration,
                                         bool ended) {
    std::optional<Digit> previous;
    // A press longer than the duration field goes on in a segment that starts where the last one ended
    // (RFC 4733 2.5.1.3).
    const bool continues = pressed_ && event == event_ && timestamp - timestamp_ == max_segment;
    if (continues) {
        before_ = std::min(before_ + max_segment, max_press_s * clock_hz_);
    } else {
        if (pressed_) previous = finish();
        before_ = 0;
        ++presses_;
    }
    started_ = pressed_ = true;
    timestamp_ = timestamp;
    event_ = event;
    duration_ = duration;
    // Two presses over by one packet would need every packet of the second but its last to be lost as well as
    // the end of the first; the second is then told when it expires.
    if (ended && !previous) return finish();
    return previous;
}

Digit DtmfReceiver::finish() {
    pressed_ = false;
    return {key_of_event(event_), (before_ + duration_) / (clock_hz_ / 1000)};
}

}  // namespace trunkline::rtp
