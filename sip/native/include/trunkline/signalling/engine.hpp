#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trunkline/signalling/flow.hpp"
#include "trunkline/signalling/timer_queue.hpp"
#include "trunkline/signalling/transactions.hpp"
#include "trunkline/wire/message.hpp"

namespace trunkline::signalling {

/// Number of a transaction, never used twice; 0 is none.
using Id = std::uint64_t;

/// The timer values of a user agent, in nanoseconds (RFC 3261 table 4, RFC 6026 8).
struct Timers {
    std::int64_t t1_ns = 500'000'000;
    std::int64_t t2_ns = 4'000'000'000;
    std::int64_t t4_ns = 5'000'000'000;
    /// Delay before an unanswered INVITE gets a 100 (RFC 3261 17.2.1).
    std::int64_t trying_ns = 200'000'000;
    /// Timer D over UDP.
    std::int64_t completed_invite_ns = 32'000'000'000;

    /// Timers B, F, H, J, L and M.
    std::int64_t timeout_ns() const { return 64 * t1_ns; }
};

/// What a request is matched by.
struct RequestFields {
    std::string_view method;
    std::optional<std::string_view> branch;
    /// Sent-by of the top Via.
    std::string_view host;
    std::optional<std::uint16_t> port;
    std::string_view call_id;
    std::uint32_t cseq = 0;
    std::string_view from_tag;
};

/// What a response is matched by, and what the ACK of a refusal takes from it.
struct ResponseFields {
    std::uint16_t status = 0;
    std::size_t via_count = 0;
    std::string_view branch;
    /// Method of the CSeq.
    std::string_view method;
    /// Value of To.
    std::string_view to;
};

/// What a message is to the user of the engine.
enum class Kind : std::uint8_t {
    /// Not plain: `sip.message.parser` has to read it.
    unread,
    /// A response that matches nothing.
    ignored,
    /// A repeated request, or an ACK of a refusal; all is done.
    repeated,
    /// A response that needs its user no more; all is done.
    absorbed,
    /// A new request, with the transaction that was opened for it, if any.
    request,
    /// A CANCEL, with the transaction of its INVITE, if any.
    cancel,
    /// An ACK of a 2xx, or of a response without a transaction.
    ack,
    /// A response of one of our requests.
    response,
    /// A 2xx of an INVITE without a transaction.
    stray,

    // What comes with time.
    /// Bytes to be sent on the flow of a transaction.
    send,
    /// A client transaction ended without a final response: it timed out, or it could not be sent.
    timed_out,
    unsent,
    /// A transaction ended.
    ended,
};

/// True for a response to a request of ours.
constexpr bool is_matched(Kind kind) {
    return kind == Kind::response || kind == Kind::absorbed;
}

/// Whether a new request opens a server transaction.
enum class Opening : std::uint8_t {
    never,
    /// Unless there are too many.
    if_room,
    /// In any case, in place of an older one of the same key.
    always,
};

/// What became of a message; the pointers are good until the engine is used again.
struct Verdict {
    Kind kind = Kind::ignored;
    Id id = 0;
    /// To be sent on the transaction's flow, if anything.
    const std::string* send = nullptr;
    /// Flow of the transaction, if there is one.
    const Flow* flow = nullptr;
};

/// What came with time, or with a command.
struct Output {
    Kind kind = Kind::ended;
    Id id = 0;
    std::string bytes;
    Flow flow;
};

/// All transactions of one user agent: matches messages to them, runs their machines and timers.
///
/// What a caller hands over to be sent for the first time it sends itself; what is repeated comes out here.
class Engine {
  public:
    /// Beyond `most_servers` server transactions a new request opens none.
    Engine(const Timers& timers, std::size_t most_servers);

    // Messages.

    /// Take a request. A transaction that it belongs to goes on on `flow`; an ACK or a CANCEL opens none.
    Verdict take_request(const RequestFields& fields, const Flow& flow, Opening opening, std::int64_t now_ns);

    /// Keep the 100 of a new INVITE: without it, nobody but the user answers the INVITE.
    void keep_trying(Id id, std::string trying);

    /// Send the 100 of an INVITE without waiting for its user, of whom it is known that it will be late;
    /// null when there is nothing to send.
    const std::string* try_now(Id id, std::int64_t now_ns);

    Verdict take_response(const ResponseFields& fields, std::int64_t now_ns);

    // Commands of users. Those that name a transaction do nothing once it has ended.

    /// Start the client transaction of a request, whose bytes the caller sends.
    Id start_client(std::string_view wire, std::string_view method, std::string_view branch, const Flow& flow,
                    std::int64_t now_ns);

    /// Resume the client transaction of an INVITE that another process sent and that was not answered yet.
    Id resume_invite(std::string_view wire, std::string_view branch, const Flow& flow);

    /// Take a user's response; true if the caller is to send its bytes.
    bool respond(Id id, std::uint16_t status, std::string_view wire, std::int64_t now_ns);

