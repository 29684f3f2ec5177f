#pragma once

#include <cstdint>

#include "trunkline/signalling/table.hpp"

/// The four transaction machines. States are passed through in their order only.
namespace trunkline::signalling {

/// RFC 3261 17.1.1, RFC 6026 7.2: sends one INVITE until a response comes, acknowledges refusals, passes
/// responses to its user.
namespace invite_client {

enum class State : std::uint8_t { calling, proceeding, completed, accepted, terminated, count };

enum class Event : std::uint8_t {
    provisional,
    success,
    failure,
    timer_a,
    timer_b,
    timer_d,
    timer_m,
    transport_error,
    /// The user gave up before any response came: stop repeating the request.
    abandon,
    /// A cancelled INVITE got no final response in time (RFC 3261 9.1).
    give_up,
    count,
};

inline constexpr Table<State, Event> table(
    {
        {State::calling, Event::provisional, State::proceeding, Action::deliver},
        {State::calling, Event::success, State::accepted, Action::accept},
        {State::calling, Event::failure, State::completed, Action::acknowledge},
        {State::calling, Event::timer_a, State::calling, Action::repeat_invite},
        {State::calling, Event::timer_b, State::terminated, Action::time_out},
        {State::calling, Event::transport_error, State::terminated, Action::fail},
        {State::calling, Event::abandon, State::calling, Action::abandon},
        {State::calling, Event::give_up, State::terminated, Action::end},
        {State::proceeding, Event::provisional, State::proceeding, Action::deliver},
        {State::proceeding, Event::success, State::accepted, Action::accept},
        {State::proceeding, Event::failure, State::completed, Action::acknowledge},
        {State::proceeding, Event::give_up, State::terminated, Action::end},
        {State::completed, Event::failure, State::completed, Action::repeat},
        {State::completed, Event::timer_d, State::terminated, Action::end},
        {State::completed, Event::transport_error, State::terminated, Action::end},
        {State::accepted, Event::success, State::accepted, Action::deliver},
        {State::accepted, Event::timer_m, State::terminated, Action::end},
    },
    {
        // These timers are armed by a later state only.
        {{State::calling}, {Event::timer_d, Event::timer_m}},
        // The peer has the request: it is not repeated, and only the user limits the ringing.
        {{State::proceeding}, {Event::timer_a, Event::timer_b, Event::timer_d, Event::timer_m}},
        // The response may still come over another connection (RFC 3261 18.2.2).
        {{State::proceeding}, {Event::transport_error, Event::abandon}},
        // A final response is not changed by anything later.
        {{State::completed},
         {Event::provisional, Event::success, Event::abandon, Event::give_up, Event::timer_a, Event::timer_b,
          Event::timer_m}},
        // Forks may go on ringing, failing or answering after the first 2xx; only 2xx matter.
        {{State::accepted}, Set<Event>::all().without({Event::success, Event::timer_m})},
        {{State::terminated}, Set<Event>::all()},
    });

static_assert(table.is_complete() && table.goes_forward() && table.is_over(State::terminated));

}  // namespace invite_client

/// RFC 3261 17.1.2: sends one request until its final response comes, and passes that to its user once.
namespace request_client {

enum class State : std::uint8_t { trying, proceeding, completed, terminated, count };

enum class Event : std::uint8_t { provisional, final, timer_e, timer_f, timer_k, transport_error, count };

inline constexpr Table<State, Event> table(
    {
        {State::trying, Event::provisional, State::proceeding, Action::deliver},
        {State::trying, Event::final, State::completed, Action::finish},
        {State::trying, Event::timer_e, State::trying, Action::repeat_request},
        {State::trying, Event::timer_f, State::terminated, Action::time_out},
        {State::trying, Event::transport_error, State::terminated, Action::fail},
        {State::proceeding, Event::provisional, State::proceeding, Action::deliver},
        {State::proceeding, Event::final, State::completed, Action::finish},
        {State::proceeding, Event::timer_e, State::proceeding, Action::repeat_slowly},
        {State::proceeding, Event::timer_f, State::terminated, Action::time_out},
        {State::proceeding, Event::transport_error, State::terminated, Action::fail},
        {State::completed, Event::timer_k, State::terminated, Action::end},
    },
    {
        // Timer K is armed by the final response only.
        {{State::trying, State::proceeding}, {Event::timer_k}},
        // Repeated responses are absorbed, and no timer but K matters.
        {{State::completed}, Set<Event>::all().without({Event::timer_k})},
        {{State::terminated}, Set<Event>::all()},
    });

static_assert(table.is_complete() && table.goes_forward() && table.is_over(State::terminated));

}  // namespace request_client

/// RFC 3261 17.2.1, RFC 6026 7.1: absorbs repetitions of one INVITE, and repeats a refusal until its ACK.
namespace invite_server {

enum class State : std::uint8_t { proceeding, completed, confirmed, accepted, terminated, count };

enum class Event : std::uint8_t {
    request,
    ack,
    send_provisional,
    send_success,
    send_failure,
    timer_trying,
    timer_g,
    timer_h,
    timer_i,
    timer_l,
    transport_error,
    count,
};

inline constexpr Table<State, Event> table(
    {
        {State::proceeding, Event::request, State::proceeding, Action::repeat_or_try},
        {State::proceeding, Event::send_provisional, State::proceeding, Action::send},
        {State::proceeding, Event::send_success, State::accepted, Action::send_success},
        {State::proceeding, Event::send_failure, State::completed, Action::refuse},
        {State::proceeding, Event::timer_trying, State::proceeding, Action::try_later},
        {State::completed, Event::request, State::completed, Action::repeat},
        {State::completed, Event::ack, State::confirmed, Action::confirm},
        {State::completed, Event::timer_g, State::completed, Action::repeat_refusal},
        {State::completed, Event::timer_h, State::terminated, Action::end},
        {State::confirmed, Event::timer_i, State::terminated, Action::end},
        // Only an ACK that wrongly carries the branch of the INVITE arrives here; it is accepted.
        {State::accepted, Event::ack, State::accepted, Action::deliver},
        {State::accepted, Event::send_success, State::accepted, Action::send_again},
        {State::accepted, Event::timer_l, State::terminated, Action::end},
    },
    {
        // There is nothing to acknowledge yet, and the other timers belong to later states.
        {{State::proceeding}, {Event::ack, Event::timer_g, Event::timer_h, Event::timer_i, Event::timer_l}},
        // The caller repeats the INVITE, perhaps over a new connection, or its own timers end the call.
        {{State::proceeding, State::completed}, {Event::transport_error}},
        // The final response is not changed by later responses of the user.
        {{State::completed},
         {Event::send_provisional, Event::send_success, Event::send_failure, Event::timer_trying,
          Event::timer_i, Event::timer_l}},
        // Only late repetitions are absorbed until timer I.
        {{State::confirmed}, Set<Event>::all().without({Event::timer_i})},
        // The user repeats a 2xx at its own pace, so a repeated INVITE is not answered (RFC 6026 7.1).
        {{State::accepted}, Set<Event>::all().without({Event::ack, Event::send_success, Event::timer_l})},
        {{State::terminated}, Set<Event>::all()},
    });

static_assert(table.is_complete() && table.goes_forward() && table.is_over(State::terminated));

}  // namespace invite_server

/// RFC 3261 17.2.2: answers every repetition of one request with the latest response to it.
namespace request_server {

enum class State : std::uint8_t { trying, proceeding, completed, terminated, count };

enum class Event : std::uint8_t { request, send_provisional, send_final, timer_j, transport_error, count };

inline constexpr Table<State, Event> table(
    {
        {State::trying, Event::send_provisional, State::proceeding, Action::send},
        {State::trying, Event::send_final, State::completed, Action::answer},
        {State::proceeding, Event::request, State::proceeding, Action::repeat},
        {State::proceeding, Event::send_provisional, State::proceeding, Action::send},
        {State::proceeding, Event::send_final, State::completed, Action::answer},
        {State::completed, Event::request, State::completed, Action::repeat},
        {State::completed, Event::timer_j, State::terminated, Action::end},
    },
    {
        // There is nothing to repeat yet.
        {{State::trying}, {Event::request}},
        // Timer J is armed by the final response only.
        {{State::trying, State::proceeding}, {Event::timer_j}},
        // The final response is not changed by later ones.
        {{State::completed}, {Event::send_provisional, Event::send_final}},
        // The client repeats its request or gives up by its own timer.
        {{State::trying, State::proceeding, State::completed}, {Event::transport_error}},
        {{State::terminated}, Set<Event>::all()},
    });

static_assert(table.is_complete() && table.goes_forward() && table.is_over(State::terminated));

}  // namespace request_server

/// One of the machines.
enum class Machine : std::uint8_t { invite_client, request_client, invite_server, request_server };

/// What follows an event in a state of a machine, both by their numbers.
constexpr Step step(Machine machine, std::uint8_t state, std::uint8_t event) {
    switch (machine) {
        case Machine::invite_client:
            return invite_client::table.step(state, event);
        case Machine::request_client:
            return request_client::table.step(state, event);
        case Machine::invite_server:
            return invite_server::table.step(state, event);
        case Machine::request_server:
            return request_server::table.step(state, event);
    }
    return {};
}

}  // namespace trunkline::signalling
