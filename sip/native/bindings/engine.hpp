#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "reader.hpp"
#include "trunkline/signalling/engine.hpp"

/// The signalling engine as Python has it: times in seconds, messages as objects of `sip.message.message`.
namespace trunkline::signalling {

namespace nb = nanobind;

class PythonEngine {
  public:
    /// `limits` is a `sip.message.parser.Limits`, `timers` a `sip.timers.Timers`.
    PythonEngine(nb::object reader, nb::object limits, const nb::object& timers, std::size_t most_servers);

    nb::tuple receive(const nb::bytes& data, std::string_view host, std::uint16_t port, bool reliable,
                      bool opens, double now_s);
    nb::tuple take_request(const nb::tuple& fields, const nb::bytes& trying, bool reliable, bool opens,
                           double now_s);
    nb::tuple take_response(const nb::tuple& fields, double now_s);

    Id open_server(const nb::tuple& fields, const nb::bytes& trying, bool reliable, double now_s);
    Id start_client(const nb::bytes& wire, std::string_view method, std::string_view branch, bool reliable,
                    double now_s);
    Id resume_invite(const nb::bytes& wire, std::string_view branch, bool reliable);
    bool respond(Id id, std::uint16_t status, const nb::bytes& wire, double now_s);
    nb::tuple cancel(Id id, const nb::bytes& reason, double now_s);
    void abandon(Id id, double now_s);
    nb::list give_up(Id id, double now_s);
    void expire(Id id, double now_s);
    nb::list fail_transport(Id id, double now_s);
    void release(Id id) { engine_.release(id); }
    void clear() { engine_.clear(); }
    nb::list advance(double now_s);

    /// When something is due; infinite when no timer runs.
    double due_s() const;
    bool is_wanted(Id id) const { return engine_.is_wanted(id); }
    nb::object state_of(Id id) const;
    std::size_t transactions() const { return engine_.clients() + engine_.servers(); }
    std::size_t timers() const { return engine_.timers(); }

    /// Adds the class, and the kinds as numbers, to the module.
    static void define(nb::module_& module);

  private:
    nb::tuple verdict(const Verdict& verdict);
    nb::list taken();

    nb::object reader_object_, limits_object_;
    wire::Reader& reader_;
    Engine engine_;
    wire::Message message_;
    std::vector<Output> outputs_;
};

}  // namespace trunkline::signalling
