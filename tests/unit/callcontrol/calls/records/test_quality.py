"""Quality figures of calls."""

from __future__ import annotations

import gc
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from callcontrol.calls.records.quality import (
    MAX_LEGS,
    QualityMetrics,
    call_quality,
    leg_history,
    leg_quality,
    quality_fields,
    stored_quality,
)
from media.types import QualityInterval, RemoteMedia, SrtpKey, StreamStats

_UNKNOWN = ("rtt_ms", "sent_lost", "sent_jitter_ms", "mos_received", "mos_sent")
_ZERO: dict[str, Any] = dict.fromkeys(StreamStats._fields, 0) | dict.fromkeys(_UNKNOWN)
SILENT = StreamStats(**_ZERO)
KEY = SrtpKey("AES_CM_128_HMAC_SHA1_80", bytes(30))
REMOTE = RemoteMedia("192.0.2.1", 4000, "OPUS", 111, srtp_send=KEY, srtp_receive=KEY)


def stats(**figures: Any) -> StreamStats:
    return StreamStats(**{**_ZERO, **figures})


def test_both_directions_of_a_leg() -> None:
    measured = stats(
        packets_in=990,
        lost=10,
        jitter_ms=1.234,
        mos_received=4.123,
        packets_out=1000,
        sent_lost=5,
        sent_jitter_ms=2.5,
        mos_sent=4.2,
        rtt_ms=33.333,
    )
    leg = leg_quality("a", REMOTE, measured)
    assert (leg.leg, leg.codec, leg.encrypted, leg.rtt_ms) == ("a", "OPUS", True, 33.33)
    assert asdict(leg.received) == {"mos": 4.12, "jitter_ms": 1.23, "packet_loss_pct": 1.0}
    assert asdict(leg.sent) == {"mos": 4.2, "jitter_ms": 2.5, "packet_loss_pct": 0.5}


def test_what_was_not_measured_is_not_told() -> None:
    leg = leg_quality("b", REMOTE, SILENT)
    nothing = {"mos": None, "jitter_ms": None, "packet_loss_pct": None}
    assert asdict(leg.received) == asdict(leg.sent) == nothing
    assert leg.rtt_ms is None


def test_a_quality_is_shown_with_all_its_fields() -> None:
    legs = {
        0: leg_quality("a", REMOTE, stats(packets_in=9, mos_sent=4.2)),
        1: leg_quality("b", REMOTE, SILENT),
    }
    quality = call_quality(legs, 0)
    assert quality is not None and len(quality.legs) == 2
    assert quality_fields(quality) == asdict(quality)
    assert stored_quality(quality_fields(quality)) == quality


def test_a_leg_over_time_is_told_in_the_time_of_people() -> None:
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    heard = QualityInterval(995.0, 5000, 250, 25, 3, 1.0, 6.123, 3.456, 200, 10, 2.5, 4.321, 40.111)
    silent = QualityInterval(1000.0, 5000, 50, 50, 0, 50.0, 6.123, None, 0, 0, None, None, None)
    history = leg_history("b", [heard, silent], now, 1002.0)
    assert history.leg == "b"
    assert not any(map(gc.is_tracked, history)), "many are kept, and slow no collection"
    first, last = history.points
    assert (first.at, last.at) == (now - timedelta(seconds=7), now - timedelta(seconds=2))
    assert asdict(first.received) == {"mos": 3.46, "jitter_ms": 6.12, "packet_loss_pct": 10.0}
    assert asdict(first.sent) == {"mos": 4.32, "jitter_ms": 2.5, "packet_loss_pct": 5.0}
    assert asdict(last.received) == {"mos": None, "jitter_ms": None, "packet_loss_pct": 100.0}
    assert (first.rtt_ms, last.rtt_ms, last.sent.packet_loss_pct) == (40.11, None, None)


def test_a_far_end_that_reports_nonsense_is_bounded() -> None:
    leg = leg_quality("a", REMOTE, stats(packets_out=10, sent_lost=5000))
    assert leg.sent.packet_loss_pct == 100.0
    assert leg_quality("a", REMOTE, stats(packets_out=10, sent_lost=-3)).sent.packet_loss_pct == 0.0


def test_the_call_is_as_its_first_party_was_heard() -> None:
    legs = {
        1: leg_quality("b", REMOTE, stats(packets_in=100, mos_received=2.0)),
        0: leg_quality("a", RemoteMedia("192.0.2.1", 4000, "PCMU", 0), stats(packets_in=9, mos_received=4.4)),
        2: leg_quality("b", None, SILENT),
    }
    quality = call_quality(legs, 0)
    assert quality is not None
    assert (quality.mos, quality.codec, quality.encrypted) == (4.4, "PCMU", False)
    assert [(leg.leg, leg.codec) for leg in quality.legs] == [("b", "OPUS"), ("a", "PCMU")]
    assert call_quality({}, 0) is None
    assert call_quality({0: leg_quality("a", None, SILENT)}, 0) is not None
    many = {number: legs[0] for number in range(20)}
    assert (told := call_quality(many, 0)) is not None and len(told.legs) == MAX_LEGS


def test_it_is_read_as_it_was_stored() -> None:
    quality = call_quality({0: leg_quality("a", REMOTE, stats(packets_in=9, mos_received=4.4))}, 0)
    assert quality is not None
    assert stored_quality(asdict(quality)) == quality
    earlier = {"mos": 4.0, "jitter_ms": 1.0, "packet_loss_pct": 0.0, "codec": "PCMU"}
    assert stored_quality(earlier).codec == "PCMU"


def test_legs_that_are_over_are_counted() -> None:
    figures = QualityMetrics()
    heard = stats(packets_in=99, lost=1, jitter_ms=3.0, mos_received=4.3, rtt_ms=20.0)
    figures.observe(leg_quality("a", REMOTE, heard))
    figures.observe(leg_quality("b", REMOTE, SILENT))
    assert (figures.loss_ratio.count, figures.loss_ratio.sum) == (1, 0.01)
    assert (figures.jitter_s.count, figures.mos.count, figures.rtt_s.count) == (1, 1, 1)
