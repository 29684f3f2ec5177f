#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "objects.hpp"
#include "trunkline/wire/fields.hpp"
#include "trunkline/wire/head.hpp"

namespace trunkline::wire {

/// Makes a `Request` or `Response` of the bytes of a plain message.
class Reader {
  public:
    /// `classes` has the classes of messages and fields by their names, `names` is
    /// `sip.message.message.KNOWN_NAMES`, `single` and `split` are the keys of fields that may stand once,
    /// and that are kept one element each. `readers` has what reads a value that is not plain: by the names
    /// "uri", "address" and "list".
    Reader(const nb::dict& classes, const nb::dict& names, const nb::object& single, const nb::object& split,
           const nb::dict& readers);

    /// The message, or None when it is not plain and `sip.message.parser` has to read it.
    nb::object read(const nb::bytes& data, const nb::object& limits);

  private:
    struct Name {
        nb::object key;
        nb::object written;
        /// Kind of a parsed field, and its permitted uses.
        enum class Role : std::uint8_t { other, via, from, to, call_id, cseq, max_forwards, content_length };
        Role role = Role::other;
        bool split = false;
        /// A bit for each field that may stand once, else 0.
        std::uint64_t single = 0;
    };
    /// Typed views of the fields that every message needs, and of others by key.
    struct Views {
        nb::object via, from, to, call_id, cseq;
        nb::dict others;
    };

    /// First of each mandatory field.
    struct Seen {
        std::string_view via, from, to, call_id, cseq, max_forwards, content_length;
        bool has_length = false, has_max_forwards = false;
        std::uint64_t singles = 0;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };

    Limits limits_of(const nb::object& limits);
    nb::object make_message();
    const Name* name_of(std::string_view spelling) const;
    bool add_entry(const Line& line, nb::list& entries, Seen& seen);
    void note(Name::Role role, std::string_view value, Seen& seen) const;
    bool add_views(const Seen& seen, Views& views);
    nb::object make_headers(nb::list&& entries, Views&& views);
    nb::object view_of_via(std::string_view text);
    nb::object view_of_address(std::string_view text);
    nb::object view_of_uri(std::string_view text);
    nb::object make_uri(const Uri& uri);
    nb::object params_of(const Params& params);
    nb::object word(std::string_view text);

    Shape<4> request_, response_;
    Shape<7> headers_;
    Shape<2> cseq_;
    Shape<7> via_, uri_;
    Shape<4> address_;
    nb::object parse_uri_, parse_address_, split_list_, parse_error_;
    nb::object empty_, no_params_;
    std::unordered_map<std::string, Name, TextHash, std::equal_to<>> names_;
    /// Words that come again and again, such as methods and names of parameters.
    std::unordered_map<std::string, nb::object, TextHash, std::equal_to<>> words_;
    nb::object limits_object_;
    Limits limits_;
    Head head_;
};

}  // namespace trunkline::wire
