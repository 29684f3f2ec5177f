#include "trunkline/engine/stream_figures.hpp"

namespace trunkline::engine {

StreamSnapshot take_snapshot(const StreamFigures& figures) {
    StreamSnapshot snapshot;
    snapshot.packets_in = figures.packets_in.get();
    snapshot.bytes_in = figures.bytes_in.get();
    snapshot.packets_out = figures.packets_out.get();
    snapshot.bytes_out = figures.bytes_out.get();
    snapshot.lost = figures.lost.get();
    snapshot.duplicates = figures.duplicates.get();
    snapshot.late = figures.late.get();
    snapshot.dropped_foreign = figures.dropped_foreign.get();
    snapshot.dropped_invalid = figures.dropped_invalid.get();
    snapshot.dropped_unwanted = figures.dropped_unwanted.get();
    snapshot.dropped_unauthentic = figures.dropped_unauthentic.get();
    snapshot.send_errors = figures.send_errors.get();
    snapshot.underruns = figures.underruns.get();
    snapshot.rtcp_in = figures.rtcp_in.get();
    snapshot.rtcp_out = figures.rtcp_out.get();
    snapshot.suspects = figures.suspects.get();
    snapshot.ssrc_changes = figures.ssrc_changes.get();
    snapshot.collisions = figures.collisions.get();
    snapshot.far_reports = figures.far_reports.get();
    snapshot.round_trips = figures.round_trips.get();
    snapshot.sent_lost = figures.sent_lost.get();
    snapshot.sent_jitter_us = figures.sent_jitter_us.get();
    snapshot.round_trip_us = figures.round_trip_us.get();
    snapshot.mos_received = figures.mos_received.get();
    snapshot.mos_sent = figures.mos_sent.get();
    snapshot.loudness_db = figures.loudness_db.get();
    snapshot.sent_loudness_db = figures.sent_loudness_db.get();
    snapshot.jitter_us = figures.jitter_us.get();
    snapshot.ssrc_in = figures.ssrc_in.get();
    snapshot.ssrc_out = figures.ssrc_out.get();
    return snapshot;
}

}  // namespace trunkline::engine
