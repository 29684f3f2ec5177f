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

nb::dict interval_dict(const rtp::QualityInterval& interval) {
    const bool reported = interval.sent_expected != 0;
    nb::dict item;
    item["ended_monotonic_s"] = static_cast<double>(interval.ended_ns) / 1e9;
    item["duration_ms"] = interval.duration_ms;
    item["expected"] = interval.expected;
    item["lost"] = interval.lost;
    item["discarded"] = interval.discarded;
    item["burst_packets"] = interval.burst_hundredths / 100.0;
    item["jitter_ms"] = interval.jitter_us / 1000.0;
    item["mos_received"] = score(interval.mos_received);
    item["sent_expected"] = interval.sent_expected;
    item["sent_lost"] = interval.sent_lost;
    item["sent_jitter_ms"] = when(reported, interval.sent_jitter_us / 1000.0);
    item["mos_sent"] = score(interval.mos_sent);
    item["rtt_ms"] =
        when(interval.round_trip_us != rtp::QualityInterval::no_round_trip, interval.round_trip_us / 1000.0);
    return item;
}

nb::list intervals(const engine::StreamHandle& stream) {
    nb::list items;
    for (const rtp::QualityInterval& interval : stream.intervals()) {
        items.append(interval_dict(interval));
    }
    return items;
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

void add_quality(nb::dict& stats, const engine::StreamSnapshot& snapshot) {
    const bool reported = snapshot.far_reports != 0;
    stats["rtcp_out"] = snapshot.rtcp_out;
    stats["suspects"] = snapshot.suspects;
    stats["ssrc_changes"] = snapshot.ssrc_changes;
    stats["collisions"] = snapshot.collisions;
    stats["rtt_ms"] = when(snapshot.round_trips != 0, snapshot.round_trip_us / 1000.0);
    stats["sent_lost"] = reported ? nb::cast(snapshot.sent_lost) : nb::none();
    stats["sent_jitter_ms"] = when(reported, snapshot.sent_jitter_us / 1000.0);
    stats["mos_received"] = score(snapshot.mos_received);
    stats["mos_sent"] = score(snapshot.mos_sent);
}

void bind_quality(nb::class_<engine::StreamHandle>& stream) {
    stream.def("intervals", &intervals).def("meter", &meter);
}

}  // namespace trunkline::bindings
