#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trunkline/signalling/engine.hpp"

/// An engine with virtual time, and what it did.
struct Driver {
    struct Sent {
        double at_s;
        std::string bytes;
    };
    struct Told {
        double at_s;
        trunkline::signalling::Kind kind;
        trunkline::signalling::Id id;
    };

    static constexpr double second = 1e9;

    trunkline::signalling::Engine engine;
    std::int64_t now_ns = 0;
    std::vector<Sent> sent;
    /// What users were told, but for bytes to be sent.
    std::vector<Told> told;

    explicit Driver(std::size_t most_servers = 1000, const trunkline::signalling::Timers& timers = {})
        : engine(timers, most_servers) {}

    double now_s() const { return static_cast<double>(now_ns) / second; }

    void take(const std::vector<trunkline::signalling::Output>& outputs) {
        for (const auto& output : outputs) {
            if (output.kind == trunkline::signalling::Kind::send) {
                sent.push_back({now_s(), output.bytes});
            } else {
                told.push_back({now_s(), output.kind, output.id});
            }
        }
    }

    void take(const trunkline::signalling::Verdict& verdict) {
        if (verdict.send != nullptr) sent.push_back({now_s(), *verdict.send});
        told.push_back({now_s(), verdict.kind, verdict.id});
    }

    void advance(double seconds) {
        const auto end = now_ns + static_cast<std::int64_t>(seconds * second);
        std::vector<trunkline::signalling::Output> outputs;
        while (engine.next_due_ns() && *engine.next_due_ns() <= end) {
            now_ns = std::max(now_ns, *engine.next_due_ns());
            engine.advance(now_ns, outputs);
            take(outputs);
            outputs.clear();
        }
        now_ns = end;
    }

    trunkline::signalling::Verdict respond_to(std::string_view branch, std::uint16_t status,
                                              std::string_view method = "INVITE", std::size_t vias = 1) {
        const auto verdict = engine.take_response({status, vias, branch, method, "<sip:b@h>;tag=2"}, now_ns);
        take(verdict);
        return verdict;
    }

    trunkline::signalling::Verdict request(std::string_view method, std::string_view branch,
                                           bool opens = true, bool reliable = false) {
        trunkline::signalling::RequestFields fields;
        fields.method = method;
        fields.branch = branch;
        fields.host = "h.example";
        fields.port = 5060;
        fields.call_id = "c";
        fields.cseq = 7;
        fields.from_tag = "1";
        return request(fields, opens, reliable);
    }

    trunkline::signalling::Verdict request(const trunkline::signalling::RequestFields& fields,
                                           bool opens = true, bool reliable = false) {
        trunkline::signalling::Flow flow;
        flow.reliable = reliable;
        const auto verdict = engine.take_request(
            fields, flow,
            opens ? trunkline::signalling::Opening::if_room : trunkline::signalling::Opening::never, now_ns);
        if (verdict.kind == trunkline::signalling::Kind::request && fields.method == "INVITE") {
            engine.keep_trying(verdict.id, "100");
        }
        take(verdict);
        return verdict;
    }

    bool respond(trunkline::signalling::Id id, std::uint16_t status, std::string_view wire) {
        const bool given = engine.respond(id, status, wire, now_ns);
        if (given) sent.push_back({now_s(), std::string(wire)});
        return given;
    }

    trunkline::signalling::Id start(std::string_view method, std::string_view branch, bool reliable = false,
                                    std::string_view wire = {}) {
        trunkline::signalling::Flow flow;
        flow.reliable = reliable;
        const std::string_view bytes = wire.empty() ? method : wire;
        const auto id = engine.start_client(bytes, method, branch, flow, now_ns);
        sent.push_back({now_s(), std::string(bytes)});
        return id;
    }

    std::vector<double> times() const {
        std::vector<double> found;
        for (const Sent& message : sent)
            found.push_back(message.at_s);
        return found;
    }

    std::size_t count(trunkline::signalling::Kind kind) const {
        std::size_t found = 0;
        for (const Told& one : told)
            found += one.kind == kind;
        return found;
    }

    /// When a transaction ended, in seconds; below 0 when it has not.
    double ended_at(trunkline::signalling::Id id) const {
        using trunkline::signalling::Kind;
        for (const Told& one : told) {
            const bool over =
                one.kind == Kind::ended || one.kind == Kind::timed_out || one.kind == Kind::unsent;
            if (over && one.id == id) return one.at_s;
        }
        return -1;
    }
};
