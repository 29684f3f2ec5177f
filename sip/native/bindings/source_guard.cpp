#include "source_guard.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "trunkline/signalling/endpoint.hpp"

namespace trunkline::signalling {

namespace {

/// Text that is no address is one source together with all other such text.
Endpoint endpoint(const std::string& host, std::uint16_t port = 0) {
    return endpoint_of(host, port).value_or(Endpoint{});
}

SourceGuard::Trust trust_of(int trust) {
    if (trust < 0 || trust > static_cast<int>(SourceGuard::Trust::yes)) {
        throw nb::value_error("the application's word on a host is unasked, no or yes");
    }
    return static_cast<SourceGuard::Trust>(trust);
}

SourceLimits limits_of(const nb::object& settings) {
    const auto read = [&settings](const char* name, auto& value) {
        value = nb::cast<std::decay_t<decltype(value)>>(settings.attr(name));
    };
    SourceLimits limits;
    read("answer_unknown_sources", limits.answer_unknown_sources);
    read("answer_interval_s", limits.answer_interval_s);
    read("rate_per_s", limits.rate_per_s);
    read("burst", limits.burst);
    read("crowd_rate_per_s", limits.crowd_rate_per_s);
    read("crowd_burst", limits.crowd_burst);
    read("malformed_score", limits.malformed_score);
    read("ban_score", limits.ban_score);
    read("score_decay_per_s", limits.score_decay_per_s);
    read("ban_s", limits.ban_s);
    read("max_ban_s", limits.max_ban_s);
    read("ban_memory_s", limits.ban_memory_s);
    read("slow_after_failures", limits.slow_after_failures);
    read("slow_s", limits.slow_s);
    read("max_auth_failures", limits.max_auth_failures);
    read("auth_memory_s", limits.auth_memory_s);
    read("auth_ban_s", limits.auth_ban_s);
    read("trust_s", limits.trust_s);
    read("max_sources", limits.max_sources);
    limits.fronts = Fronts(nb::cast<std::vector<std::string>>(settings.attr("fronts")));
    return limits;
}

nb::str text_of(std::string_view text) {
    return nb::str(text.data(), text.size());
}

}  // namespace

PythonSourceGuard::PythonSourceGuard(const nb::object& settings)
    : guard_(std::make_shared<SourceGuard>(limits_of(settings))) {}

nb::tuple PythonSourceGuard::origin_of(const nb::bytes& data, const std::string& host, std::uint16_t port) {
    const Endpoint origin = guard_->origin_of({data.c_str(), data.size()}, endpoint(host, port));
    return nb::make_tuple(nb::str(host_of(origin).c_str()), origin.size == 0 ? 0 : port_of(origin));
}

int PythonSourceGuard::judge(const nb::bytes& data, const std::string& host, std::uint16_t port,
                             bool is_datagram, double now_s, int trust) {
    return static_cast<int>(guard_->judge({data.c_str(), data.size()}, endpoint(host, port), is_datagram,
                                          to_ns(now_s), trust_of(trust)));
}

int PythonSourceGuard::judge_connection(const std::string& host, double now_s, int trust) {
    return static_cast<int>(guard_->judge_connection(endpoint(host), to_ns(now_s), trust_of(trust)));
}

int PythonSourceGuard::judge_host(const std::string& host, double now_s, int trust) {
    return static_cast<int>(guard_->judge_host(endpoint(host), to_ns(now_s), trust_of(trust)));
}

bool PythonSourceGuard::knows(const std::string& host) {
    return guard_->knows(endpoint(host));
}

bool PythonSourceGuard::may_answer(const std::string& host, double now_s) {
    return guard_->may_answer(endpoint(host), to_ns(now_s));
}

void PythonSourceGuard::on_malformed(const std::string& host, double now_s) {
    guard_->on_malformed(endpoint(host), to_ns(now_s));
}

void PythonSourceGuard::trust(const std::string& host, double now_s) {
    guard_->trust(endpoint(host), to_ns(now_s));
}

void PythonSourceGuard::on_auth_failure(const std::string& host, bool is_trusted, double now_s) {
    guard_->on_auth_failure(endpoint(host), is_trusted, to_ns(now_s));
}

void PythonSourceGuard::on_auth_success(const std::string& host, double now_s) {
    guard_->on_auth_success(endpoint(host), to_ns(now_s));
}

void PythonSourceGuard::set_own(const nb::object& own) {
    if (own.is_none()) {
        guard_->set_own(std::nullopt);
    } else {
        guard_->set_own(endpoint_of(nb::cast<std::string>(own[0]), nb::cast<std::uint16_t>(own[1])));
    }
}

nb::dict PythonSourceGuard::banned(double now_s) {
    nb::dict found;
    for (const auto& [source, left_s] : guard_->banned(to_ns(now_s)))
        found[text_of(source)] = left_s;
    return found;
}

nb::list PythonSourceGuard::known() {
    nb::list found;
    for (const std::string& host : guard_->known())
        found.append(text_of(host));
    return found;
}

nb::dict PythonSourceGuard::rejected() {
    nb::dict found;
    const auto counts = guard_->rejected();
    for (std::size_t place = 0; place < counts.size(); ++place) {
        if (counts[place] != 0) found[text_of(name_of(static_cast<Reason>(place)))] = counts[place];
    }
    return found;
}

nb::tuple PythonSourceGuard::take_bans() {
    nb::list told;
    const auto [bans, left_out] = guard_->take_bans();
    for (const Ban& ban : bans)
        told.append(nb::make_tuple(text_of(ban.source), text_of(name_of(ban.reason)), ban.for_s, ban.count));
    return nb::make_tuple(std::move(told), left_out);
}

void PythonSourceGuard::define(nb::module_& module) {
    using Answer = SourceGuard::Answer;
    using Trust = SourceGuard::Trust;
    module.attr("SOURCE_DROP") = static_cast<int>(Answer::drop);
    module.attr("SOURCE_UNKNOWN") = static_cast<int>(Answer::unknown);
    module.attr("SOURCE_KNOWN") = static_cast<int>(Answer::known);
    module.attr("SOURCE_ASK") = static_cast<int>(Answer::ask);
    module.attr("TRUST_UNASKED") = static_cast<int>(Trust::unasked);
    module.attr("TRUST_NO") = static_cast<int>(Trust::no);
    module.attr("TRUST_YES") = static_cast<int>(Trust::yes);
    nb::class_<PythonSourceGuard>(module, "SourceGuard")
        .def(nb::init<const nb::object&>(), nb::arg("settings"))
        .def("origin_of", &PythonSourceGuard::origin_of)
        .def("judge", &PythonSourceGuard::judge)
        .def("judge_connection", &PythonSourceGuard::judge_connection)
        .def("judge_host", &PythonSourceGuard::judge_host)
        .def("knows", &PythonSourceGuard::knows)
        .def("may_answer", &PythonSourceGuard::may_answer)
        .def("on_malformed", &PythonSourceGuard::on_malformed)
        .def("trust", &PythonSourceGuard::trust)
        .def("on_auth_failure", &PythonSourceGuard::on_auth_failure)
        .def("on_auth_success", &PythonSourceGuard::on_auth_success)
        .def("set_own", &PythonSourceGuard::set_own, nb::arg("own").none())
        .def("set_severe", &PythonSourceGuard::set_severe)
        .def("refresh", &PythonSourceGuard::refresh)
        .def("banned", &PythonSourceGuard::banned)
        .def("known", &PythonSourceGuard::known)
        .def("rejected", &PythonSourceGuard::rejected)
        .def("take_bans", &PythonSourceGuard::take_bans)
        .def_prop_ro("largest", &PythonSourceGuard::largest);
}

}  // namespace trunkline::signalling
