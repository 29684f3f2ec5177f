"""Voice quality of a call, from the engine's measurements on its legs."""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from callcontrol.histogram import Histogram
from callcontrol.ids import LegId
from callcontrol.models import DirectionQuality, LegQuality, Quality
from media.types import QualityInterval, RemoteMedia, StreamStats

MAX_LEGS: Final = 8
"""Limit of legs in the quality of a call; of a call with many transfers the first legs are shown."""

_PACKED: Final = attrgetter(
    *("expected", "lost", "mos_received", "jitter_ms"),
    *("sent_expected", "sent_lost", "mos_sent", "sent_jitter_ms", "rtt_ms"),
)
_WIDTH: Final = 10
"""Figures of an interval: its end, and those above."""


def leg_quality(leg: str, remote: RemoteMedia | None, stats: StreamStats) -> LegQuality:
    """Return the quality of one leg, from the engine's measurements and the far end's reports."""
    jitter_ms = stats.jitter_ms if stats.packets_in else None
    received = _direction(stats.mos_received, jitter_ms, stats.lost, stats.packets_in + stats.lost)
    sent = _direction(stats.mos_sent, stats.sent_jitter_ms, stats.sent_lost, stats.packets_out)
    codec = remote.codec if remote is not None else None
    encrypted = remote is not None and remote.srtp_send is not None
    rtt_ms = None if stats.rtt_ms is None else round(stats.rtt_ms, 2)
    return LegQuality(leg, codec, encrypted, rtt_ms, received, sent)


def call_quality(legs: Mapping[LegId, LegQuality], first: LegId) -> Quality | None:
    """Return the quality of a call: of its first party's audio, and all legs; None when no leg had media."""
    heard = [leg for leg in legs.values() if leg.codec is not None]
    if first not in legs and not heard:
        return None
    leg = legs.get(first, heard[0] if heard else None)
    assert leg is not None
    received = leg.received
    return Quality(
        mos=received.mos,
        jitter_ms=received.jitter_ms,
        packet_loss_pct=received.packet_loss_pct,
        codec=leg.codec,
        encrypted=leg.encrypted,
        legs=heard[:MAX_LEGS],
    )


def quality_fields(quality: Quality) -> dict[str, Any]:
    """Return a quality for JSON. ``dataclasses.asdict`` copies each value and takes ten times as long."""
    legs = []
    for leg in quality.legs:
        shown = {"leg": leg.leg, "codec": leg.codec, "encrypted": leg.encrypted, "rtt_ms": leg.rtt_ms}
        legs.append(
            {**shown, "received": _direction_fields(leg.received), "sent": _direction_fields(leg.sent)}
        )
    return {
        "mos": quality.mos,
        "jitter_ms": quality.jitter_ms,
        "packet_loss_pct": quality.packet_loss_pct,
        "codec": quality.codec,
        "encrypted": quality.encrypted,
        "legs": legs,
    }


def _direction_fields(part: DirectionQuality) -> dict[str, Any]:
    return {"mos": part.mos, "jitter_ms": part.jitter_ms, "packet_loss_pct": part.packet_loss_pct}


_STORED: Final = tuple(field.name for field in fields(Quality))


def stored_quality(stored: Mapping[str, Any]) -> Quality:
    """Read a stored quality; records of earlier versions have no legs."""
    values = {name: stored[name] for name in _STORED if name in stored}
    values["legs"] = [_stored_leg(leg) for leg in stored.get("legs", ())]
    return Quality(**values)


def _stored_leg(stored: Mapping[str, Any]) -> LegQuality:
    directions = {name: DirectionQuality(**stored[name]) for name in ("received", "sent")}
    return LegQuality(**{**stored, **directions})


class QualityPoint(NamedTuple):
    """Quality of a leg in an interval of about 5 s that ends at a time."""

    at: datetime
    received: DirectionQuality
    sent: DirectionQuality
    rtt_ms: float | None


class LegHistory(NamedTuple):
    """
    Quality of a leg in the intervals of its last three minutes.

    It is kept of every call and read of few: ``packed`` has all figures as numbers, not one object each.
    """

    leg: str
    packed: bytes

    @property
    def points(self) -> Sequence[QualityPoint]:
        """The intervals, the oldest first."""
        figures = [None if math.isnan(figure) else figure for figure in memoryview(self.packed).cast("d")]
        return [_point(*row) for row in zip(*[iter(figures)] * _WIDTH, strict=True)]


def leg_history(
    leg: str, intervals: Iterable[QualityInterval], now: datetime, now_monotonic_s: float
) -> LegHistory:
    """Return the history of a leg from the engine's intervals, whose times are monotonic."""
    began_s, figures = now.timestamp() - now_monotonic_s, array("d")
    for one in intervals:
        figures.append(began_s + one.ended_monotonic_s)
        figures.extend(math.nan if figure is None else figure for figure in _PACKED(one))
    return LegHistory(leg, figures.tobytes())


def _point(at_s: float, *figures: Any) -> QualityPoint:
    expected, lost, mos, jitter_ms, sent_expected, sent_lost, sent_mos, sent_jitter_ms, rtt_ms = figures
    return QualityPoint(
        datetime.fromtimestamp(at_s, UTC),
        _direction(mos, jitter_ms if expected > lost else None, lost, expected),
        _direction(sent_mos, sent_jitter_ms, sent_lost, sent_expected),
        None if rtt_ms is None else round(rtt_ms, 2),
    )


class QualityMetrics:
    """Histograms of the measurements of ended legs, in seconds and ratios; both directions count alike."""

    def __init__(self) -> None:
        self.loss_ratio = Histogram((0.0, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25))
        self.jitter_s = Histogram((0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16))
        self.rtt_s = Histogram((0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8))
        self.mos = Histogram((1.5, 2.0, 2.5, 3.0, 3.5, 3.8, 4.0, 4.2, 4.4))

    def observe(self, leg: LegQuality) -> None:
        """Count an ended leg."""
        for direction in (leg.received, leg.sent):
            if direction.packet_loss_pct is not None:
                self.loss_ratio.observe(direction.packet_loss_pct / 100.0)
            if direction.jitter_ms is not None:
                self.jitter_s.observe(direction.jitter_ms / 1000.0)
            if direction.mos is not None:
                self.mos.observe(direction.mos)
        if leg.rtt_ms is not None:
            self.rtt_s.observe(leg.rtt_ms / 1000.0)


def _direction(
    mos: float | None, jitter_ms: float | None, lost: int | None, expected: int
) -> DirectionQuality:
    """Return the quality of a direction, rounded; without loss when there was nothing, or no report of it."""
    return DirectionQuality(
        None if mos is None else round(mos, 2),
        None if jitter_ms is None else round(jitter_ms, 2),
        None if lost is None or expected <= 0 else round(min(100.0 * max(lost, 0) / expected, 100.0), 2),
    )
