"""
Caches of the process: how many entries each has, and how many it may have.

A cached function of the product is found where its module keeps it, so that a new one is in the metrics by
itself. Caches that are objects of a service are named here.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Final

from api.process.metrics import Metrics
from callcontrol.accounts.aio import keys
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio import sip_trace
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.records import journal

__all__ = ["PRODUCT", "collect_caches", "functions"]

PRODUCT: Final = frozenset({"api", "callcontrol", "media", "sip"})
"""Packages whose cached functions count; those of libraries have bounds of their own."""


def functions() -> dict[str, functools._lru_cache_wrapper[object]]:
    """Cached functions of the product's modules that are loaded, by module and name."""
    found: dict[str, functools._lru_cache_wrapper[object]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PRODUCT and isinstance(module, ModuleType):
            found.update(_of_module(name, module))
    return found


def _of_module(name: str, module: ModuleType) -> Iterator[tuple[str, functools._lru_cache_wrapper[object]]]:
    for attribute, value in vars(module).items():
        # A function that another module has imported counts where it was made.
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ == name:
            yield f"{name}.{attribute}", value


def collect_caches(metrics: Metrics, control: CallControl, storage: Storage) -> None:
    """Register the sizes and the limits of all caches."""
    # Those without a limit have arguments of the program alone, such as a class; a test names them.
    known = {name: function for name, function in functions().items() if function.cache_info().maxsize}
    objects: Mapping[str, tuple[Callable[[], int], int]] = {
        "sip_traces": (lambda: len(control.traces), sip_trace.MAX_CALLS),
        "call_journals": (lambda: len(storage.calls.journal), journal.MAX_CALLS),
        "api_keys": (lambda: storage.keys.cached, keys.MAX_CACHED),
    }

    def entries() -> dict[str, float]:
        found = {name: float(function.cache_info().currsize) for name, function in known.items()}
        return found | {name: float(read()) for name, (read, _) in objects.items()}

    limits = {name: float(function.cache_info().maxsize or 0) for name, function in known.items()}
    limits |= {name: float(most) for name, (_, most) in objects.items()}
    metrics.watch_gauge("trunkline_cache_entries", "Entries of a cache.", entries, ("cache",))
    metrics.watch_gauge(
        "trunkline_cache_entries_limit", "Maximum of entries of a cache.", lambda: limits, ("cache",)
    )
    metrics.watch_gauge(
        "trunkline_sip_trace_bytes",
        "Memory of the SIP messages that are kept of recent calls.",
        lambda: control.traces.size_bytes,
    )
