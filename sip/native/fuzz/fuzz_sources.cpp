// The guard of sources, told anything in any order, as the loop and the thread tell it: its memory is
// bounded, a gateway is always heard, and time that goes back does no harm.

#include <string>
#include <string_view>

#include "input.hpp"
#include "trunkline/signalling/endpoint.hpp"
#include "trunkline/signalling/source_guard.hpp"

using namespace trunkline;
using signalling::SourceGuard;
using Answer = SourceGuard::Answer;
using Trust = SourceGuard::Trust;

namespace {

constexpr std::size_t most_sources = 8;

signalling::SourceLimits limits() {
    signalling::SourceLimits made;
    made.burst = 3;
    made.ban_score = 10;
    made.max_auth_failures = 3;
    made.slow_after_failures = 1;
    made.max_sources = most_sources;
    made.fronts = signalling::Fronts({"10.0.0.0/27", "2001:db8::/60"});
    return made;
}

class Play {
  public:
    explicit Play(fuzz::Input& input) : input_(input), guard_(limits()), gateway_(peer("192.0.2.1")) {}

    void run() {
        while (!input_.empty()) {
            step();
            fuzz::require(guard_.largest() <= most_sources);
            fuzz::require(guard_.judge("INVITE ", gateway_, true, now_ns_, Trust::yes) == Answer::known);
            check_bans();
        }
    }

  private:
    static signalling::Endpoint peer(const std::string& host) {
        return signalling::endpoint_of(host, 5060).value_or(signalling::Endpoint{});
    }

    signalling::Endpoint stranger() {
        const std::uint8_t number = input_.byte();
        switch (number & 3) {
            case 0:
                return peer("2001:db8:0:" + std::to_string(number / 64) +
                            "::" + std::to_string(number / 4 % 4));
            case 1:
                return {};
            default:
                return peer("10.0.0." + std::to_string(number / 4));
        }
    }

    void step() {
        const std::uint8_t what = input_.byte();
        const signalling::Endpoint source = stranger();
        const auto trust = static_cast<Trust>(what >> 4 & 3);
        switch (what & 15) {
            case 0:
                now_ns_ += std::int64_t{input_.word()} * 10'000'000;
                break;
            case 1:
                now_ns_ -= std::int64_t{input_.byte()} * 1'000'000;
                break;
            case 2:
                guard_.on_malformed(source, now_ns_);
                break;
            case 3:
                guard_.on_auth_failure(source, trust == Trust::yes, now_ns_);
                break;
            case 4:
                guard_.on_auth_success(source, now_ns_);
                break;
            case 5:
                guard_.trust(source, now_ns_);
                break;
            case 6:
                guard_.may_answer(source, now_ns_);
                break;
            case 7:
                guard_.refresh(now_ns_);
                break;
            case 8:
                guard_.set_severe(trust == Trust::yes);
                break;
            case 9:
                guard_.judge_connection(source, now_ns_, trust);
                break;
            case 10:
                guard_.judge_host(source, now_ns_, trust);
                break;
            case 11:
                fuzz::require(guard_.take_bans().first.size() <= SourceGuard::most_bans_told);
                break;
            default:
                judge(source, trust);
        }
    }

    void judge(const signalling::Endpoint& source, Trust trust) {
        const std::uint8_t size = input_.byte();
        const auto bytes = input_.take(size);
        std::string data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (size & 1) data.insert(0, "INVITE \nX-Trunkline-Source: udp:");
        judge_origin(data, guard_.origin_of(data, source), trust);
    }

    void judge_origin(const std::string& data, const signalling::Endpoint& source, Trust trust) {
        const Answer answer = guard_.judge(data, source, true, now_ns_, trust);
        if (answer == Answer::ask) {
            fuzz::require(trust == Trust::unasked || trust == Trust::later);
            fuzz::require(guard_.judge(data, source, true, now_ns_, Trust::no) != Answer::known);
        }
    }

    void check_bans() {
        const auto banned = guard_.banned(now_ns_);
        fuzz::require(banned.size() <= most_sources);
        for (const auto& [source, left_s] : banned)
            fuzz::require(left_s > 0);
    }

    fuzz::Input& input_;
    SourceGuard guard_;
    const signalling::Endpoint gateway_;
    std::int64_t now_ns_ = 1'000'000'000;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Play(input).run();
    return 0;
}
