#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "trunkline/signalling/source_guard.hpp"

/// The guard of sources as Python has it: hosts as text, times in seconds.
namespace trunkline::signalling {

namespace nb = nanobind;

inline std::int64_t to_ns(double seconds) {
    return std::llround(seconds * 1e9);
}

/// It holds no object of Python: the application's word is a number that the caller hands over.
class PythonSourceGuard {
  public:
    /// `settings` is a `sip.protection.rate_limits.ProtectionSettings`.
    explicit PythonSourceGuard(const nb::object& settings);

    const std::shared_ptr<SourceGuard>& shared() const { return guard_; }

    nb::tuple origin_of(const nb::bytes& data, const std::string& host, std::uint16_t port);
    int judge(const nb::bytes& data, const std::string& host, std::uint16_t port, bool is_datagram,
              double now_s, int trust);
    int judge_connection(const std::string& host, double now_s, int trust);
    int judge_host(const std::string& host, double now_s, int trust);
    bool knows(const std::string& host);
    bool may_answer(const std::string& host, double now_s);
    void on_malformed(const std::string& host, double now_s);
    void trust(const std::string& host, double now_s);
    void on_auth_failure(const std::string& host, bool is_trusted, double now_s);
    void on_auth_success(const std::string& host, double now_s);
    void set_own(const nb::object& own);
    void set_severe(bool severe) { guard_->set_severe(severe); }
    void refresh(double now_s) { guard_->refresh(to_ns(now_s)); }
    nb::dict banned(double now_s);
    nb::list known();
    nb::dict rejected();
    nb::tuple take_bans();
    std::size_t largest() { return guard_->largest(); }

    /// Adds the class, and its answers as numbers, to the module.
    static void define(nb::module_& module);

  private:
    std::shared_ptr<SourceGuard> guard_;
};

}  // namespace trunkline::signalling
