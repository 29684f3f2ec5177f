#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trunkline/wire/fields.hpp"
#include "trunkline/wire/head.hpp"

namespace trunkline::wire {

/// A plain message, with the fields that every message must have. Everything points into the text that was
/// read.
struct Message {
    Head head;
    /// Of a request; nothing when it is not plain.
    std::optional<Uri> uri;
    /// The top Via.
    Via via;
    std::string_view via_text;
    std::size_t via_count = 0;
    /// Nothing when it is not plain, and has to be read by `sip.message.fields`.
    std::optional<Address> from, to;
    std::string_view from_text, to_text;
    std::string_view call_id;
    CSeq cseq;
    std::optional<std::uint32_t> max_forwards;
    std::string_view body;

    /// True if all of it was read here: nothing in it can turn out to be malformed later.
    bool is_certain() const { return from && to && (uri || !head.is_request); }
};

/// Read the message of a datagram or frame into `message`, whose memory is used again; false when it is not
/// plain, or not acceptable, and has to be read by `sip.message.parser`.
bool read_message(std::string_view data, const Limits& limits, Message& message);

/// The tag among the parameters of a From or To; empty when there is none.
std::string_view tag_of(const Params& params);

/// A top Via with the source of its request.
struct Stamp {
    /// The value as it was written, but for `received` and `rport`.
    std::string text;
    std::string received;
    /// The port, when it was asked for.
    std::optional<std::uint16_t> rport;
};

/// The top Via of a request from this source; nothing when it says already what it has to. `host` is a
/// literal of an address.
/// Source: RFC 3261 18.2.1, RFC 3581 4; as `sip.message.fields.Via.with_source` and `stamp_via`.
std::optional<Stamp> stamp_via(std::string_view text, const Via& via, std::string_view host,
                               std::uint16_t port);

}  // namespace trunkline::wire
