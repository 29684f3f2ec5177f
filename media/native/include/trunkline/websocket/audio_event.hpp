#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trunkline::websocket {

/// Description of the JSON messages of a far end that hold audio, and nothing else that need be understood.
///
/// A message is one of them if it is JSON (RFC 8259) and each described member stands in it once, and is as
/// described. Whatever is doubtful is none: a name with escapes, a name that occurs twice beside a described
/// one, deep nesting. So no other reader finds something else in the same message.
class AudioEvent {
  public:
    /// What stands at the place of a member.
    enum class Kind : std::uint8_t {
        audio = 1,     ///< A string: the audio.
        equal = 2,     ///< Exactly the text `value`, as JSON has it.
        at_least = 3,  ///< A whole number, at least `least`.
        alone = 4,     ///< An object or array in which nothing else stands than what leads to members.
    };

    struct Member {
        /// Names from the outermost object inwards, each behind a slash (RFC 6901, without its escapes); `0`
        /// is the first element of an array. Empty for the message itself.
        std::string place;
        Kind kind = Kind::equal;
        std::string value;
        std::uint64_t least = 0;
    };

    /// Throws `std::invalid_argument` unless exactly one member is the audio, and none lies within another
    /// that is not `alone`. With `binary`, messages in binary frames are some, too.
    AudioEvent(std::vector<Member> members, bool binary);

    bool binary() const { return binary_; }

    /// The audio in a message, in base64 that is not checked; nothing if it is none of these.
    std::optional<std::span<const std::uint8_t>> find(std::span<const std::uint8_t> message) const;

  private:
    friend class AudioEventReader;

    struct Described {
        std::vector<std::string> path;
        Member member;
    };

    std::vector<Described> members_;
    bool binary_;
};

}  // namespace trunkline::websocket
