// An engine whose peers and users do anything in any order: no state goes back, every end is told once, and
// nothing is left when all timers have run out.

#include <map>
#include <string>
#include <vector>

#include "input.hpp"
#include "trunkline/signalling/engine.hpp"

using namespace trunkline;
using signalling::Id;
using signalling::Kind;

namespace {

constexpr std::uint16_t statuses[] = {100, 180, 183, 200, 202, 302, 401, 487, 486, 503, 603};
constexpr std::string_view methods[] = {"INVITE", "BYE", "ACK", "CANCEL", "OPTIONS"};
constexpr std::string_view invite =
    "INVITE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK0\r\nTo: <sip:b@h>\r\nCSeq: 1 INVITE\r\n\r\n";

class Play {
  public:
    explicit Play(fuzz::Input& input) : input_(input), engine_({}, 16) {}

    void run() {
        while (!input_.empty())
            step();
        for (const auto& [id, state] : states_) {
            engine_.respond(id, 500, "500", now_ns_);
            engine_.expire(id, now_ns_);
        }
        advance(400);
        fuzz::require(engine_.timers() == 0);
        fuzz::require(engine_.clients() + engine_.servers() == 0);
        for (const auto& [id, state] : states_)
            fuzz::require(ended_[id] == 1);
    }

  private:
    void step() {
        const std::uint8_t what = input_.byte();
        const std::string branch = (what & 8) != 0
                                       ? std::string("z9hG4bK") + static_cast<char>('a' + input_.byte() % 4)
                                       : std::string("old");
        const std::string_view method = methods[input_.byte() % std::size(methods)];
        const std::uint16_t status = statuses[input_.byte() % std::size(statuses)];
        signalling::Flow flow;
        flow.reliable = (what & 16) != 0;
        std::vector<signalling::Output> outputs;
        const Id id = states_.empty() ? 0 : std::next(states_.begin(), input_.byte() % states_.size())->first;
        switch (what & 7) {
            case 0:
                advance(input_.byte() / 4);
                break;
            case 1:
                if (method != "ACK" && method != "CANCEL") start(method, flow);
                break;
            case 2:
                request(method, branch, flow);
                break;
            case 3:
                engine_.respond(id, status, "response", now_ns_);
                break;
            case 4:
                engine_.take_response({status, 1, branch, method, "<sip:b@h>"}, now_ns_);
                break;
            case 5:
                if (const Id cancelled = engine_.cancel(id, {}, now_ns_)) note(cancelled);
                engine_.abandon(id, now_ns_);
                break;
            case 6:
                engine_.fail_transport(id, now_ns_, outputs);
                break;
            default:
                engine_.give_up(id, now_ns_, outputs);
        }
        take(outputs);
        check_states();
    }

    void start(std::string_view method, const signalling::Flow& flow) {
        // A branch of ours is never used twice.
        const std::string branch = "z9hG4bK" + std::to_string(states_.size());
        const std::string_view wire = method == "INVITE" ? invite : method;
        const Id id = engine_.start_client(wire, method, branch, flow, now_ns_);
        note(id);
        engine_.take_response({statuses[input_.byte() % std::size(statuses)], 1, branch, method, "<sip:b@h>"},
                              now_ns_);
    }

    void request(std::string_view method, const std::string& branch, const signalling::Flow& flow) {
        signalling::RequestFields fields;
        fields.method = method;
        fields.branch = branch;
        fields.host = "h";
        fields.call_id = "c";
        const auto verdict = engine_.take_request(fields, flow, signalling::Opening::if_room, now_ns_);
        if (verdict.kind != Kind::request || verdict.id == 0) return;
        engine_.keep_trying(verdict.id, "100");
        note(verdict.id);
    }

    void note(Id id) {
        fuzz::require(states_.emplace(id, 0).second);
        fuzz::require(ended_[id] == 0);
    }

    void advance(int seconds) {
        const std::int64_t end_ns = now_ns_ + seconds * std::int64_t{1'000'000'000};
        std::vector<signalling::Output> outputs;
        while (engine_.next_due_ns() && *engine_.next_due_ns() <= end_ns) {
            now_ns_ = std::max(now_ns_, *engine_.next_due_ns());
            engine_.advance(now_ns_, outputs);
            take(outputs);
            outputs.clear();
        }
        now_ns_ = end_ns;
    }

    void take(const std::vector<signalling::Output>& outputs) {
        for (const auto& output : outputs) {
            if (output.kind == Kind::send) {
                fuzz::require(!output.bytes.empty());
            } else {
                fuzz::require(++ended_[output.id] == 1);
            }
        }
    }

    void check_states() {
        for (auto& [id, state] : states_) {
            const auto now = engine_.state_of(id);
            fuzz::require(now ? *now >= state && ended_[id] == 0 : ended_[id] == 1);
            if (now) state = *now;
        }
    }

    fuzz::Input& input_;
    signalling::Engine engine_;
    std::int64_t now_ns_ = 0;
    std::map<Id, std::uint8_t> states_;
    std::map<Id, int> ended_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Play(input).run();
    return 0;
}
