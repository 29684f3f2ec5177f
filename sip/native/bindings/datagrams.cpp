#include "datagrams.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cerrno>

#include "trunkline/signalling/endpoint.hpp"

namespace trunkline::signalling {

std::size_t DatagramReader::receive(int socket, std::size_t most) {
    count_ = place_ = dropped_ = 0;
    count_ = static_cast<std::size_t>(std::max(0, batch_.receive(socket, most)));
    return count_;
}

nb::object DatagramReader::next(const nb::object& is_trusted, double now_s) {
    const std::int64_t now_ns = to_ns(now_s);
    while (place_ < count_) {
        const std::string_view data = batch_.data(place_);
        const Endpoint source = batch_.source(place_);
        ++place_;
        if (is_keep_alive(data)) continue;
        const SourceGuard::Answer answer = judge(data, source, is_trusted, now_ns);
        if (answer == SourceGuard::Answer::drop) {
            ++dropped_;
            continue;
        }
        return nb::make_tuple(nb::bytes(data.data(), data.size()),
                              nb::make_tuple(nb::str(host_of(source).c_str()), port_of(source)),
                              answer == SourceGuard::Answer::known);
    }
    return nb::none();
}

SourceGuard::Answer DatagramReader::judge(std::string_view data, const Endpoint& source,
                                          const nb::object& is_trusted, std::int64_t now_ns) {
    if (guard_ == nullptr) return SourceGuard::Answer::known;
    const Endpoint origin = guard_->origin_of(data, source);
    const auto answer = guard_->judge(data, origin, true, now_ns);
    if (answer != SourceGuard::Answer::ask) return answer;
    const bool trusted = nb::cast<bool>(nb::bool_(is_trusted(nb::str(host_of(origin).c_str()))));
    return guard_->judge(data, origin, true, now_ns,
                         trusted ? SourceGuard::Trust::yes : SourceGuard::Trust::no);
}

nb::object DatagramReader::arrived_at_s() const {
    const auto at_ns = count_ == 0 ? std::nullopt : batch_.arrived_at_ns();
    return at_ns ? nb::object(nb::float_(static_cast<double>(*at_ns) / 1e9)) : nb::none();
}

int send_datagram_to(int socket, const nb::bytes& data, const std::string& host, std::uint16_t port) {
    const auto remote = endpoint_of(host, port);
    if (!remote) return EINVAL;
    return send_datagram(socket, {data.c_str(), data.size()}, *remote);
}

void DatagramReader::define(nb::module_& module) {
    nb::class_<DatagramReader>(module, "DatagramReader")
        .def(nb::init<const PythonSourceGuard*>(), nb::arg("guard").none())
        .def("receive", &DatagramReader::receive)
        .def("next", &DatagramReader::next, nb::arg("is_trusted").none(), nb::arg("now_s"))
        .def_prop_ro("dropped", &DatagramReader::dropped)
        .def_prop_ro("arrived_at_s", &DatagramReader::arrived_at_s);
    module.def("send_datagram", &send_datagram_to, nb::arg("socket"), nb::arg("data"), nb::arg("host"),
               nb::arg("port"));
}

}  // namespace trunkline::signalling
