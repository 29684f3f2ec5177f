"""Metrics of a server among those that share a database; without others they stand still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.process.metrics import Metrics
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.nodes.metrics import ForwardMetrics

if TYPE_CHECKING:
    from api.http.forward import Forwarder
    from callcontrol.nodes.aio import Membership

__all__ = ["collect_nodes"]


def collect_nodes(metrics: Metrics, storage: Storage, forwarder: Forwarder | None) -> None:
    """Register the metrics of the lease, adoptions, duties, notifications and forwarded requests."""
    _collect_membership(metrics, storage.membership)
    _collect_adoptions(metrics, storage.membership)
    _collect_notifications(metrics, storage)
    _collect_forwarding(metrics, ForwardMetrics() if forwarder is None else forwarder.metrics)


def _collect_membership(metrics: Metrics, membership: Membership) -> None:
    metrics.watch_gauge(
        "trunkline_node_lease_failing",
        "1 while the lease of this node is not renewed; 0 on SQLite, which has no leases.",
        lambda: not membership.is_renewed,
    )
    metrics.watch_gauge(
        "trunkline_node_lease_left_seconds",
        "Time left of the lease of this node; 0 when it is over, and on SQLite.",
        lambda: membership.lease_left_s,
    )
    metrics.watch_gauge(
        "trunkline_nodes",
        "Nodes on the database as this one saw them last, with itself, by state; 0 on SQLite.",
        membership.states,
        ("state",),
    )
    duty = membership.registrations
    metrics.watch_gauge(
        "trunkline_node_duty_held",
        "1 while this node does that work for all nodes; always on SQLite.",
        lambda: {duty.name: duty.held},
        ("duty",),
    )


def _collect_adoptions(metrics: Metrics, membership: Membership) -> None:
    adoptions = membership.adoptions
    metrics.watch_counter(
        "trunkline_node_adoptions",
        "Adoptions of dead nodes by this one, by outcome.",
        lambda: adoptions.outcomes,
        ("outcome",),
    )
    metrics.watch_histogram(
        "trunkline_node_adoption_seconds",
        "From the claim of a dead node until its calls had ended.",
        lambda: adoptions.took_s,
    )
    metrics.watch_counter(
        "trunkline_node_adopted_calls",
        "Calls of dead nodes that this one ended.",
        lambda: adoptions.calls,
    )


def _collect_notifications(metrics: Metrics, storage: Storage) -> None:
    listener = storage.listener
    metrics.watch_gauge(
        "trunkline_listener_connected",
        "1 while changes of other servers are notified; 0 on SQLite, which has one server.",
        lambda: listener.connected,
    )
    metrics.watch_counter(
        "trunkline_notifications",
        "Notifications of changes heard, by what changed.",
        lambda: listener.notifications,
        ("topic",),
    )


def _collect_forwarding(metrics: Metrics, forwarding: ForwardMetrics) -> None:
    metrics.watch_counter(
        "trunkline_forwarded_requests",
        "Requests that another node must answer, by what became of them.",
        lambda: forwarding.outcomes,
        ("outcome",),
    )
    metrics.watch_histogram(
        "trunkline_forwarded_request_seconds",
        "From the forwarding of a request to the head of the other node's response.",
        lambda: forwarding.took_s,
    )
