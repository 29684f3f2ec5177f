#include "trunkline/websocket/frame_template.hpp"

#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "trunkline/text/base64.hpp"

namespace trunkline::websocket {

namespace {

constexpr std::size_t max_digits = std::numeric_limits<std::uint64_t>::digits10 + 1;

std::uint64_t number_at(char place, const FrameValues& values) {
    switch (place) {
        case FrameTemplate::number:
            return values.number;
        case FrameTemplate::chunk:
            return values.chunk;
        default:
            return values.time_ms;
    }
}

std::size_t digits_of(std::uint64_t value) {
    std::size_t digits = 1;
    for (; value >= 10; value /= 10) {
        ++digits;
    }
    return digits;
}

}  // namespace

FrameTemplate::FrameTemplate(std::string text) : text_(std::move(text)) {
    for (std::size_t at = 0; at < text_.size(); ++at) {
        if (text_[at] < number || text_[at] > audio_base64) continue;
        places_.push_back(at);
        numbered_ = numbered_ || text_[at] == number;
    }
}

std::size_t FrameTemplate::size(const FrameValues& values) const {
    std::size_t size = text_.size() - places_.size();
    for (const std::size_t place : places_) {
        size += text_[place] == audio_base64 ? text::base64_size(values.audio.size())
                                             : digits_of(number_at(text_[place], values));
    }
    return size;
}

void FrameTemplate::write(const FrameValues& values, std::uint8_t* out) const {
    std::size_t copied = 0;
    const auto copy_until = [&](std::size_t end) {
        std::memcpy(out, text_.data() + copied, end - copied);
        out += end - copied;
    };
    for (const std::size_t place : places_) {
        copy_until(place);
        copied = place + 1;
        if (text_[place] == audio_base64) {
            text::to_base64(values.audio, reinterpret_cast<char*>(out));
            out += text::base64_size(values.audio.size());
        } else {
            auto* digits = reinterpret_cast<char*>(out);
            out += std::to_chars(digits, digits + max_digits, number_at(text_[place], values)).ptr - digits;
        }
    }
    copy_until(text_.size());
}

}  // namespace trunkline::websocket
