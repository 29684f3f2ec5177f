#include "trunkline/wire/names.hpp"

#include <array>

#include "trunkline/wire/fields.hpp"

namespace trunkline::wire {

namespace {

struct Name {
    std::string_view lower;
    Field field;
};

/// Long and compact names (RFC 3261 7.3.3), in the order of their lengths.
constexpr std::array names = {
    Name{"v", Field::via},
    Name{"f", Field::from},
    Name{"t", Field::to},
    Name{"i", Field::call_id},
    Name{"l", Field::content_length},
    Name{"c", Field::content_type},
    Name{"o", Field::event},
    Name{"r", Field::refer_to},
    Name{"x", Field::session_expires},
    Name{"to", Field::to},
    Name{"via", Field::via},
    Name{"from", Field::from},
    Name{"cseq", Field::cseq},
    Name{"rack", Field::rack},
    Name{"rseq", Field::rseq},
    Name{"route", Field::route},
    Name{"event", Field::event},
    Name{"min-se", Field::min_se},
    Name{"call-id", Field::call_id},
    Name{"expires", Field::expires},
    Name{"refer-to", Field::refer_to},
    Name{"replaces", Field::replaces},
    Name{"timestamp", Field::timestamp},
    Name{"session-id", Field::session_id},
    Name{"content-type", Field::content_type},
    Name{"max-forwards", Field::max_forwards},
    Name{"content-length", Field::content_length},
    Name{"session-expires", Field::session_expires},
};

constexpr std::size_t longest = names.back().lower.size();

/// Where the names of each length begin in `names`.
constexpr auto first_of_length = [] {
    std::array<std::size_t, longest + 2> first{};
    for (std::size_t length = 0; length < first.size(); ++length) {
        std::size_t place = 0;
        while (place < names.size() && names[place].lower.size() < length)
            ++place;
        first[length] = place;
    }
    return first;
}();

static_assert([] {
    for (std::size_t place = 1; place < names.size(); ++place) {
        if (names[place - 1].lower.size() > names[place].lower.size()) return false;
    }
    return true;
}());

}  // namespace

Field field_of(std::string_view name) {
    if (name.size() > longest) return Field::other;
    for (std::size_t place = first_of_length[name.size()]; place < first_of_length[name.size() + 1];
         ++place) {
        if (equals_lower(name, names[place].lower)) return names[place].field;
    }
    return Field::other;
}

}  // namespace trunkline::wire
