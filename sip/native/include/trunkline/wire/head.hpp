#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trunkline::wire {

/// Limits of one message; see `sip.message.parser.Limits`.
struct Limits {
    std::size_t message_bytes = 65536;
    std::size_t header_count = 256;
    std::size_t line_chars = 4096;
    std::size_t value_chars = 8192;
};

/// One header line, its value without white space around it.
struct Line {
    std::string_view name;
    std::string_view value;
};

/// The head of a message as nearly every peer writes one: printable ASCII, lines that end in CR LF and are
/// not folded, one space between the parts of the start line.
struct Head {
    bool is_request = false;
    std::string_view method;
    std::string_view uri;
    std::uint16_t status = 0;
    std::string_view reason;
    std::vector<Line> lines;
    /// Body: bytes after the empty line.
    std::string_view rest;
};

/// Read the head of a datagram or frame into `head`, whose memory is used again; false when it is not plain
/// or not within the limits, and has to be read by `sip.message.parser`.
bool read_head(std::string_view data, const Limits& limits, Head& head);

}  // namespace trunkline::wire
