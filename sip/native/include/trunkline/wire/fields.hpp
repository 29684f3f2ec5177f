#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// The plain spellings of SIP header field values: what nearly every peer sends, and nothing in which two
/// readings could be possible. What is not plain is not wrong: it is read by the parser in
/// `sip.message.parser`, which knows the whole grammar and all errors. Everything here points into the text
/// that was read.
namespace trunkline::wire {

/// `;name=value` or `;name`; names in the case they were sent in.
struct Param {
    std::string_view name;
    std::string_view value;
    bool has_value = false;
};

/// Limits of a plain address or Via.
constexpr std::size_t max_params = 8;

struct Params {
    std::array<Param, max_params> items;
    std::size_t count = 0;

    const Param* begin() const { return items.data(); }
    const Param* end() const { return items.data() + count; }
};

/// A `sip:` or `sips:` URI without password, escapes and header fields.
struct Uri {
    std::string_view scheme;
    std::optional<std::string_view> user;
    std::string_view host;
    std::optional<std::uint16_t> port;
    Params params;
};

/// A name that needs no unescaping, and a URI in angle brackets.
struct Address {
    std::string_view display_name;
    Uri uri;
    Params params;
};

struct Via {
    std::string_view transport;
    std::string_view host;
    std::optional<std::uint16_t> port;
    std::optional<std::string_view> branch;
    std::optional<std::string_view> received;
    /// 0: asked for and not filled in.
    std::optional<std::uint16_t> rport;
    /// Those that have no field of their own.
    Params params;
};

struct CSeq {
    std::uint32_t number = 0;
    std::string_view method;
};

// Each gives nothing for a value that is not plain. The text holds printable ASCII and tabs only, and neither
// begins nor ends with white space.

std::optional<Uri> read_uri(std::string_view text);
std::optional<Address> read_address(std::string_view text);
std::optional<Via> read_via(std::string_view text);
std::optional<CSeq> read_cseq(std::string_view text);

/// A decimal number of one to `max_digits` digits that is not above `max`.
std::optional<std::uint32_t> read_number(std::string_view text, std::size_t max_digits, std::uint32_t max);

bool is_token(std::string_view text);

/// True if `text` is `lower` (which is in lower case), whatever its own case.
bool equals_lower(std::string_view text, std::string_view lower);

/// Without the spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace trunkline::wire
