#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader.hpp"
#include "source_guard.hpp"
#include "trunkline/signalling/service.hpp"

/// The signalling engine as Python has it: times in seconds, messages as objects of `sip.message.message`.
namespace trunkline::signalling {

namespace nb = nanobind;

class PythonEngine {
  public:
    /// `limits` is a `sip.message.parser.Limits`, `timers` a `sip.timers.Timers`.
    PythonEngine(nb::object reader, nb::object limits, const nb::object& timers, std::size_t most_servers);

    nb::tuple receive(const nb::bytes& data, const std::string& host, std::uint16_t port, std::int32_t socket,
                      bool reliable, bool opens, double now_s);
    nb::tuple take_request(const nb::tuple& fields, const nb::bytes& trying, const nb::tuple& flow,
                           bool opens, double now_s);
    nb::tuple take_response(const nb::tuple& fields, double now_s);

    Id open_server(const nb::tuple& fields, const nb::bytes& trying, const nb::tuple& flow, double now_s);
    Id start_client(const nb::bytes& wire, std::string_view method, std::string_view branch,
                    const nb::tuple& flow, double now_s);
    Id resume_invite(const nb::bytes& wire, std::string_view branch, const nb::tuple& flow);
    bool respond(Id id, std::uint16_t status, const nb::bytes& wire, double now_s);
    nb::tuple cancel(Id id, const nb::bytes& reason, double now_s);
    void abandon(Id id, double now_s);
    nb::list give_up(Id id, double now_s);
    void expire(Id id, double now_s);
    nb::list fail_transport(Id id, double now_s);
    void release(Id id) { service_.locked()->release(id); }
    void clear() { service_.locked()->clear(); }
    nb::list advance(double now_s);

    /// When something is due; infinite when no timer runs.
    double due_s();
    bool is_wanted(Id id) { return service_.locked()->is_wanted(id); }
    Id find_wanted(const nb::bytes& method, const nb::bytes& branch);
    nb::object state_of(Id id);
    std::size_t transactions();
    std::size_t timers() { return service_.locked()->timers(); }

    // The thread.

    std::int32_t add_socket(int descriptor) { return service_.add_socket(descriptor); }
    void set_reading(std::int32_t socket, bool reading) { service_.set_reading(socket, reading); }
    void remove_socket(std::int32_t socket) { service_.remove_socket(socket); }
    bool note_served(double now_s);
    void set_guard(const PythonSourceGuard& guard) { service_.set_guard(guard.shared()); }
    void set_tracing(bool tracing) { service_.set_tracing(tracing); }
    void set_opening(bool opening) { service_.set_opening(opening); }
    int wake_descriptor() const { return service_.wake_descriptor(); }
    nb::list take_kept(std::size_t most);
    void stop() { service_.stop(); }

    /// Adds the class, and the kinds as numbers, to the module.
    static void define(nb::module_& module);

  private:
    /// A verdict without pointers into the engine.
    struct Answer {
        Kind kind = Kind::ignored;
        Id id = 0;
        std::optional<std::string> send;
    };
    static Answer copied(const Verdict& verdict);
    static nb::tuple told(const Answer& answer);
    static nb::list listed(std::vector<Output>& outputs);
    nb::tuple found_in(const Kept& kept);

    nb::object reader_object_, limits_object_;
    wire::Reader& reader_;
    Service service_;
    wire::Message message_;
};

}  // namespace trunkline::signalling
