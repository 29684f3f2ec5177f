// What is read of a message, stamped and repeated: it reads back as itself, and nothing is read beyond its
// end.

#include <string>
#include <string_view>

#include "input.hpp"
#include "trunkline/signalling/derived.hpp"
#include "trunkline/signalling/engine.hpp"
#include "trunkline/wire/message.hpp"

using namespace trunkline;

namespace {

void check_stamp(const wire::Message& message, std::string_view via) {
    const auto again = wire::read_via(via);
    fuzz::require(again && again->host == message.via.host && again->branch == message.via.branch);
    // A source that is in it is not added twice.
    fuzz::require(!again->rport || *again->rport == 5070);
    const auto stamped = wire::stamp_via(via, *again, "192.0.2.7", 5070);
    fuzz::require(!stamped || stamped->text.size() <= via.size() + 32);
}

void check_request(const wire::Message& message) {
    const auto stamp = wire::stamp_via(message.via_text, message.via, "192.0.2.7", 5070);
    const std::string_view via = stamp ? std::string_view(stamp->text) : message.via_text;
    // A parameter more than a plain Via may have is read elsewhere.
    if (message.via.params.count < wire::max_params - 3) check_stamp(message, via);
    const std::string trying = signalling::make_trying(message, via);
    wire::Message answer;
    wire::Limits limits;
    limits.message_bytes *= 2;
    limits.line_chars *= 2;
    limits.value_chars *= 2;
    if (message.via.params.count < wire::max_params - 3) {
        fuzz::require(wire::read_message(trying, limits, answer));
        fuzz::require(answer.head.status == 100 && answer.via_count == message.via_count);
        fuzz::require(answer.call_id == message.call_id && answer.from_text == message.from_text);
        fuzz::require(answer.to_text == message.to_text && answer.cseq.number == message.cseq.number);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto bytes = input.rest();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    wire::Message message;
    if (wire::read_message(text, {}, message)) {
        if (message.head.is_request) {
            check_request(message);
        } else {
            (void)signalling::response_fields(message);
        }
    }
    // What we derive is of our own messages, and still reads nothing but them.
    fuzz::require(!signalling::make_ack(text, "<sip:b@h>").empty());
    fuzz::require(!signalling::make_cancel(text, "SIP;cause=200").empty());
    return 0;
}
