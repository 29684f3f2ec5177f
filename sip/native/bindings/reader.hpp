#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "objects.hpp"
#include "trunkline/wire/message.hpp"

namespace trunkline::wire {

/// Makes a `Request` or `Response` of the bytes of a plain message.
class Reader {
  public:
    /// `classes` has the classes of messages and fields by their names, `names` is
    /// `sip.message.message.KNOWN_NAMES`, `split` are the keys of fields that are kept one element each.
    /// `readers` has what reads a value that is not plain: by the names "uri", "address", "list" and "error".
    Reader(const nb::dict& classes, const nb::dict& names, const nb::object& split, const nb::dict& readers);

    /// The message, or None when it is not plain and `sip.message.parser` has to read it.
    nb::object read(const nb::bytes& data, const nb::object& limits);

    /// The object of a message that was read; None when one of its values is malformed. With a stamp, the
    /// top Via has the source of the request.
    nb::object make(const Message& message, const Stamp* stamp);

    /// The limits that a `sip.message.parser.Limits` says.
    Limits limits_of(const nb::object& limits);

  private:
    struct Name {
        nb::object key;
        nb::object written;
        bool split = false;
    };
    /// Typed views of the fields that every message needs, and of others by key.
    struct Views {
        nb::object via, from, to, call_id, cseq;
        nb::dict others;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };

    nb::object make_message(const Message& message, const Stamp* stamp);
    const Name* name_of(std::string_view spelling) const;
    void add_entry(std::string_view spelling, std::string_view value, nb::list& entries);
    Views make_views(const Message& message, const Stamp* stamp);
    nb::object make_headers(nb::list&& entries, Views&& views);
    nb::object make_via(const Via& via, const Stamp* stamp);
    nb::object make_address(const std::optional<Address>& address, std::string_view text);
    nb::object make_uri(const Uri& uri);
    nb::object params_of(const Params& params);
    nb::object word(std::string_view text);

    Shape<4> request_, response_;
    Shape<2> cseq_;
    Shape<7> via_, uri_;
    Shape<4> address_;
    nb::object headers_, parse_uri_, parse_address_, split_list_, parse_error_;
    nb::object empty_, no_params_;
    std::unordered_map<std::string, Name, TextHash, std::equal_to<>> names_;
    /// Words that come again and again, such as methods and names of parameters.
    std::unordered_map<std::string, nb::object, TextHash, std::equal_to<>> words_;
    nb::object limits_object_;
    Limits limits_;
    Message message_;
};

}  // namespace trunkline::wire
