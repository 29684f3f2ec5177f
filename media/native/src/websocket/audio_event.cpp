#include "trunkline/websocket/audio_event.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "trunkline/websocket/frame.hpp"

namespace trunkline::websocket {

namespace {

constexpr std::size_t max_members = 16;
/// Deeper messages are left to others, who count otherwise.
constexpr std::size_t max_depth = 16;
/// Longer numbers are no counts; some readers refuse them.
constexpr std::size_t max_number_chars = 64;
constexpr std::size_t max_whole_digits = 15;
constexpr std::string_view first_element = "0";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::vector<std::string> path_of(std::string_view place) {
    std::vector<std::string> path;
    while (!place.empty()) {
        if (place.front() != '/') throw std::invalid_argument("a place begins with a slash");
        const std::size_t end = std::min(place.find('/', 1), place.size());
        path.emplace_back(place.substr(1, end - 1));
        place.remove_prefix(end);
    }
    if (path.size() > max_depth) throw std::invalid_argument("a place is too deep");
    return path;
}

/// True if a member at `outer` keeps what lies within it from being described.
bool hides(const AudioEvent::Member& member, const std::vector<std::string>& outer,
           const std::vector<std::string>& path) {
    return member.kind != AudioEvent::Kind::alone && path.size() >= outer.size() &&
           std::equal(outer.begin(), outer.end(), path.begin());
}

}  // namespace

/// Reads one message. Each method reads what it is named after, and returns false if it is not there or makes
/// the message none of those described.
class AudioEventReader {
  public:
    AudioEventReader(const AudioEvent& event, std::string_view text) : event_(event), text_(text) {}

    bool read() {
        const Set all = (Set{1} << event_.members_.size()) - 1;
        if (!value(all, 0)) return false;
        space();
        return at_ == text_.size() && seen_ == all;
    }

    std::string_view audio() const { return audio_; }

  private:
    /// Members, by their bits, whose path leads through what is being read.
    using Set = std::uint32_t;

    char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(char c) {
        if (next() != c) return false;
        ++at_;
        return true;
    }

    void space() {
        while (next() == ' ' || next() == '\t' || next() == '\n' || next() == '\r')
            ++at_;
    }

    bool value(Set inside, std::size_t depth) {
        if (depth > max_depth) return false;
        space();
        bool alone = false;
        for (std::size_t n = 0; inside != 0 && n < event_.members_.size(); ++n) {
            if ((inside >> n & 1) == 0 || event_.members_[n].path.size() != depth) continue;
            seen_ |= Set{1} << n;
            const AudioEvent::Member& member = event_.members_[n].member;
            if (member.kind != AudioEvent::Kind::alone) return described(member);
            alone = true;
        }
        switch (next()) {
            case '{':
                return object(inside, depth, alone);
            case '[':
                return array(inside, depth, alone);
            case '"':
                return string();
            case 't':
                return word("true");
            case 'f':
                return word("false");
            case 'n':
                return word("null");
            default:
                return number();
        }
    }

    bool described(const AudioEvent::Member& member) {
        switch (member.kind) {
            case AudioEvent::Kind::audio:
                return audio_text();
            case AudioEvent::Kind::equal:
                return equal(member.value);
            default:
                return at_least(member.least);
        }
    }

    /// Base64 has no escapes: it ends at the next quote, or is none.
    bool audio_text() {
        if (!take('"')) return false;
        const std::size_t end = text_.find('"', at_);
        if (end == std::string_view::npos || end == at_) return false;
        audio_ = text_.substr(at_, end - at_);
        at_ = end + 1;
        return true;
    }

    bool equal(std::string_view wanted) {
        const std::size_t begin = at_;
        if (next() == '"' ? !string() : !(number() || word("true") || word("false") || word("null")))
            return false;
        return text_.substr(begin, at_ - begin) == wanted;
    }

    bool at_least(std::uint64_t least) {
        const std::size_t begin = at_;
        if (!number()) return false;
        const std::string_view digits = text_.substr(begin, at_ - begin);
        std::uint64_t found = 0;
        const auto end = digits.data() + digits.size();
        if (digits.size() > max_whole_digits || std::from_chars(digits.data(), end, found).ptr != end)
            return false;
        return found >= least;
    }

