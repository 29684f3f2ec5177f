#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Names of the header fields that reading a message, matching it and deriving others from it take.
namespace trunkline::wire {

enum class Field : std::uint8_t {
    other,
    via,
    from,
    to,
    call_id,
    cseq,
    max_forwards,
    content_length,
    timestamp,
    route,
    session_id,
    // The rest matters only because it may stand once.
    content_type,
    event,
    expires,
    min_se,
    rack,
    refer_to,
    replaces,
    rseq,
    session_expires,
};

/// The field of a name in any case, long or compact; `other` for every name that is not listed above.
Field field_of(std::string_view name);

/// True for a field of which a message may have one: a second would let two elements on its path read two
/// different messages.
constexpr bool stands_once(Field field) {
    switch (field) {
        case Field::other:
        case Field::via:
        case Field::timestamp:
        case Field::route:
        case Field::session_id:
            return false;
        default:
            return true;
    }
}

}  // namespace trunkline::wire
