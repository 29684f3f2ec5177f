"""
Metrics of the server in the Prometheus format.

Values that a part of the server keeps anyway are read at every scrape of /metrics, by the functions given to
`Metrics`; only HTTP requests are counted here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import isinf
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from callcontrol.errors import DomainError
from callcontrol.histogram import Histogram as Distribution

__all__ = ["METRICS_CONTENT_TYPE", "Metrics"]

METRICS_CONTENT_TYPE = CONTENT_TYPE_LATEST

_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_REFRESH_S = 1.0
"""Values that take longer to refresh, for example with an unreachable database, keep their last state."""

# Creation times of counters are useless, and double the size of a response.
disable_created_metrics()  # type: ignore[no-untyped-call]  # Untyped in the library.

Reading = float | Mapping[Any, float]
"""A value, or values by label or by tuple of labels."""

Distributions = Distribution | Mapping[str, Distribution]
"""A histogram, or histograms by label."""


class Metrics:
    """Metrics registry of one server; several servers in a process have separate ones."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._watched = _Watched()
        self._refreshers: list[Callable[[], Awaitable[None]]] = []
        self._refreshing: set[asyncio.Task[None]] = set()
        self._registry.register(self._watched)
        ProcessCollector(registry=self._registry)
        self._requests = Histogram(
            "trunkline_http_request_seconds",
            "Time from a request's headers to its answer.",
            ("method", "route"),
            buckets=_LATENCY_BUCKETS_S,
            registry=self._registry,
        )
        self._answers = Counter(
            "trunkline_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )

        self._children: dict[tuple[str, str, int], tuple[Histogram, Counter]] = {}

    def observe_request(self, method: str, route: str, status: int, took_s: float) -> None:
        """Count one request; `route` is the declared path, so that labels stay few."""
        found = self._children.get((method, route, status))
        if found is None:
            known = method if method in _METHODS else "other"
            found = self._requests.labels(known, route), self._answers.labels(known, route, str(status))
            if known == method:
                # Looking them up takes longer than counting; methods made up by clients are not cached.
                self._children[method, route, status] = found
        found[0].observe(took_s)
        found[1].inc()

    def watch_gauge(
        self, name: str, help_text: str, read: Callable[[], Reading], labels: tuple[str, ...] = ()
    ) -> None:
        """Register a gauge that is read at every scrape."""
        self._watched.add(GaugeMetricFamily, name, help_text, read, labels)

    def watch_counter(
        self, name: str, help_text: str, read: Callable[[], Reading], labels: tuple[str, ...] = ()
    ) -> None:
        """Register a counter that is read at every scrape."""
        self._watched.add(CounterMetricFamily, name, help_text, read, labels)

    def watch_histogram(
        self, name: str, help_text: str, read: Callable[[], Distributions], labels: tuple[str, ...] = ()
    ) -> None:
        """Register a histogram that is read at every scrape, or one per value of a label."""
        self._watched.add(HistogramMetricFamily, name, help_text, read, labels)

    def refresh_with(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Await `refresh` before each scrape, for values that cannot be read synchronously."""
        self._refreshers.append(refresh)

    async def scrape(self) -> bytes:
        """Return the text for Prometheus."""
        # A refresh that still runs from the last scrape is awaited, not started again.
        if not self._refreshing:
            for refresh in self._refreshers:
                task = asyncio.get_running_loop().create_task(_refreshed(refresh))
                self._refreshing.add(task)
                task.add_done_callback(self._refreshing.discard)
        if self._refreshing:
            await asyncio.wait(self._refreshing, timeout=_REFRESH_S)
        return generate_latest(self._registry)

    async def close(self) -> None:
        """Cancel running refreshes."""
        for task in list(self._refreshing):
            task.cancel()
        if self._refreshing:
            await asyncio.wait(self._refreshing)


_log = logging.getLogger("api.process.metrics")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_Family = type[GaugeMetricFamily] | type[CounterMetricFamily] | type[HistogramMetricFamily]


async def _refreshed(refresh: Callable[[], Awaitable[None]]) -> None:
    try:
        await refresh()
    except DomainError as error:
        # The database is unreachable: that is logged elsewhere, and the other metrics are still valid.
        _log.debug("a metric cannot be refreshed: %s", error.message)
    except Exception:
        # The last value is shown again; the other metrics are still valid.
        _log.warning("a metric cannot be refreshed", exc_info=True)


class _Watched(Collector):
    """Collector of values that are read during the scrape."""

    def __init__(self) -> None:
        self._sources: list[tuple[str, Callable[[], Metric]]] = []

    def add(
        self,
        family: _Family,
        name: str,
        help_text: str,
        read: Callable[[], Reading | Distributions],
        labels: tuple[str, ...],
    ) -> None:
        def make() -> Metric:
            metric = family(name, help_text, labels=labels)
            # A family of histograms takes other arguments than one of numbers.
            add_metric: Callable[..., None] = metric.add_metric
            reading = read()
            found: Mapping[Any, Any] = reading if isinstance(reading, Mapping) else {(): reading}
            for label, value in found.items():
                values = label if isinstance(label, tuple) else (label,)
                if isinstance(value, Distribution):
                    add_metric(values, _bounds(value), value.sum)
                else:
                    add_metric(values, value)
            return metric

        self._sources.append((name, make))

    def collect(self) -> Iterable[Metric]:
        for name, make in self._sources:
            try:
                yield make()
            except Exception:
                # A part that is closed or broken must not hide the metrics of the others.
                _log.warning("the metric %s cannot be read", name, exc_info=True)


def _bounds(distribution: Distribution) -> list[tuple[str, int]]:
    return [("+Inf" if isinf(bound) else str(bound), count) for bound, count in distribution.cumulative()]
