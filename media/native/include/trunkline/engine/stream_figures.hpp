#pragma once

#include <cstdint>

#include "trunkline/util/counter.hpp"

namespace trunkline::engine {

/// Counters of a stream. Written by the engine thread, readable from any.
struct StreamFigures {
    util::Counter packets_in, bytes_in, packets_out, bytes_out;
    util::Counter lost, duplicates, late;
    util::Counter dropped_foreign;   ///< From another source than the far end's.
    util::Counter dropped_invalid;   ///< Not RTP, or of a payload type nobody agreed on.
    util::Counter dropped_unwanted;  ///< Before `connect`, against the agreed direction, or too many at once.
    util::Counter dropped_unauthentic;  ///< Of an encrypted stream, forged or damaged or under another key.
    util::Counter send_errors;
    util::Counter underruns;  ///< An agent's audio ran dry and went on soon after.
    util::Counter rtcp_in, rtcp_out;
    util::Counter suspects;      ///< Beside the source that is heard, under another SSRC or far-off numbers.
    util::Counter ssrc_changes;  ///< Of the far end, its first SSRC among them.
    util::Counter collisions;    ///< Our SSRC had to be changed (RFC 3550 8.2).
    util::Figure<std::uint32_t> jitter_us, ssrc_in, ssrc_out;
    /// Latest report of the far end about our packets, and the number of reports.
    util::Figure<std::uint32_t> sent_lost, sent_jitter_us;
    util::Counter far_reports;
    util::Figure<std::uint32_t> round_trip_us;
    util::Counter round_trips;
    /// Opinion scores times 100; 0 where there is nothing to judge by.
    util::Figure<std::uint16_t> mos_received, mos_sent;
    /// Loudness of what the far end says, and of what is sent to it, in decibels above silence: 127 less the
    /// level below full scale.
    util::Figure<std::uint32_t> loudness_db, sent_loudness_db;
};

/// A copy of a stream's figures at one moment.
struct StreamSnapshot {
    std::uint64_t packets_in = 0, bytes_in = 0, packets_out = 0, bytes_out = 0;
    std::uint64_t lost = 0, duplicates = 0, late = 0;
    std::uint64_t dropped_foreign = 0, dropped_invalid = 0, dropped_unwanted = 0;
    std::uint64_t dropped_unauthentic = 0;
    std::uint64_t underruns = 0;
    std::uint64_t send_errors = 0, rtcp_in = 0, rtcp_out = 0;
    std::uint64_t suspects = 0, ssrc_changes = 0, collisions = 0;
    std::uint32_t jitter_us = 0, ssrc_in = 0, ssrc_out = 0;
    std::uint64_t far_reports = 0, round_trips = 0;
    std::uint32_t sent_lost = 0, sent_jitter_us = 0, round_trip_us = 0;
    std::uint16_t mos_received = 0, mos_sent = 0;
    std::uint32_t loudness_db = 0, sent_loudness_db = 0;
};

/// Copy the figures; from any thread.
StreamSnapshot take_snapshot(const StreamFigures& figures);

}  // namespace trunkline::engine
