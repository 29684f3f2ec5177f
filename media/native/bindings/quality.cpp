// Quality of a stream: figures of both directions as RTCP tells them, and their history.

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "trunkline/graph/mix.hpp"
#include "trunkline/rtp/quality.hpp"

namespace nb = nanobind;

namespace trunkline::bindings {

namespace {

/// Values without data are None.
nb::object when(bool known, double value) {
    return known ? nb::cast(value) : nb::none();
}

nb::object score(std::uint16_t hundredths) {
    return when(hundredths != 0, hundredths / 100.0);
}

/// The fields of `QualityInterval`, in their order.
nb::tuple interval_fields(const rtp::QualityInterval& interval) {
    const bool reported = interval.sent_expected != 0;
    return nb::make_tuple(
        static_cast<double>(interval.ended_ns) / 1e9, interval.duration_ms, interval.expected, interval.lost,
        interval.discarded, interval.burst_hundredths / 100.0, interval.jitter_us / 1000.0,
        score(interval.mos_received), interval.sent_expected, interval.sent_lost,
        when(reported, interval.sent_jitter_us / 1000.0), score(interval.mos_sent),
        when(interval.round_trip_us != rtp::QualityInterval::no_round_trip, interval.round_trip_us / 1000.0));
}

nb::list intervals(const engine::StreamHandle& stream) {
    nb::list items;
    for (const rtp::QualityInterval& interval : stream.intervals()) {
        items.append(interval_fields(interval));
    }
    return items;
}

/// The fields of `StreamStats`, in their order.
nb::tuple stats(const engine::StreamHandle& stream) {
    const engine::StreamSnapshot now = stream.snapshot();
    const bool reported = now.far_reports != 0;
    return nb::make_tuple(
        now.packets_in, now.bytes_in, now.packets_out, now.bytes_out, now.lost, now.duplicates, now.late,
        now.dropped_foreign, now.dropped_invalid, now.dropped_unwanted, now.dropped_unauthentic,
        now.send_errors, now.rtcp_in, now.jitter_us / 1000.0, now.ssrc_in, now.ssrc_out, now.rtcp_out,
        now.suspects, now.ssrc_changes, now.collisions,
        when(now.round_trips != 0, now.round_trip_us / 1000.0),
        reported ? nb::cast(now.sent_lost) : nb::none(), when(reported, now.sent_jitter_us / 1000.0),
        score(now.mos_received), score(now.mos_sent), now.underruns);
}

/// What is read often, of many streams: the levels, and the packets, of both directions.
nb::tuple meter(engine::StreamHandle& stream) {
    const engine::StreamSnapshot snapshot = stream.snapshot();
    const bool metered = stream.detectors().runs(engine::DetectorSlots::Kind::level);
    const auto level_db = [&](std::uint32_t loudness_db) -> nb::object {
        return metered ? nb::cast(graph::level_dbov(0) - loudness_db) : nb::none();
    };
    return nb::make_tuple(level_db(snapshot.loudness_db), level_db(snapshot.sent_loudness_db),
                          snapshot.packets_in, snapshot.lost, snapshot.packets_out,
                          snapshot.far_reports != 0 ? nb::cast(snapshot.sent_lost) : nb::none());
}

}  // namespace

void bind_quality(nb::class_<engine::StreamHandle>& stream) {
    stream.def("stats", &stats).def("intervals", &intervals).def("meter", &meter);
}

}  // namespace trunkline::bindings
