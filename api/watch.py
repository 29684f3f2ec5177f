"""Which figures of the parts are read when /metrics is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from api.messaging import Messaging
from api.metrics import Metrics
from callcontrol.aio.call_gate import REASONS, CallGate
from callcontrol.aio.service import CallControl
from callcontrol.aio.storage import Storage
from callcontrol.aio.writer import Writer
from callcontrol.registration import counted

__all__ = ["watch", "watch_messages", "watch_storage"]

_MEDIA_GAUGES: Mapping[str, tuple[str, str]] = {
    "trunkline_rtp_streams": ("streams", "RTP streams that are open."),
    "trunkline_rtp_ports_in_use": ("ports_in_use", "RTP ports of open streams; those at rest not counted."),
    "trunkline_rtp_ports": ("ports_total", "RTP ports there are."),
}
_MEDIA_COUNTERS: Mapping[str, tuple[str, str]] = {
    "trunkline_rtp_packets_received": ("packets_in", "RTP packets received."),
    "trunkline_rtp_packets_sent": ("packets_out", "RTP packets sent."),
    "trunkline_media_events_dropped": ("events_dropped", "Media events nobody fetched in time."),
    "trunkline_media_frames_dropped": ("frames_dropped", "Agent audio frames nobody fetched in time."),
    "trunkline_agent_underruns": ("underruns", "Times an agent's audio ran dry and went on soon after."),
}
_CONTROL_GAUGES: Mapping[str, tuple[str, str]] = {
    "trunkline_rtp_transcoded_streams": (
        "transcoded_streams",
        "RTP streams that hear another codec than their own.",
    ),
    "trunkline_conferences_open": ("open_conferences", "Conferences."),
    "trunkline_recordings_open": ("open_recordings", "Recordings that are not complete yet."),
}
_QUALITY: Mapping[str, tuple[str, str]] = {
    "trunkline_rtp_loss_percent": ("loss_pct", "Packets lost on legs that ended, in either direction."),
    "trunkline_rtp_jitter_ms": ("jitter_ms", "Jitter on legs that ended, in either direction."),
    "trunkline_rtp_mos": ("mos", "Opinion score of legs that ended, in either direction."),
    "trunkline_rtcp_round_trip_ms": ("rtt_ms", "Round trips to the far ends of legs that ended."),
}
_SIP_GAUGES: Mapping[str, tuple[str, str]] = {
    "trunkline_sip_sessions": ("sessions", "SIP sessions, those included that wait for the end of a BYE."),
    "trunkline_sip_transactions": (
        "transactions",
        "SIP transactions, those included that absorb repetitions.",
    ),
    "trunkline_sip_timers": ("timers", "SIP timers that run."),
}


def watch(metrics: Metrics, control: CallControl, storage: Storage) -> None:
    """Have the figures of call control, media, SIP and the wallets read at every scrape."""
    metrics.watch_gauge("trunkline_calls_active", "Calls that are not over.", lambda: control.active_calls)
    metrics.watch_counter(
        "trunkline_calls_ended",
        "Calls that ended, by direction and final status.",
        lambda: _outcomes(control),
        ("direction", "status"),
    )
    for name, (attribute, text) in _MEDIA_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(control.media_stats, attribute))
    for name, (attribute, text) in _MEDIA_COUNTERS.items():
        metrics.watch_counter(name, text, _reader(control.media_stats, attribute))
    for name, (attribute, text) in _CONTROL_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: control, attribute))
    for name, (attribute, text) in _QUALITY.items():
        metrics.watch_histogram(name, text, partial(getattr, control.quality, attribute))
    metrics.watch_counter(
        "trunkline_rtp_packets_dropped",
        "RTP packets of far ends that were not used, by reason.",
        lambda: {(reason,): float(count) for reason, count in control.media_drops.items()},
        ("reason",),
    )
    for name, (attribute, text) in _SIP_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: control.user_agent, attribute))
    metrics.watch_gauge(
        "trunkline_sip_connections",
        "TCP and TLS connections, up or coming up.",
        lambda: {(name,): float(count) for name, count in control.user_agent.connections.items()},
        ("transport",),
    )
    metrics.watch_counter(
        "trunkline_sip_rejected",
        "SIP messages that were not served, by reason.",
        lambda: {(reason,): float(count) for reason, count in control.guard.rejected.items()},
        ("reason",),
    )
    metrics.watch_gauge(
        "trunkline_sip_banned_sources", "Sources that are banned.", lambda: float(len(control.guard.banned))
    )
    metrics.watch_gauge(
        "trunkline_gateways",
        "Outbound gateways by what is known of their health.",
        lambda: {(state.name.lower(),): float(count) for state, count in control.gateways.counts().items()},
        ("state",),
    )
    metrics.watch_gauge(
        "trunkline_directory_revision",
        "Newest change of accounts, numbers and trunks that calls go by.",
        lambda: float(storage.directory.revision),
    )
    metrics.watch_gauge(
        "trunkline_sip_accepted_share",
        "Part of new calls that overload lets in.",
        lambda: control.guard.share,
    )
    hep = control.hep
    if hep is not None:
        metrics.watch_counter("trunkline_hep_sent", "Copies of SIP messages sent.", lambda: float(hep.sent))
        metrics.watch_counter(
            "trunkline_hep_dropped", "Copies of SIP messages dropped.", lambda: float(hep.dropped)
        )
    metrics.watch_gauge(
        "trunkline_sip_registrations",
        "Registrations with carriers, by state.",
        lambda: {(state,): float(count) for state, count in counted(control.registrations()).items()},
        ("state",),
    )
    reserved_paise = 0

    async def sum_reserves() -> None:
        nonlocal reserved_paise
        reserved_paise = sum(reserve.amount_paise for reserve in await storage.wallet.open_reserves())

    metrics.refresh_with(sum_reserves)
    metrics.watch_gauge("trunkline_wallet_reserved_paise", "Money held for calls.", lambda: reserved_paise)


def watch_messages(metrics: Metrics, messaging: Messaging) -> None:
    """Have the figures of messages over the messaging network read at every scrape."""
    queued = 0

    async def count_queued() -> None:
        nonlocal queued
        queued = await messaging.waiting()

    metrics.refresh_with(count_queued)
    metrics.watch_counter(
        "trunkline_messages",
        "Messages over the messaging network, by the state they came to.",
        lambda: {(status,): float(count) for status, count in messaging.receiver.counts.items()},
        ("status",),
    )
    metrics.watch_gauge(
        "trunkline_messages_queued",
        "Messages that wait for the messaging network, up to 100,000.",
        lambda: float(queued),
    )
    metrics.watch_gauge(
        "trunkline_messages_active",
        "Messages of the queue that are being handed to the messaging network.",
        lambda: float(messaging.dispatcher.active),
    )


def watch_storage(metrics: Metrics, writer: Writer, gate: CallGate) -> None:
    """Have it read at every scrape whether the database takes writes, and which calls the server kept out."""
    metrics.watch_gauge(
        "trunkline_database_failing",
        "1 while the database takes no writes and new calls are refused for it.",
        lambda: float(writer.failing),
    )
    metrics.watch_counter(
        "trunkline_database_failures",
        "Transactions that the database failed, each time they were tried.",
        lambda: float(writer.stats.failures),
    )
    metrics.watch_gauge(
        "trunkline_database_waiting",
        "Writes that wait for the next transaction.",
        lambda: float(writer.waiting),
    )
    metrics.watch_counter(
        "trunkline_calls_kept_out",
        "New calls refused because the server could not record or carry them, by what was lacking.",
        lambda: {(reason,): float(gate.refused[reason]) for reason in REASONS},
        ("reason",),
    )


def _outcomes(control: CallControl) -> dict[tuple[str, ...], float]:
    return {labels: float(count) for labels, count in control.outcomes.items()}


def _reader(source: Any, attribute: str) -> Any:
    get = attrgetter(attribute)
    return lambda: float(get(source()))
