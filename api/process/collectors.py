"""Metrics of calls, media, SIP, wallets and messages, read at every scrape of /metrics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from api.process.messaging import Messaging
from api.process.metrics import Metrics
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio.service import CallControl
from callcontrol.trunks.registration import counted

__all__ = ["watch", "watch_messages"]

_Label = TypeVar("_Label", bound=str)

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
    "trunkline_rtp_loss_ratio": (
        "loss_ratio",
        "Share of packets lost on legs that ended, in either direction.",
    ),
    "trunkline_rtp_jitter_seconds": ("jitter_s", "Jitter on legs that ended, in either direction."),
    "trunkline_rtp_mos": ("mos", "Opinion score of legs that ended, in either direction."),
    "trunkline_rtcp_round_trip_seconds": ("rtt_s", "Round trips to the far ends of legs that ended."),
}
_SIP_GAUGES: Mapping[str, tuple[str, str]] = {
    "trunkline_sip_sessions": ("sessions", "SIP sessions, those included that wait for the end of a BYE."),
    "trunkline_sip_transactions": (
        "transactions",
        "SIP transactions, those included that absorb repetitions.",
    ),
    "trunkline_sip_timers": ("timers", "SIP timers that run."),
}
_RECEIVE_GAUGES: Mapping[str, tuple[int, str]] = {
    "trunkline_sip_receive_queue_bytes": (0, "Memory of datagrams that wait in the SIP socket."),
    "trunkline_sip_receive_limit_bytes": (1, "Memory that datagrams may take that wait in the SIP socket."),
}


def watch(metrics: Metrics, control: CallControl, storage: Storage) -> None:
    """Register the metrics of call control, media, SIP and wallets."""
    _watch_calls(metrics, control)
    _watch_streams(metrics, control)
    _watch_media(metrics, control)
    _watch_sip(metrics, control)
    metrics.watch_gauge(
        "trunkline_directory_revision",
        "Newest change of accounts, numbers and trunks that calls go by.",
        lambda: float(storage.directory.revision),
    )
    _watch_wallets(metrics, control, storage)


def _watch_calls(metrics: Metrics, control: CallControl) -> None:
    figures, settings = control.figures, control.settings
    metrics.watch_gauge("trunkline_calls_active", "Calls that are not over.", lambda: control.active_calls)
    metrics.watch_gauge(
        "trunkline_calls_by_state",
        "Calls that are not over, by direction and status.",
        lambda: _labelled(control.calls_by_state()),
        ("direction", "status"),
    )
    metrics.watch_gauge(
        "trunkline_calls_limit", "Calls that this server carries at most.", lambda: float(settings.max_calls)
    )
    metrics.watch_gauge(
        "trunkline_calls_per_second_limit",
        "Calls that this server begins in a second at most.",
        lambda: float(settings.max_cps),
    )
    metrics.watch_counter(
        "trunkline_calls_ended",
        "Calls that ended, by direction and final status.",
        lambda: _labelled(figures.ended),
        ("direction", "status"),
    )
    metrics.watch_counter(
        "trunkline_calls_answered",
        "Calls that ended and had been answered; of those that ended, it is the answer-seizure ratio.",
        lambda: _counted(figures.answered),
        ("direction",),
    )
    metrics.watch_counter(
        "trunkline_call_hangups",
        "Calls that ended, by the cause and who ended them.",
        lambda: _labelled(figures.causes),
        ("cause", "source"),
    )
    metrics.watch_counter(
        "trunkline_calls_refused",
        "New calls that were not taken, by reason.",
        lambda: _counted(control.refused_calls()),
        ("reason",),
    )
    metrics.watch_histograms(
        "trunkline_call_setup_seconds",
        "From the beginning of a call to its answer, of calls that ended.",
        lambda: figures.set_up_s,
        "direction",
    )
    metrics.watch_histogram(
        "trunkline_call_post_dial_delay_seconds",
        "From the beginning of a placed call until its party rang or answered, of calls that ended.",
        lambda: figures.post_dial_delay_s,
    )
    metrics.watch_histograms(
        "trunkline_call_duration_seconds",
        "How long answered calls lasted.",
        lambda: figures.duration_s,
        "direction",
    )


def _watch_streams(metrics: Metrics, control: CallControl) -> None:
    streams = control.figures.streams
    metrics.watch_gauge(
        "trunkline_agent_streams", "Streams to voice agents that are connected.", lambda: float(streams.open)
    )
    metrics.watch_counter(
        "trunkline_agent_connects",
        "Voice agents that were to be connected, by what became of it.",
        lambda: _counted(streams.connects),
        ("outcome",),
    )
    metrics.watch_counter(
        "trunkline_agent_frames_dropped",
        "Audio frames that voice agents were too slow for, of streams that ended.",
        lambda: float(streams.frames_dropped),
    )


def _watch_media(metrics: Metrics, control: CallControl) -> None:
    stats = control.media_stats()

    async def look() -> None:
        nonlocal stats
        stats = control.media_stats()

    # Once per scrape for all its metrics, as the engine queries each of its streams.
    metrics.refresh_with(look)
    for name, (attribute, text) in _MEDIA_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: stats, attribute))
    for name, (attribute, text) in _MEDIA_COUNTERS.items():
        metrics.watch_counter(name, text, _reader(lambda: stats, attribute))
    for name, (attribute, text) in _CONTROL_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: control, attribute))
    for name, (attribute, text) in _QUALITY.items():
        metrics.watch_histogram(name, text, partial(getattr, control.quality, attribute))
    metrics.watch_counter(
        "trunkline_rtp_packets_dropped",
        "RTP packets of far ends that were not used, by reason.",
        lambda: _counted(control.media_drops),
        ("reason",),
    )


def _watch_sip(metrics: Metrics, control: CallControl) -> None:
    for name, (attribute, text) in _SIP_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: control.user_agent, attribute))
    metrics.watch_gauge(
        "trunkline_sip_connections",
        "TCP and TLS connections, up or coming up.",
        lambda: _counted(control.user_agent.connections),
        ("transport",),
    )
    for name, (index, text) in _RECEIVE_GAUGES.items():
        metrics.watch_gauge(name, text, partial(_of_buffers, control, index), ("address",))
    metrics.watch_counter(
        "trunkline_sip_datagrams_lost",
        "Datagrams that the system dropped because the buffer of the SIP socket was full.",
        partial(_of_buffers, control, 2),
        ("address",),
    )
    metrics.watch_counter(
        "trunkline_sip_rejected",
        "SIP messages that were not served, by reason.",
        lambda: _counted(control.guard.rejected),
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
        "trunkline_sip_accepted_ratio",
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
        lambda: _counted(counted(control.registrations())),
        ("state",),
    )


def _watch_wallets(metrics: Metrics, control: CallControl, storage: Storage) -> None:
    held = (0, 0)

    async def sum_reserves() -> None:
        nonlocal held
        held = await storage.wallet.reserved_in_all()

    metrics.refresh_with(sum_reserves)
    metrics.watch_gauge(
        "trunkline_wallet_reserves_open", "Calls that money is held for.", lambda: float(held[0])
    )
    metrics.watch_gauge("trunkline_wallet_reserved_paise", "Money held for calls.", lambda: float(held[1]))
    metrics.watch_counter(
        "trunkline_wallet_failures",
        "What wallets could not do for calls, by what was asked of them.",
        lambda: _counted(control.figures.wallet_failures),
        ("operation",),
    )


def watch_messages(metrics: Metrics, messaging: Messaging) -> None:
    """Register the metrics of messages over the messaging network."""
    queued = 0

    async def count_queued() -> None:
        nonlocal queued
        queued = await messaging.waiting()

    metrics.refresh_with(count_queued)
    metrics.watch_counter(
        "trunkline_messages",
        "Messages over the messaging network, by the state they came to.",
        lambda: _counted(messaging.receiver.counts),
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


def _counted(counts: Mapping[_Label, int]) -> dict[tuple[str, ...], float]:
    return {(label,): float(count) for label, count in counts.items()}


def _labelled(counts: Mapping[tuple[str, str], int]) -> dict[tuple[str, ...], float]:
    return {labels: float(count) for labels, count in counts.items()}


def _of_buffers(control: CallControl, index: int) -> dict[tuple[str, ...], float]:
    """One value of each UDP socket's receive buffer, by address."""
    return {(address,): float(held[index]) for address, held in control.user_agent.receive_buffers.items()}


def _reader(source: Any, attribute: str) -> Any:
    get = attrgetter(attribute)
    return lambda: float(get(source()))