    /// Start the CANCEL of a pending INVITE, and let the INVITE end without a final response after the
    /// timeout; 0 when it is not pending, or is being cancelled. The caller sends the bytes of the CANCEL
    /// (`wire_of`).
    Id cancel(Id invite, std::string_view reason, std::int64_t now_ns);

    /// Stop repeating an INVITE that has no response.
    void abandon(Id id, std::int64_t now_ns);

    /// Drop an INVITE that has no final response.
    void give_up(Id id, std::int64_t now_ns, std::vector<Output>& outputs);

    /// Let an INVITE end after the timeout if it has no final response by then.
    void expire(Id id, std::int64_t now_ns);

    /// The flow of a transaction has broken, or its bytes were not sent.
    void fail_transport(Id id, std::int64_t now_ns, std::vector<Output>& outputs);

    /// Forget a transaction at once.
    void release(Id id);

    /// Forget everything.
    void clear();

    /// Continue a transaction on another flow.
    void set_flow(Id id, const Flow& flow);

    // Time.

    /// Do all that is due.
    void advance(std::int64_t now_ns, std::vector<Output>& outputs);

    /// A time before which nothing is due; nothing when no timer runs.
    std::optional<std::int64_t> next_due_ns() const;

    // What there is.

    /// True while no response has come to a request and nobody has abandoned it.
    bool is_wanted(Id id) const;
    /// The client transaction of a method and branch while it is wanted; 0 otherwise.
    Id find_wanted(std::string_view method, std::string_view branch);
    /// Number of the state of a transaction's machine; nothing once it has ended.
    std::optional<std::uint8_t> state_of(Id id) const;
    const Flow* flow_of(Id id) const;
    /// The bytes of a client transaction's request, while they may be needed.
    std::string_view wire_of(Id id) const;
    std::size_t clients() const { return clients_.size(); }
    std::size_t servers() const { return servers_.size(); }
    std::size_t timers() const { return queue_.size(); }

  private:
    static constexpr std::size_t most_events = 11;

    struct Transaction {
        Machine machine = Machine::invite_client;
        std::uint8_t state = 0;
        Flow flow;
        /// Of the flow on which it was opened: repetitions over another do not change its timers.
        bool reliable = false;
        /// Running timers by their events.
        std::array<TimerQueue::Handle, most_events> timers{};
        /// Wait before the next repetition; 0 for an INVITE that was abandoned.
        std::int64_t repeat_after_ns = 0;
        /// Of a client the request, then the ACK of its refusal; of a server the last response.
        std::string last;
        /// The 100 of a server's INVITE that has no response yet.
        std::string trying;
        const std::string* key = nullptr;
    };

    /// What an action asks of the caller.
    struct Outcome {
        bool send_given = false;
        bool send_last = false;
        bool deliver = false;
        bool timed_out = false;
        bool unsent = false;
        bool ended = false;
    };

    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    using Index = std::unordered_map<std::string, Id, TextHash, std::equal_to<>>;

    Transaction* find(Id id);
    const Transaction* find(Id id) const;
    Id find_by(const Index& index, std::string_view key) const;
    Id open(Machine machine, Index& index, std::string_view key, const Flow& flow);
    Id start(Machine machine, std::string_view wire, std::string_view method, std::string_view branch,
             const Flow& flow, std::int64_t now_ns);
    void remove(Id id);
    void arm(Id id, Transaction& transaction, std::uint8_t event, std::int64_t delay_ns, std::int64_t now_ns);
    /// Enter a state, and stop the timers that mean nothing in it.
    void enter(Transaction& transaction, std::uint8_t state);

    /// Run one event through a machine. `given` is what the action is about: a response to send, or the To
    /// of a refusal.
    Outcome apply(Id id, Transaction& transaction, std::uint8_t event, std::string_view given,
                  std::int64_t now_ns);
    Outcome act_as_client(Id id, Transaction& transaction, Action action, std::string_view given,
                          std::int64_t now_ns);
    Outcome act_as_server(Id id, Transaction& transaction, Action action, std::string_view given,
                          std::int64_t now_ns);
    void report(Id id, Transaction& transaction, const Outcome& outcome, std::vector<Output>& outputs);

    std::string_view client_key(std::string_view branch, std::string_view method);
    std::string_view server_key(const RequestFields& fields, std::string_view method);

    Timers timers_;
    std::size_t most_servers_;
    TimerQueue queue_;
    std::unordered_map<Id, Transaction> transactions_;
    Index clients_, servers_;
    /// Those that gave way to another of their key; their users are told with time.
    std::vector<Id> replaced_;
    Id last_id_ = 0;
    std::string key_;
};

/// Fields of a plain message.
RequestFields request_fields(const wire::Message& message);
ResponseFields response_fields(const wire::Message& message);

}  // namespace trunkline::signalling