    bool object(Set inside, std::size_t depth, bool alone) {
        ++at_;
        space();
        if (take('}')) return true;
        Set entered = 0;
        do {
            space();
            const std::size_t begin = at_ + 1;
            if (next() != '"' || !string()) return false;
            const Set within = named(inside, depth, text_.substr(begin, at_ - 1 - begin));
            // Which of two counts, nobody says; nor what an escaped name is, or one that looks like an
            // element.
            if ((entered & within) != 0 || (within == 0 && alone)) return false;
            if ((inside != 0 && escaped_) || (within != 0 && is_element(inside, depth))) return false;
            entered |= within;
            space();
            if (!take(':') || !value(within, depth + 1)) return false;
            space();
        } while (take(','));
        return take('}');
    }

    bool array(Set inside, std::size_t depth, bool alone) {
        ++at_;
        space();
        if (take(']')) return true;
        Set within = named(inside, depth, first_element);
        do {
            if ((within == 0 && alone) || !value(within, depth + 1)) return false;
            within = 0;
            space();
        } while (take(','));
        return take(']');
    }

    /// Those of some members whose path goes on by this name.
    Set named(Set inside, std::size_t depth, std::string_view name) const {
        Set within = 0;
        for (std::size_t n = 0; inside != 0 && n < event_.members_.size(); ++n) {
            const auto& path = event_.members_[n].path;
            if ((inside >> n & 1) != 0 && path.size() > depth && path[depth] == name) within |= Set{1} << n;
        }
        return within;
    }

    /// True if a path through an array goes on here.
    bool is_element(Set inside, std::size_t depth) const { return named(inside, depth, first_element) != 0; }

    bool string() {
        const std::size_t begin = ++at_;
        bool ascii = true;
        escaped_ = false;
        for (; next() != '"'; ++at_) {
            if (at_ >= text_.size() || static_cast<unsigned char>(next()) < 0x20) return false;
            ascii = ascii && static_cast<unsigned char>(next()) < 0x80;
            if (next() == '\\' && !escape()) return false;
        }
        const std::string_view content = text_.substr(begin, at_++ - begin);
        return ascii || is_utf8({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
    }

    /// An escape but its last character.
    bool escape() {
        escaped_ = true;
        ++at_;
        if (next() != 'u') return next() != '\0' && std::strchr("\"\\/bfnrt", next()) != nullptr;
        for (int n = 0; n < 4; ++n) {
            ++at_;
            const char digit = next();
            if (!is_digit(digit) && !(digit >= 'a' && digit <= 'f') && !(digit >= 'A' && digit <= 'F'))
                return false;
        }
        return true;
    }

    bool number() {
        const std::size_t begin = at_;
        take('-');
        if (!take('0') && !digits()) return false;
        if (take('.') && !digits()) return false;
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            if (!digits()) return false;
        }
        return at_ - begin <= max_number_chars;
    }

    bool digits() {
        const std::size_t begin = at_;
        while (is_digit(next()))
            ++at_;
        return at_ != begin;
    }

    bool word(std::string_view wanted) {
        if (text_.substr(at_, wanted.size()) != wanted) return false;
        at_ += wanted.size();
        return true;
    }

    const AudioEvent& event_;
    std::string_view text_;
    std::size_t at_ = 0;
    Set seen_ = 0;
    bool escaped_ = false;  ///< The string that was read last has an escape.
    std::string_view audio_;
};

AudioEvent::AudioEvent(std::vector<Member> members, bool binary) : binary_(binary) {
    if (members.size() > max_members) throw std::invalid_argument("too many members are described");
    for (Member& member : members) {
        std::vector<std::string> path = path_of(member.place);
        for (const Described& other : members_) {
            if (hides(member, path, other.path) || hides(other.member, other.path, path)) {
                throw std::invalid_argument("a described member lies within another");
            }
        }
        members_.push_back({std::move(path), std::move(member)});
    }
    const auto is_audio = [](const Described& one) { return one.member.kind == Kind::audio; };
    if (std::ranges::count_if(members_, is_audio) != 1)
        throw std::invalid_argument("one member is the audio");
}

std::optional<std::span<const std::uint8_t>> AudioEvent::find(std::span<const std::uint8_t> message) const {
    AudioEventReader reader(*this, {reinterpret_cast<const char*>(message.data()), message.size()});
    if (!reader.read()) return std::nullopt;
    const std::string_view audio = reader.audio();
    return std::span(reinterpret_cast<const std::uint8_t*>(audio.data()), audio.size());
}

}  // namespace trunkline::websocket
