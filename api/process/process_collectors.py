"""Metrics of the process: database, webhooks, tools, event loop and machine."""

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
from api.process.logs import dropped_lines
from api.process.loop_lag import LoopLag
from api.process.metrics import Metrics
from api.services import Lifecycle
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.values import to_micros
from callcontrol.tools.aio.service import ToolService
from callcontrol.webhooks.store import deliveries

__all__ = ["watch_process", "watch_storage", "watch_tools"]

_MOST_COUNTED: Final = 10_000

_WRITER: Mapping[str, tuple[str, str]] = {
    "trunkline_database_transactions": ("transactions", "Transactions that were committed."),
    "trunkline_database_operations": ("operations", "What was written in them."),
    "trunkline_database_refused": ("refused", "Requests that were refused because the database was behind."),
    "trunkline_database_failures": ("failures", "Transactions that the database failed, at each attempt."),
    "trunkline_database_commits_in_doubt": ("in_doubt", "Commits that the database did not answer."),
}
_OUTBOX: Mapping[str, tuple[str, str]] = {
    "trunkline_webhook_attempts": ("attempts", "Webhooks sent, repetitions included."),
    "trunkline_webhook_delivered": ("delivered", "Webhooks that were taken."),
    "trunkline_webhook_failed": ("failed", "Webhooks that were given up."),
    "trunkline_webhook_skipped": ("skipped", "Attempts that a silent destination was spared."),
    "trunkline_webhook_postponed": ("postponed", "Webhooks put off because their destination was too slow."),
}


def watch_storage(metrics: Metrics, storage: Storage) -> None:
    """Register the metrics of the database and of webhooks."""
    writer, outbox = storage.writer, storage.outbox
    metrics.watch_gauge(
        "trunkline_database_failing",
        "1 while the database takes no writes and new calls are refused for it.",
        lambda: float(writer.failing),
    )
    metrics.watch_gauge(
        "trunkline_database_waiting", "Requests that wait to be written.", lambda: float(writer.waiting)
    )
    metrics.watch_gauge(
        "trunkline_calls_unwritten",
        "Calls whose newest state is in memory and not written yet.",
        lambda: float(storage.calls.unwritten),
    )
    metrics.watch_histogram(
        "trunkline_database_commit_seconds",
        "How long transactions took, from their first statement to their commit.",
        lambda: writer.stats.commit_s,
    )
    for name, (attribute, text) in _WRITER.items():
        metrics.watch_counter(name, text, _reader(writer.stats, attribute))
    for name, (attribute, text) in _OUTBOX.items():
        metrics.watch_counter(name, text, _reader(outbox.stats, attribute))
    metrics.watch_gauge(
        "trunkline_webhook_held", "Webhooks in memory, about to be sent.", lambda: float(outbox.held)
    )
    backlog: tuple[int, int | None] = (0, None)

    async def look() -> None:
        nonlocal backlog
        backlog = await storage.database.read(partial(deliveries.backlog, at_most=_MOST_COUNTED))

    metrics.refresh_with(look)
    metrics.watch_gauge(
        "trunkline_webhook_pending",
        "Webhooks that are not delivered yet, up to 10,000.",
        lambda: float(backlog[0]),
    )
    metrics.watch_gauge(
        "trunkline_webhook_oldest_due_seconds",
        "How long the webhook that is due longest has been due.",
        lambda: _overdue_s(backlog[1]),
    )


def watch_tools(metrics: Metrics, service: ToolService, sessions: Callable[[], int]) -> None:
    """Register the metrics of tools; `sessions` returns the number of open MCP sessions."""
    metrics.watch_counter(
        "trunkline_tool_uses",
        "Uses of tools, by kind and what became of them.",
        lambda: {labels: float(count) for labels, count in service.uses.items()},
        ("kind", "outcome"),
    )
    metrics.watch_histogram("trunkline_tool_seconds", "How long uses of tools took.", lambda: service.took_s)
    metrics.watch_gauge(
        "trunkline_mcp_sessions", "Sessions of the Model Context Protocol.", lambda: float(sessions())
    )


def watch_process(metrics: Metrics, lag: LoopLag, lifecycle: Lifecycle, data_dir: Path, node: str) -> None:
    """Register the metrics of the event loop, the disk and the program."""
    metrics.watch_gauge(
        "trunkline_ready", "1 while the server takes new calls.", lambda: float(lifecycle.takes_calls)
    )
    metrics.watch_histogram(
        "trunkline_event_loop_lag_seconds", "How long after its time a timer came.", lambda: lag.lag_s
    )
    metrics.watch_gauge(
        "trunkline_tasks", "Tasks of the event loop.", lambda: float(len(asyncio.all_tasks()))
    )
    metrics.watch_counter(
        "trunkline_log_lines_dropped",
        "Lines of the log that were lost because nobody read them.",
        lambda: float(dropped_lines()),
    )
    sizes = {"free": 0.0, "total": 0.0}

    async def look() -> None:
        # An unreachable network file system must not block the loop.
        found = await asyncio.to_thread(os.statvfs, data_dir)
        sizes["free"] = float(found.f_bavail * found.f_frsize)
        sizes["total"] = float(found.f_blocks * found.f_frsize)

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


def _overdue_s(due_at: int | None) -> float:
    return 0.0 if due_at is None else max((to_micros(utc_now()) - due_at) / 1e6, 0.0)


def _reader(source: object, attribute: str) -> Callable[[], float]:
    get = attrgetter(attribute)
    return lambda: float(get(source))
