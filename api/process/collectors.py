"""Metrics of calls, media, SIP, money, messages and the process, read at every scrape of /metrics."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from api.openapi.document import product_version
from api.process.lifecycle import Lifecycle, Phase
from api.process.logs import dropped_lines
from api.process.metrics import Metrics
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Services, Storage
from callcontrol.calls.aio.service import CallControl
from callcontrol.database.statements import to_micros
from callcontrol.histogram import Histogram
from callcontrol.messaging.store import queue as chat_queue
from callcontrol.recordings.aio.uploads import Uploader
from callcontrol.tools.aio.service import ToolService
from callcontrol.trunks.registration import counted
from callcontrol.webhooks.store import deliveries
from media.aio import recognizer, speech_server
from media.aio.recognizer import Recognizer
from media.aio.speech_server import ServerSynthesizer
from media.audio.circuit_breaker import STATES, BreakerState

__all__ = [
    "LoopLag",
    "collect_calls",
    "collect_messages",
    "collect_process",
    "collect_storage",
    "collect_tools",
]

_MEDIA_GAUGES: Mapping[str, tuple[str, str]] = {
    "trunkline_rtp_streams": ("streams", "RTP streams that are open."),
    "trunkline_rtp_ports_in_use": ("ports_in_use", "RTP ports of open streams; those at rest not counted."),
    "trunkline_rtp_ports": ("ports_total", "RTP ports in total."),
}
_MEDIA_COUNTERS: Mapping[str, tuple[str, str]] = {
    "trunkline_rtp_packets_received": ("packets_in", "RTP packets received."),
    "trunkline_rtp_packets_sent": ("packets_out", "RTP packets sent."),
    "trunkline_media_events_dropped": ("events_dropped", "Media events nobody fetched in time."),
    "trunkline_media_frames_dropped": ("frames_dropped", "Agent audio frames nobody fetched in time."),
    "trunkline_agent_underruns": ("underruns", "Times an agent's audio ran dry and went on soon after."),
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
    "trunkline_sip_timers": ("timers", "Running SIP timers."),
}
_RECEIVE_GAUGES: Mapping[str, tuple[int, str]] = {
    "trunkline_sip_receive_queue_bytes": (0, "Memory of datagrams that wait in the SIP socket."),
    "trunkline_sip_receive_limit_bytes": (1, "Memory that datagrams may take that wait in the SIP socket."),
}
_LAG_EVERY_S: Final = 0.1
_LAG_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_MOST_COUNTED: Final = 10_000
_MOST_MESSAGES_COUNTED: Final = 100_000

_WRITER: Mapping[str, tuple[str, str]] = {
    "trunkline_database_transactions": ("transactions", "Committed transactions."),
    "trunkline_database_operations": ("operations", "Operations written in transactions."),
    "trunkline_database_refused": ("refused", "Requests refused because the database was too slow."),
    "trunkline_database_failures": ("failures", "Failed attempts at transactions."),
    "trunkline_database_commits_in_doubt": ("in_doubt", "Commits without an answer of the database."),
}
_OUTBOX: Mapping[str, tuple[str, str]] = {
    "trunkline_webhook_attempts": ("attempts", "Webhooks sent, repetitions included."),
    "trunkline_webhook_delivered": ("delivered", "Webhooks accepted by their receiver."),
    "trunkline_webhook_failed": ("failed", "Webhooks that failed for good."),
    "trunkline_webhook_skipped": ("skipped", "Attempts not made because the destination is unresponsive."),
    "trunkline_webhook_postponed": ("postponed", "Webhooks postponed for a slow destination."),
}


def collect_calls(metrics: Metrics, control: CallControl, storage: Storage) -> None:
    """Register the metrics of call control, media, SIP and wallets."""
    _collect_calls(metrics, control)
    _collect_streams(metrics, control)
    _collect_media(metrics, control)
    _collect_sip(metrics, control)
    metrics.watch_gauge(
        "trunkline_directory_revision",
        "Newest change of accounts, numbers and trunks that calls go by.",
        lambda: storage.directory.revision,
    )
    _collect_wallets(metrics, control, storage)


def _collect_calls(metrics: Metrics, control: CallControl) -> None:
    calls, settings = control.metrics, control.settings
    metrics.watch_gauge("trunkline_calls_active", "Active calls.", lambda: control.active_calls)
    metrics.watch_gauge(
        "trunkline_calls_by_state",
        "Active calls, by direction and status.",
        control.calls_by_state,
        ("direction", "status"),
    )
    metrics.watch_gauge("trunkline_calls_limit", "Maximum of concurrent calls.", lambda: settings.max_calls)
    metrics.watch_gauge(
        "trunkline_calls_per_second_limit", "Maximum of new calls per second.", lambda: settings.max_cps
    )
    metrics.watch_counter(
        "trunkline_calls_ended",
        "Calls that ended, by direction and final status.",
        lambda: calls.ended,
        ("direction", "status"),
    )
    metrics.watch_counter(
        "trunkline_calls_answered",
        "Calls that ended and had been answered; of those that ended, it is the answer-seizure ratio.",
        lambda: calls.answered,
        ("direction",),
    )
    metrics.watch_counter(
        "trunkline_call_hangups",
        "Calls that ended, by the cause and who ended them.",
        lambda: calls.causes,
        ("cause", "source"),
    )
    metrics.watch_counter(
        "trunkline_calls_refused",
        "Refused new calls, by reason.",
        control.refused_calls,
        ("reason",),
    )
    metrics.watch_histogram(
        "trunkline_call_setup_seconds",
        "From the beginning of a call to its answer, of calls that ended.",
        lambda: calls.set_up_s,
        ("direction",),
    )
    metrics.watch_histogram(
        "trunkline_call_post_dial_delay_seconds",
        "From the beginning of a placed call until its party rang or answered, of calls that ended.",
        lambda: calls.post_dial_delay_s,
    )
    metrics.watch_histogram(
        "trunkline_call_duration_seconds",
        "How long answered calls lasted.",
        lambda: calls.duration_s,
        ("direction",),
    )


def _collect_streams(metrics: Metrics, control: CallControl) -> None:
    streams = control.metrics.streams
    metrics.watch_gauge(
        "trunkline_agent_streams", "Streams to voice agents that are connected.", lambda: streams.open
    )
    metrics.watch_counter(
        "trunkline_agent_connects",
        "Voice agents that were to be connected, by what became of it.",
        lambda: streams.connects,
        ("outcome",),
    )
    metrics.watch_counter(
        "trunkline_agent_frames_dropped",
        "Audio frames that voice agents were too slow for, of streams that ended.",
        lambda: streams.frames_dropped,
    )


def collect_recognition(metrics: Metrics, made: Recognizer | None) -> None:
    """Register the metrics of connections to a recogniser."""
    outcomes = dict.fromkeys(recognizer.OUTCOMES, 0) if made is None else made.outcomes
    changes = dict.fromkeys(STATES, 0) if made is None else made.breaker.changes
    metrics.watch_gauge(
        "trunkline_recognizer_usable",
        "1 while the recogniser is asked; 0 while it fails and is left alone, or there is none.",
        lambda: float(made is not None and made.breaker.state is BreakerState.CLOSED),
    )
    metrics.watch_counter(
        "trunkline_recognizer_changes",
        "Changes of the recogniser's circuit breaker, by the new state.",
        lambda: changes,
        ("state",),
    )
    metrics.watch_counter(
        "trunkline_recognizer_connects",
        "Parties whose speech was to be recognised, by what became of the connection.",
        lambda: outcomes,
        ("outcome",),
    )


def collect_speech(metrics: Metrics, speech: ServerSynthesizer | None) -> None:
    """Register the metrics of texts that a speech server was to speak."""
    outcomes = dict.fromkeys(speech_server.OUTCOMES, 0) if speech is None else speech.outcomes
    changes = dict.fromkeys(STATES, 0) if speech is None else speech.breaker.changes
    metrics.watch_gauge(
        "trunkline_speech_server_usable",
        "1 while the speech server is asked; 0 while it fails and espeak-ng speaks, or there is none.",
        lambda: float(speech is not None and speech.breaker.state is BreakerState.CLOSED),
    )
    metrics.watch_counter(
        "trunkline_speech_server_changes",
        "Changes of the speech server's circuit breaker, by the new state.",
        lambda: changes,
        ("state",),
    )
    metrics.watch_counter(
        "trunkline_speech_texts",
        "Texts for the speech server, by what became of them.",
        lambda: outcomes,
        ("outcome",),
    )


def _collect_media(metrics: Metrics, control: CallControl) -> None:
    engine = control.engine
    stats = engine.stats()

    async def look() -> None:
        nonlocal stats
        stats = engine.stats()

    # Once per scrape for all its metrics, as the engine queries each of its streams.
    metrics.refresh_with(look)
    for name, (attribute, text) in _MEDIA_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: stats, attribute))
    for name, (attribute, text) in _MEDIA_COUNTERS.items():
        metrics.watch_counter(name, text, _reader(lambda: stats, attribute))
    metrics.watch_gauge(
        "trunkline_rtp_transcoded_streams",
        "RTP streams that hear another codec than their own.",
        lambda: float(control.transcoded_streams),
    )
    metrics.watch_gauge("trunkline_conferences_open", "Conferences.", lambda: float(len(engine.conferences)))
    metrics.watch_gauge(
        "trunkline_recordings_open",
        "Recordings that are not complete yet.",
        lambda: float(len(engine.recordings)),
    )
    for name, (attribute, text) in _QUALITY.items():
        metrics.watch_histogram(name, text, partial(getattr, control.quality, attribute))
    metrics.watch_counter(
        "trunkline_rtp_packets_dropped",
        "RTP packets of far ends that were not used, by reason.",
        engine.dropped,
        ("reason",),
    )


def _collect_sip(metrics: Metrics, control: CallControl) -> None:
    for name, (attribute, text) in _SIP_GAUGES.items():
        metrics.watch_gauge(name, text, _reader(lambda: control.user_agent, attribute))
    metrics.watch_gauge(
        "trunkline_sip_connections",
        "TCP and TLS connections, up or coming up.",
        lambda: control.user_agent.connections,
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
        "Rejected SIP messages, by reason.",
        lambda: control.guard.rejected,
        ("reason",),
    )
    metrics.watch_gauge("trunkline_sip_banned_sources", "Banned sources.", lambda: len(control.guard.banned))
    metrics.watch_gauge(
        "trunkline_gateways",
        "Outbound gateways by what is known of their health.",
        lambda: {state.name.lower(): count for state, count in control.gateways.counts().items()},
        ("state",),
    )
    metrics.watch_gauge(
        "trunkline_sip_accepted_ratio",
        "Share of new calls accepted under overload.",
        lambda: control.guard.share,
    )
    hep = control.hep
    if hep is not None:
        metrics.watch_counter("trunkline_hep_sent", "Copies of SIP messages sent.", lambda: hep.sent)
        metrics.watch_counter("trunkline_hep_dropped", "Copies of SIP messages dropped.", lambda: hep.dropped)
    metrics.watch_gauge(
        "trunkline_sip_registrations",
        "Registrations with carriers, by state.",
        lambda: counted(control.registrations()),
        ("state",),
    )


def _collect_wallets(metrics: Metrics, control: CallControl, storage: Storage) -> None:
    held = (0, 0)

    async def sum_reserves() -> None:
        nonlocal held
        held = await storage.wallet.reserved_in_all()

    metrics.refresh_with(sum_reserves)
    metrics.watch_gauge("trunkline_wallet_reserves_open", "Calls with reserved money.", lambda: held[0])
    metrics.watch_gauge("trunkline_wallet_reserved_paise", "Money reserved for calls.", lambda: held[1])
    metrics.watch_counter(
        "trunkline_wallet_failures",
        "Failed wallet operations of calls, by operation.",
        lambda: control.metrics.wallet_failures,
        ("operation",),
    )


def collect_messages(metrics: Metrics, services: Services) -> None:
    """Register the metrics of messages over the messaging network."""
    queued = 0

    async def count_queued() -> None:
        nonlocal queued
        queued = await services.storage.database.read(
            partial(chat_queue.depth, at_most=_MOST_MESSAGES_COUNTED)
        )

    metrics.refresh_with(count_queued)
    metrics.watch_counter(
        "trunkline_messages",
        "Messages over the messaging network, by the state they came to.",
        lambda: services.receiver.counts,
        ("status",),
    )
    metrics.watch_gauge(
        "trunkline_messages_queued",
        "Messages that wait for the messaging network, up to 100,000.",
        lambda: queued,
    )
    metrics.watch_gauge(
        "trunkline_messages_active",
        "Messages of the queue that are being handed to the messaging network.",
        lambda: services.dispatcher.active,
    )


def collect_recordings(metrics: Metrics, uploads: Uploader | None) -> None:
    """Register the metrics of uploads to the object store; all are 0 without one."""
    metrics.watch_gauge(
        "trunkline_recording_uploads_waiting",
        "Recordings on the disk that are to be uploaded to the object store.",
        lambda: float(uploads.waiting if uploads is not None else 0),
    )
    metrics.watch_counter(
        "trunkline_recordings_uploaded",
        "Recordings that were uploaded to the object store.",
        lambda: uploads.stored if uploads is not None else 0,
    )
    metrics.watch_counter(
        "trunkline_recording_upload_failures",
        "Attempts to upload a recording that failed; each is repeated.",
        lambda: uploads.failures if uploads is not None else 0,
    )


def collect_storage(metrics: Metrics, storage: Storage) -> None:
    """Register the metrics of the database and of webhooks."""
    writer, outbox = storage.writer, storage.outbox
    metrics.watch_gauge(
        "trunkline_database_failing",
        "1 while the database takes no writes and new calls are refused for it.",
        writer.failing,
    )
    metrics.watch_gauge(
        "trunkline_database_waiting", "Requests waiting to be written.", lambda: writer.waiting
    )
    metrics.watch_gauge(
        "trunkline_calls_unwritten",
        "Calls whose newest state is in memory and not written yet.",
        lambda: storage.calls.unwritten,
    )
    metrics.watch_histogram(
        "trunkline_database_commit_seconds",
        "How long transactions took, from their first statement to their commit.",
        lambda: writer.stats.commit_s,
    )
    for name, (attribute, text) in _WRITER.items():
        metrics.watch_counter(name, text, _reader(lambda: writer.stats, attribute))
    for name, (attribute, text) in _OUTBOX.items():
        metrics.watch_counter(name, text, _reader(lambda: outbox.stats, attribute))
    metrics.watch_gauge(
        "trunkline_webhook_held", "Webhooks in memory, about to be sent.", lambda: outbox.held
    )
    backlog: tuple[int, int | None] = (0, None)

    async def look() -> None:
        nonlocal backlog
        backlog = await storage.database.read(partial(deliveries.backlog, at_most=_MOST_COUNTED))

    metrics.refresh_with(look)
    metrics.watch_gauge(
        "trunkline_webhook_pending", "Webhooks that are not delivered yet, up to 10,000.", lambda: backlog[0]
    )
    metrics.watch_gauge(
        "trunkline_webhook_oldest_due_seconds",
        "How long the webhook that is due longest has been due.",
        lambda: _overdue_s(backlog[1]),
    )


def collect_tools(metrics: Metrics, service: ToolService, sessions: Callable[[], int]) -> None:
    """Register the metrics of tools; `sessions` returns the number of open MCP sessions."""
    metrics.watch_counter(
        "trunkline_tool_uses",
        "Uses of tools, by kind and what became of them.",
        lambda: service.uses,
        ("kind", "outcome"),
    )
    metrics.watch_histogram("trunkline_tool_seconds", "How long uses of tools took.", lambda: service.took_s)
    metrics.watch_gauge("trunkline_mcp_sessions", "Sessions of the Model Context Protocol.", sessions)


def collect_process(metrics: Metrics, lag: LoopLag, lifecycle: Lifecycle, data_dir: Path, node: str) -> None:
    """Register the metrics of the event loop, the disk and the program."""
    metrics.watch_gauge(
        "trunkline_ready", "1 while the server takes new calls.", lambda: lifecycle.phase is Phase.READY
    )
    metrics.watch_histogram(
        "trunkline_event_loop_lag_seconds", "How long after its time a timer came.", lambda: lag.lag_s
    )
    metrics.watch_gauge("trunkline_tasks", "Tasks of the event loop.", lambda: len(asyncio.all_tasks()))
    metrics.watch_counter(
        "trunkline_log_lines_dropped",
        "Lines of the log that were lost because nobody read them.",
        dropped_lines,
    )
    sizes = {"free": 0.0, "total": 0.0}

    async def look() -> None:
        # An unreachable network file system must not block the loop.
        found = await asyncio.to_thread(os.statvfs, data_dir)
        sizes["free"] = found.f_bavail * found.f_frsize
        sizes["total"] = found.f_blocks * found.f_frsize

    metrics.refresh_with(look)
    metrics.watch_gauge(
        "trunkline_data_free_bytes", "Free space of the data directory.", lambda: sizes["free"]
    )
    metrics.watch_gauge(
        "trunkline_data_size_bytes", "Size of the data directory's file system.", lambda: sizes["total"]
    )
    program = (product_version(), platform.python_version(), node)
    metrics.watch_gauge(
        "trunkline_build_info",
        "1; the version of the program, of its interpreter, and the name of the node.",
        lambda: {program: 1.0},
        ("version", "python", "node"),
    )


class LoopLag:
    """
    Measures the delay of timers of the event loop after their due time, ten times a second.

    Attributes:
        lag_s: Histogram of the lags since the start, in seconds.
    """

    def __init__(self) -> None:
        self.lag_s = Histogram(_LAG_BUCKETS_S)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer."""
        self._set()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + _LAG_EVERY_S
        self._timer = loop.call_at(at, self._look, at)

    def _look(self, due_at: float) -> None:
        self.lag_s.observe(max(asyncio.get_running_loop().time() - due_at, 0.0))
        self._set()


def _overdue_s(due_at: int | None) -> float:
    return 0.0 if due_at is None else max((to_micros(utc_now()) - due_at) / 1e6, 0.0)


def _of_buffers(control: CallControl, index: int) -> dict[str, int]:
    """One value of each UDP socket's receive buffer, by address."""
    return {address: held[index] for address, held in control.user_agent.receive_buffers.items()}


def _reader(source: Callable[[], object], attribute: str) -> Callable[[], float]:
    get = attrgetter(attribute)
    return lambda: float(get(source()))
