#pragma once

#include <string>
#include <string_view>

#include "trunkline/wire/message.hpp"

/// Messages that the engine makes of others, from their bytes.
namespace trunkline::signalling {

/// The ACK of a refusal of our INVITE; `to` is the To of the refusal.
/// Source: RFC 3261 17.1.1.3.
std::string make_ack(std::string_view invite, std::string_view to);

/// The CANCEL of our INVITE; `reason` is the value of its Reason header field, if not empty.
/// Source: RFC 3261 9.1, RFC 3326.
std::string make_cancel(std::string_view invite, std::string_view reason);

/// The 100 of a peer's INVITE, which repeats its fields byte for byte; `via` replaces the top Via.
/// Source: RFC 3261 8.2.6.
std::string make_trying(const wire::Message& invite, std::string_view via);

}  // namespace trunkline::signalling
