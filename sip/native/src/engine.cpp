#include "trunkline/signalling/engine.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "trunkline/signalling/derived.hpp"
#include "trunkline/wire/characters.hpp"

namespace trunkline::signalling {

namespace {

/// Begins every branch since RFC 3261: such a branch is unique.
constexpr std::string_view magic_cookie = "z9hG4bK";
/// Between the parts of a key; no value of a field holds it.
constexpr char separator = '\n';

template <class Enum>
constexpr std::uint8_t number(Enum value) {
    return static_cast<std::uint8_t>(value);
}

static_assert(count_of<invite_client::Event> <= 11 && count_of<invite_server::Event> <= 11);

/// Free the memory of a text as well.
void forget(std::string& text) {
    std::string().swap(text);
}

bool is_client(Machine machine) {
    return machine == Machine::invite_client || machine == Machine::request_client;
}

std::uint8_t response_event(Machine machine, std::uint16_t status) {
    if (machine == Machine::request_client) {
        using Event = request_client::Event;
        return number(status < 200 ? Event::provisional : Event::final);
    }
    using Event = invite_client::Event;
    return number(status < 200 ? Event::provisional : status < 300 ? Event::success : Event::failure);
}

std::uint8_t sending_event(Machine machine, std::uint16_t status) {
    if (machine == Machine::request_server) {
        using Event = request_server::Event;
        return number(status < 200 ? Event::send_provisional : Event::send_final);
    }
    using Event = invite_server::Event;
    return number(status < 200   ? Event::send_provisional
                  : status < 300 ? Event::send_success
                                 : Event::send_failure);
}

}  // namespace

Engine::Engine(const Timers& timers, std::size_t most_servers)
    : timers_(timers), most_servers_(most_servers) {}

// Messages.

Verdict Engine::take_request(const RequestFields& fields, const Flow& flow, Opening opening,
                             std::int64_t now_ns) {
    const bool is_ack = fields.method == "ACK";
    const bool is_cancel = fields.method == "CANCEL";
    const auto key = server_key(fields, is_ack || is_cancel ? "INVITE" : fields.method);
    const Id id = opening == Opening::always && !is_ack && !is_cancel ? 0 : find_by(servers_, key);
    if (is_cancel) return {Kind::cancel, id, nullptr, flow_of(id)};
    if (id == 0) {
        if (is_ack) return {Kind::ack};
        const bool has_room = servers_.size() < most_servers_ || opening == Opening::always;
        if (opening == Opening::never || !has_room) return {Kind::request};
        const bool invites = fields.method == "INVITE";
        const Id opened =
            open(invites ? Machine::invite_server : Machine::request_server, servers_, key, flow);
        Transaction& transaction = transactions_.at(opened);
        if (invites) {
            arm(opened, transaction, number(invite_server::Event::timer_trying), timers_.trying_ns, now_ns);
        }
        return {Kind::request, opened, nullptr, &transaction.flow};
    }
    Transaction& transaction = *find(id);
    transaction.flow = flow;  // A retransmission may come over a new connection.
    const std::uint8_t event = is_ack ? number(invite_server::Event::ack)
                               : transaction.machine == Machine::invite_server
                                   ? number(invite_server::Event::request)
                                   : number(request_server::Event::request);
    const Outcome outcome = apply(id, transaction, event, {}, now_ns);
    return {outcome.deliver ? Kind::ack : Kind::repeated, id, outcome.send_last ? &transaction.last : nullptr,
            &transaction.flow};
}

void Engine::keep_trying(Id id, std::string trying) {
    if (Transaction* const transaction = find(id)) transaction->trying = std::move(trying);
}

const std::string* Engine::try_now(Id id, std::int64_t now_ns) {
    Transaction* const transaction = find(id);
    if (transaction == nullptr || transaction->machine != Machine::invite_server) return nullptr;
    const std::uint8_t event = number(invite_server::Event::timer_trying);
    return apply(id, *transaction, event, {}, now_ns).send_last ? &transaction->last : nullptr;
}

Verdict Engine::take_response(const ResponseFields& fields, std::int64_t now_ns) {
    if (fields.via_count != 1) return {Kind::ignored};  // Meant for another hop (RFC 3261 8.1.3.3).
    const Id id = find_by(clients_, client_key(fields.branch, fields.method));
    if (id == 0) {
        const bool is_answer = fields.status >= 200 && fields.status < 300 && fields.method == "INVITE";
        return {is_answer ? Kind::stray : Kind::ignored};
    }
    Transaction& transaction = *find(id);
    const Outcome outcome =
        apply(id, transaction, response_event(transaction.machine, fields.status), fields.to, now_ns);
    return {outcome.deliver ? Kind::response : Kind::absorbed, id,
            outcome.send_last ? &transaction.last : nullptr, &transaction.flow};
}

// Commands of users.

Id Engine::start_client(std::string_view wire, std::string_view method, std::string_view branch,
                        const Flow& flow, std::int64_t now_ns) {
    const bool invites = method == "INVITE";
    const Id id = open(invites ? Machine::invite_client : Machine::request_client, clients_,
                       client_key(branch, method), flow);
    Transaction& transaction = transactions_.at(id);
    transaction.last = wire;
    transaction.repeat_after_ns = timers_.t1_ns;
    using Invite = invite_client::Event;
    using Request = request_client::Event;
    arm(id, transaction, invites ? number(Invite::timer_b) : number(Request::timer_f), timers_.timeout_ns(),
        now_ns);
    if (!flow.reliable) {
        arm(id, transaction, invites ? number(Invite::timer_a) : number(Request::timer_e), timers_.t1_ns,
            now_ns);
    }
    return id;
}

Id Engine::resume_invite(std::string_view wire, std::string_view branch, const Flow& flow) {
    const Id id = open(Machine::invite_client, clients_, client_key(branch, "INVITE"), flow);
    Transaction& transaction = transactions_.at(id);
    transaction.last = wire;
    enter(transaction, number(invite_client::State::proceeding));
    return id;
}

bool Engine::respond(Id id, std::uint16_t status, std::string_view wire, std::int64_t now_ns) {
    Transaction* const transaction = find(id);
    if (transaction == nullptr || is_client(transaction->machine)) return false;
    return apply(id, *transaction, sending_event(transaction->machine, status), wire, now_ns).send_given;
}

Id Engine::cancel(Id invite, std::string_view reason, std::int64_t now_ns) {
    const Transaction* const pending = find(invite);
    if (pending == nullptr || pending->machine != Machine::invite_client ||
        pending->state > number(invite_client::State::proceeding)) {
        return 0;
    }
    const std::string branch = pending->key->substr(0, pending->key->find(separator));
    if (find_by(clients_, client_key(branch, "CANCEL")) != 0) return 0;
    const std::string wire = make_cancel(pending->last, reason);
    const Flow flow = pending->flow;
    const Id id = start_client(wire, "CANCEL", branch, flow, now_ns);
    expire(invite, now_ns);
    return id;
}

void Engine::abandon(Id id, std::int64_t now_ns) {
    Transaction* const transaction = find(id);
    if (transaction == nullptr || transaction->machine != Machine::invite_client) return;
    apply(id, *transaction, number(invite_client::Event::abandon), {}, now_ns);
}

void Engine::give_up(Id id, std::int64_t now_ns, std::vector<Output>& outputs) {
    Transaction* const transaction = find(id);
    if (transaction == nullptr || transaction->machine != Machine::invite_client) return;
    report(id, *transaction, apply(id, *transaction, number(invite_client::Event::give_up), {}, now_ns),
           outputs);
}

void Engine::expire(Id id, std::int64_t now_ns) {
    Transaction* const transaction = find(id);
    if (transaction == nullptr || transaction->machine != Machine::invite_client ||
        transaction->state > number(invite_client::State::proceeding)) {
        return;
    }
    const std::uint8_t event = number(invite_client::Event::give_up);
    if (transaction->timers[event] == TimerQueue::none) {
        arm(id, *transaction, event, timers_.timeout_ns(), now_ns);
    }
}

void Engine::fail_transport(Id id, std::int64_t now_ns, std::vector<Output>& outputs) {
    Transaction* const transaction = find(id);
    if (transaction == nullptr) return;
    std::uint8_t event = 0;
    switch (transaction->machine) {
        case Machine::invite_client:
            event = number(invite_client::Event::transport_error);
            break;
        case Machine::request_client:
            event = number(request_client::Event::transport_error);
            break;
        case Machine::invite_server:
            event = number(invite_server::Event::transport_error);
            break;
        case Machine::request_server:
            event = number(request_server::Event::transport_error);
            break;
    }
    report(id, *transaction, apply(id, *transaction, event, {}, now_ns), outputs);
}

void Engine::release(Id id) {
    if (find(id) != nullptr) remove(id);
}

void Engine::clear() {
    queue_ = TimerQueue();
    transactions_.clear();
    clients_.clear();
    servers_.clear();
    replaced_.clear();
}

void Engine::set_flow(Id id, const Flow& flow) {
    if (Transaction* const transaction = find(id)) transaction->flow = flow;
}

// Time.

std::optional<std::int64_t> Engine::next_due_ns() const {
    return replaced_.empty() ? queue_.next_due_ns() : 0;
}

void Engine::advance(std::int64_t now_ns, std::vector<Output>& outputs) {
    for (const Id id : replaced_)
        outputs.push_back({Kind::ended, id, {}, {}});
    replaced_.clear();
    while (const auto fired = queue_.take_due(now_ns)) {
        Transaction& transaction = transactions_.at(fired->owner);
        transaction.timers[fired->event] = TimerQueue::none;
        report(fired->owner, transaction, apply(fired->owner, transaction, fired->event, {}, now_ns),
               outputs);
    }
}

// What there is.

bool Engine::is_wanted(Id id) const {
    const Transaction* const transaction = find(id);
    if (transaction == nullptr || !is_client(transaction->machine) || transaction->state != 0) return false;
    return transaction->repeat_after_ns > 0;
}

Id Engine::find_wanted(std::string_view method, std::string_view branch) {
    const Id id = find_by(clients_, client_key(branch, method));
    return is_wanted(id) ? id : 0;
}

std::optional<std::uint8_t> Engine::state_of(Id id) const {
    const Transaction* const transaction = find(id);
    if (transaction == nullptr) return std::nullopt;
    return transaction->state;
}

const Flow* Engine::flow_of(Id id) const {
    const Transaction* const transaction = find(id);
    return transaction == nullptr ? nullptr : &transaction->flow;
}

std::string_view Engine::wire_of(Id id) const {
    const Transaction* const transaction = find(id);
    if (transaction == nullptr || !is_client(transaction->machine)) return {};
    return transaction->last;
}

// The tables.

Engine::Transaction* Engine::find(Id id) {
    const auto found = transactions_.find(id);
    return found == transactions_.end() ? nullptr : &found->second;
}

const Engine::Transaction* Engine::find(Id id) const {
    const auto found = transactions_.find(id);
    return found == transactions_.end() ? nullptr : &found->second;
}

Id Engine::find_by(const Index& index, std::string_view key) const {
    const auto found = index.find(key);
    return found == index.end() ? 0 : found->second;
}

Id Engine::open(Machine machine, Index& index, std::string_view key, const Flow& flow) {
    const auto [place, is_new] = index.try_emplace(std::string(key), 0);
    if (!is_new) {
        const Id older = place->second;
        const std::string same(key);
        remove(older);
        replaced_.push_back(older);
        return open(machine, index, same, flow);
    }
    place->second = ++last_id_;
    Transaction& transaction = transactions_[last_id_];
    transaction.machine = machine;
    transaction.flow = flow;
    transaction.reliable = flow.reliable;
    transaction.key = &place->first;
    return last_id_;
}

void Engine::remove(Id id) {
    const auto found = transactions_.find(id);
    Transaction& transaction = found->second;
    for (const TimerQueue::Handle timer : transaction.timers) {
        if (timer != TimerQueue::none) queue_.disarm(timer);
    }
    Index& index = is_client(transaction.machine) ? clients_ : servers_;
    index.erase(index.find(*transaction.key));
    transactions_.erase(found);
}

void Engine::arm(Id id, Transaction& transaction, std::uint8_t event, std::int64_t delay_ns,
                 std::int64_t now_ns) {
    TimerQueue::Handle& timer = transaction.timers[event];
    if (timer != TimerQueue::none) queue_.disarm(timer);
    timer = queue_.arm(now_ns, delay_ns, id, event);
}

void Engine::enter(Transaction& transaction, std::uint8_t state) {
    if (transaction.state == state) return;
    transaction.state = state;
    for (std::uint8_t event = 0; event < most_events; ++event) {
        TimerQueue::Handle& timer = transaction.timers[event];
        if (timer == TimerQueue::none || step(transaction.machine, state, event).ruled) continue;
        queue_.disarm(timer);
        timer = TimerQueue::none;
    }
}

// The machines.

Engine::Outcome Engine::apply(Id id, Transaction& transaction, std::uint8_t event, std::string_view given,
                              std::int64_t now_ns) {
    const Step found = step(transaction.machine, transaction.state, event);
    if (!found.ruled) return {};
    Outcome outcome;
    switch (found.action) {
        case Action::nothing:
            break;
        case Action::deliver:
            outcome.deliver = true;
            break;
        case Action::repeat:
            outcome.send_last = true;
            break;
        case Action::end:
            outcome.ended = true;
            break;
        case Action::time_out:
            outcome.timed_out = outcome.ended = true;
            break;
        case Action::fail:
            outcome.unsent = outcome.ended = true;
            break;
        default:
            outcome = is_client(transaction.machine)
                          ? act_as_client(id, transaction, found.action, given, now_ns)
                          : act_as_server(id, transaction, found.action, given, now_ns);
    }
    enter(transaction, found.next);
    return outcome;
}

Engine::Outcome Engine::act_as_client(Id id, Transaction& transaction, Action action, std::string_view given,
                                      std::int64_t now_ns) {
    using Invite = invite_client::Event;
    using Request = request_client::Event;
    Outcome outcome;
    std::int64_t& wait_ns = transaction.repeat_after_ns;
    switch (action) {
        case Action::repeat_invite:
            if (wait_ns == 0) break;  // Abandoned.
            wait_ns *= 2;             // Timer A doubles without a cap.
            arm(id, transaction, number(Invite::timer_a), wait_ns, now_ns);
            outcome.send_last = true;
            break;
        case Action::abandon:
            wait_ns = 0;
            break;
        case Action::accept:
            forget(transaction.last);  // The user acknowledges the 2xx.
            arm(id, transaction, number(Invite::timer_m), timers_.timeout_ns(), now_ns);
            outcome.deliver = true;
            break;
        case Action::acknowledge:
            transaction.last = make_ack(transaction.last, given);
            arm(id, transaction, number(Invite::timer_d),
                transaction.reliable ? 0 : timers_.completed_invite_ns, now_ns);
            outcome.send_last = outcome.deliver = true;
            break;
        case Action::repeat_request:
            wait_ns = std::min(2 * wait_ns, timers_.t2_ns);
            arm(id, transaction, number(Request::timer_e), wait_ns, now_ns);
            outcome.send_last = true;
            break;
        case Action::repeat_slowly:
            arm(id, transaction, number(Request::timer_e), timers_.t2_ns, now_ns);
            outcome.send_last = true;
            break;
        case Action::finish:
            forget(transaction.last);
            arm(id, transaction, number(Request::timer_k), transaction.reliable ? 0 : timers_.t4_ns, now_ns);
            outcome.deliver = true;
            break;
        default:
            assert(false && "an action of a server");
    }
    return outcome;
}

Engine::Outcome Engine::act_as_server(Id id, Transaction& transaction, Action action, std::string_view given,
                                      std::int64_t now_ns) {
    using Invite = invite_server::Event;
    Outcome outcome;
    std::int64_t& wait_ns = transaction.repeat_after_ns;
    const bool reliable = transaction.reliable;
    switch (action) {
        case Action::try_later:
        case Action::repeat_or_try:
            if (transaction.last.empty()) {
                transaction.last = std::exchange(transaction.trying, {});
                outcome.send_last = !transaction.last.empty();
            } else {
                outcome.send_last = action == Action::repeat_or_try;
            }
            break;
        case Action::send:
            transaction.last = given;
            forget(transaction.trying);
            outcome.send_given = true;
            break;
        case Action::send_success:
            // The user repeats the 2xx, and a repeated INVITE is absorbed: neither message is kept.
            forget(transaction.last);
            forget(transaction.trying);
            arm(id, transaction, number(Invite::timer_l), timers_.timeout_ns(), now_ns);
            outcome.send_given = true;
            break;
        case Action::send_again:
            outcome.send_given = true;
            break;
        case Action::refuse:
            transaction.last = given;
            forget(transaction.trying);
            wait_ns = timers_.t1_ns;
            arm(id, transaction, number(Invite::timer_h), timers_.timeout_ns(), now_ns);
            if (!reliable) arm(id, transaction, number(Invite::timer_g), wait_ns, now_ns);
            outcome.send_given = true;
            break;
        case Action::repeat_refusal:
            wait_ns = std::min(2 * wait_ns, timers_.t2_ns);
            arm(id, transaction, number(Invite::timer_g), wait_ns, now_ns);
            outcome.send_last = true;
            break;
        case Action::confirm:
            arm(id, transaction, number(Invite::timer_i), reliable ? 0 : timers_.t4_ns, now_ns);
            break;
        case Action::answer:
            transaction.last = given;
            arm(id, transaction, number(request_server::Event::timer_j), reliable ? 0 : timers_.timeout_ns(),
                now_ns);
            outcome.send_given = true;
            break;
        default:
            assert(false && "an action of a client");
    }
    return outcome;
}

void Engine::report(Id id, Transaction& transaction, const Outcome& outcome, std::vector<Output>& outputs) {
    if (outcome.send_last) outputs.push_back({Kind::send, id, transaction.last, transaction.flow});
    if (!outcome.ended) return;
    const Kind kind = outcome.timed_out ? Kind::timed_out : outcome.unsent ? Kind::unsent : Kind::ended;
    outputs.push_back({kind, id, {}, {}});
    remove(id);
}

// Keys.

std::string_view Engine::client_key(std::string_view branch, std::string_view method) {
    key_.assign(branch);
    key_ += separator;
    key_ += method;
    return key_;
}

// An ACK and a CANCEL match their INVITE. A branch from before RFC 3261 is not unique, so that the key has
// the fields that identify a request as well (RFC 3261 9.2, 17.2.3).
std::string_view Engine::server_key(const RequestFields& fields, std::string_view method) {
    key_.assign(fields.branch.value_or(std::string_view{}));
    key_ += separator;
    for (const char character : fields.host)
        key_ += wire::to_lower(character);
    key_ += separator;
    if (fields.port) key_ += std::to_string(*fields.port);
    key_ += separator;
    key_ += method;
    if (fields.branch && fields.branch->starts_with(magic_cookie)) return key_;
    key_ += separator;
    key_ += fields.call_id;
    key_ += separator;
    key_ += std::to_string(fields.cseq);
    key_ += separator;
    key_ += fields.from_tag;
    return key_;
}

RequestFields request_fields(const wire::Message& message) {
    RequestFields fields;
    fields.method = message.head.method;
    fields.branch = message.via.branch;
    fields.host = message.via.host;
    fields.port = message.via.port;
    fields.call_id = message.call_id;
    fields.cseq = message.cseq.number;
    if (message.from) fields.from_tag = wire::tag_of(message.from->params);
    return fields;
}

ResponseFields response_fields(const wire::Message& message) {
    return {message.head.status, message.via_count, message.via.branch.value_or(std::string_view{}),
            message.cseq.method, message.to_text};
}

}  // namespace trunkline::signalling
