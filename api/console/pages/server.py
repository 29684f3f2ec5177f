"""The server, for its operator: measurements as plots, rejected sources, log lines, nodes and settings."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from api.console.page import Navigation, Pages
from api.console.rendering import duration, refusal_text
from api.console.visit import HOME, UUID, Visit
from api.openapi.document import product_version
from callcontrol.errors import Forbidden, NodeUnreachable
from callcontrol.nodes.lease import Node

__all__ = ["pages"]

PATH: Final = f"{HOME}/server"

_ACTIONS_SHOWN: Final = 50
_BANNED_SHOWN: Final = 50
_PLOTS: Final = (
    ("trunkline_calls_active", "gauge"),
    ("trunkline_calls_ended_total", "rate"),
    ("trunkline_rtp_streams", "gauge"),
    ("trunkline_rtp_packets_received_total", "rate"),
    ("trunkline_sip_transactions", "gauge"),
    ("trunkline_sip_rejected_total", "rate"),
    ("trunkline_event_loop_lag_seconds", "mean"),
    ("trunkline_database_commit_seconds", "mean"),
    ("trunkline_http_requests_total", "rate"),
    ("trunkline_webhook_attempts_total", "rate"),
    ("process_cpu_seconds_total", "rate"),
    ("process_resident_memory_bytes", "gauge"),
)
"""Metrics of the plots: as they are, by the second, or the mean of what was observed meanwhile."""

pages = Pages(
    "server", scope="admin", service="admin", nav=Navigation("account", 30, PATH), every_account=True
)


@pages.get(PATH)
async def show_server(visit: Visit) -> web.StreamResponse:
    """Show the server to its operator; to others, how an account becomes that."""
    if not await _is_operator(visit):
        return visit.show("server.html", is_operator=False)
    membership = visit.storage.membership
    banned = visit.console.settings.banned()
    longest = sorted(banned.items(), key=lambda item: item[1], reverse=True)
    return visit.show(
        "server.html",
        is_operator=True,
        version=product_version(),
        node=membership.name or "local",
        phase=visit.console.lifecycle.phase.value,
        nodes=[_shown(node) for node in await membership.nodes()],
        plots=_PLOTS,
        banned=[{"source": source, "left": duration(left_s)} for source, left_s in longest[:_BANNED_SHOWN]],
        banned_more=max(0, len(banned) - _BANNED_SHOWN),
        settings=sorted((visit.console.settings.shown or {}).items()),
        actions=await visit.storage.operators.actions(_ACTIONS_SHOWN),
    )


@pages.get(f"{PATH}/log")
async def show_log(visit: Visit) -> web.StreamResponse:
    """
    Show the log lines of a call, which its node keeps.

    Raises:
        Forbidden: Somebody else asks than the operator.
        NodeUnreachable: The call was another node's.
    """
    if not await _is_operator(visit):
        raise Forbidden(refusal_text("log_of_operator"))
    call_sid, lines = visit.query("call").lower(), visit.console.settings.lines
    found = () if lines is None else lines.of(call_sid)
    if not found and UUID.fullmatch(call_sid):
        record = await visit.storage.calls.find(call_sid)
        if record is not None and await visit.storage.membership.is_another(record.node):
            raise NodeUnreachable(record.node, refusal_text("log_kept"))
    dropped = 0 if lines is None else lines.dropped(call_sid)
    return visit.show("log.html", call_sid=call_sid, lines=found, dropped=dropped)


@pages.get(f"{PATH}/metrics")
async def show_metrics(visit: Visit) -> web.StreamResponse:
    """Answer with the metrics, for the plots of the page."""
    scrape = visit.console.settings.scrape
    if scrape is None or not await _is_operator(visit):
        raise Forbidden(refusal_text("page_of_operator"))
    return web.Response(body=await scrape(), content_type="text/plain", charset="utf-8")


async def _is_operator(visit: Visit) -> bool:
    """
    True for the session of an operator.

    True as well if the account is named by the settings or, if none is, the only one of the server.
    """
    if visit.operator is not None:
        return True
    operators = visit.console.settings.operators
    if operators:
        return visit.account_sid in operators
    return len(await visit.storage.accounts.list()) == 1


def _shown(node: Node) -> dict[str, Any]:
    return {
        "node": node.node,
        "status": node.state.value,
        "url": node.url,
        "sip_address": node.sip_address,
        "lease": f"{node.lease_left_s:.1f} s",
    }
