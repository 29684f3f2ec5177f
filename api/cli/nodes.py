"""Commands for the servers that share a PostgreSQL database."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, Final

from api.cli.admin import on_storage
from callcontrol.bootstrap.aio.administration import Administration
from callcontrol.clock import timestamp
from callcontrol.errors import Conflict
from callcontrol.nodes.lease import NodeReport

__all__ = ["drain_node", "list_nodes"]

_LOOK_S: Final = 0.5


@on_storage
async def list_nodes(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline nodes list`."""
    return {"nodes": [_node(report) for report in await storage.nodes()]}


@on_storage
async def drain_node(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline nodes drain`; a node that drains already is no failure, so it may be repeated."""
    name = arguments.node
    is_new = await storage.drain_node(name)
    report = await storage.node(name)
    if report is not None and not is_new:
        _say(f"the node {name} is draining already, since {timestamp(report.draining_since)}")
    if report is not None and not arguments.wait:
        return _node(report)
    if report is not None:
        await _wait_for_end(storage, report)
    return {"node": name, "state": "ended"}


async def _wait_for_end(storage: Administration, draining: NodeReport) -> None:
    """
    Wait until a node that drains has ended, and show its calls whenever their number changes.

    Raises:
        Conflict: It died.
    """
    name, shown = draining.node.node, -1
    report: NodeReport | None = draining
    # Whoever starts it again gives it another incarnation, and so does its adopter.
    while report is not None and not _is_later(report, draining):
        if not report.node.is_living:
            raise Conflict(f"The node {name} died while it drained; another one ends its calls.")
        if report.active_calls != shown:
            shown = report.active_calls
            _say(f"{name}: {shown} active {'call' if shown == 1 else 'calls'}")
        await asyncio.sleep(_LOOK_S)
        report = await storage.node(name)


def _is_later(report: NodeReport, draining: NodeReport) -> bool:
    return report.node.adopted_by is None and report.node.incarnation != draining.node.incarnation


def _node(report: NodeReport) -> dict[str, Any]:
    node = report.node
    return {
        "node": node.node,
        "url": node.url,
        "state": node.state.value,
        "version": report.version,
        "schema": report.schema_revision,
        "started_at": timestamp(report.started_at),
        "draining_since": timestamp(report.draining_since),
        "lease_left_s": round(node.lease_left_s, 1),
        "adopted_by": node.adopted_by,
        "active_calls": report.active_calls,
        "duties": list(report.duties) if node.is_living else [],
    }


def _say(text: str) -> None:
    print(f"trunkline: {text}", file=sys.stderr, flush=True)
