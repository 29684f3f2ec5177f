"""SQL of nodes, for PostgreSQL alone: leases go by its clock."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.schema import HEAD, is_settled
from callcontrol.database.statements import CLOCK_US, to_moment, to_moment_or_none
from callcontrol.nodes.lease import Node, NodeReport

# One statement, so that of two servers that start with one name one gets it.
_JOIN: Final = sa.text(
    f"""
    INSERT INTO nodes (
        node, incarnation, place, url, started_at, lease_until, version, schema_revision
    )
    VALUES (
        :node, :incarnation, :place, :url, {CLOCK_US}, {CLOCK_US} + :lease_us, :version, :schema_revision
    )
    ON CONFLICT (node) DO UPDATE
    SET incarnation = excluded.incarnation, place = excluded.place, url = excluded.url,
        started_at = excluded.started_at, lease_until = excluded.lease_until, adopted_by = NULL,
        draining_since = NULL, sip_address = NULL,
        version = excluded.version, schema_revision = excluded.schema_revision
    WHERE nodes.lease_until <= {CLOCK_US}
        OR (nodes.place = excluded.place AND nodes.place <> '' AND nodes.adopted_by IS NULL)
    """
)
_RENEW: Final = sa.text(
    f"UPDATE nodes SET lease_until = {CLOCK_US} + :lease_us, url = :url, sip_address = :sip_address,"
    f" draining_since = coalesce(draining_since, CASE WHEN :is_draining THEN {CLOCK_US} END)"
    " WHERE node = :node AND incarnation = :incarnation"
)
_DRAIN: Final = sa.text(
    f"""
    UPDATE nodes SET draining_since = {CLOCK_US}
    WHERE node = :node AND adopted_by IS NULL AND lease_until > {CLOCK_US} AND draining_since IS NULL
    """
)
_CLAIM: Final = sa.text(
    f"""
    UPDATE nodes SET incarnation = :claim, adopted_by = :adopter, lease_until = {CLOCK_US} + :lease_us
    WHERE node = :node AND incarnation = :incarnation AND lease_until <= {CLOCK_US}
    """
)
# With a call that has no end, the row stays until somebody has adopted the node.
_LEAVE: Final = sa.text(
    """
    DELETE FROM nodes WHERE node = :node AND incarnation = :incarnation
        AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.node = :node AND ended_at IS NULL)
    """
)
_COLUMNS: Final = f"""
    node, incarnation, place, url, (lease_until - {CLOCK_US})::float8 / 1000000, adopted_by,
    draining_since IS NOT NULL, sip_address
"""
_SELECT: Final = f"SELECT {_COLUMNS} FROM nodes"
_ALL: Final = sa.text(f"{_SELECT} ORDER BY node")
_ONE: Final = sa.text(f"{_SELECT} WHERE node = :node")
_DUTY: Final = sa.text("SELECT node FROM duties WHERE duty = :duty")
# Of two nodes that see a duty without a living holder one gets it.
_TAKE_DUTY: Final = sa.text(
    f"""
    INSERT INTO duties (duty, node) VALUES (:duty, :node)
    ON CONFLICT (duty) DO UPDATE SET node = excluded.node
    WHERE NOT EXISTS (
        SELECT 1 FROM nodes
        WHERE nodes.node = duties.node AND nodes.adopted_by IS NULL AND nodes.lease_until > {CLOCK_US}
    )
    """
)
_LEAVE_DUTY: Final = sa.text("DELETE FROM duties WHERE duty = :duty AND node = :node")
_REPORTS: Final = sa.text(
    f"""
    SELECT started_at, draining_since, version, schema_revision,
        (SELECT count(*) FROM calls WHERE calls.node = nodes.node AND ended_at IS NULL),
        (SELECT string_agg(duty, ' ' ORDER BY duty) FROM duties WHERE duties.node = nodes.node),
        {_COLUMNS}
    FROM nodes ORDER BY node
    """
)
# A node that is not adopted may still have its conference, whatever its lease says.
_CLAIM_CONFERENCE: Final = sa.text(
    """
    INSERT INTO conferences (account_sid, name, node) VALUES (:account_sid, :name, :node)
    ON CONFLICT (account_sid, name) DO UPDATE SET node = excluded.node
    WHERE conferences.node = excluded.node OR NOT EXISTS (
        SELECT 1 FROM nodes WHERE nodes.node = conferences.node AND nodes.adopted_by IS NULL
    )
    """
)
_CONFERENCE: Final = sa.text("SELECT node FROM conferences WHERE account_sid = :account_sid AND name = :name")
_LEAVE_CONFERENCE: Final = sa.text(
    "DELETE FROM conferences WHERE account_sid = :account_sid AND name = :name AND node = :node"
)
_LEAVE_CONFERENCES: Final = sa.text("DELETE FROM conferences WHERE node = :node")


def join(connection: Connection, node: Node, lease_s: float, version: str = "") -> bool | None:
    """
    Acquire the name of a node; False while another server has it, None while the database is migrated.

    The name is free without a row, when the lease of its row is over, and for a later run in the same place,
    whose lock on the data directory proves that the earlier one has ended.

    Raises:
        SchemaTooNew: The database was migrated since this program started, which does not run on it.
    """
    if not is_settled(connection):
        return None
    values: dict[str, Any] = {"node": node.node, "incarnation": node.incarnation}
    values |= {"place": node.place, "url": node.url}
    values |= {"version": version or None, "schema_revision": HEAD}
    return connection.execute(_JOIN, {**values, "lease_us": _micros(lease_s)}).rowcount == 1


def renew(
    connection: Connection, node: Node, url: str, lease_s: float, sip_address: str | None = None
) -> bool:
    """Renew the lease of a node; False if another node has adopted it, or another server has its name."""
    values: dict[str, Any] = {
        "node": node.node,
        "incarnation": node.incarnation,
        "is_draining": node.is_draining,
    }
    values |= {"url": url, "sip_address": sip_address, "lease_us": _micros(lease_s)}
    return connection.execute(_RENEW, values).rowcount == 1


def drain(connection: Connection, node: str) -> bool:
    """Ask a node to drain; False if it is none, is dead, or drains already."""
    return connection.execute(_DRAIN, {"node": node}).rowcount == 1


def claim(connection: Connection, dead: Node, claim: str, adopter: str, lease_s: float) -> bool:
    """Claim the calls of a node whose lease is over, for a time; False if somebody was faster."""
    values = {"node": dead.node, "incarnation": dead.incarnation, "claim": claim, "adopter": adopter}
    return connection.execute(_CLAIM, {**values, "lease_us": _micros(lease_s)}).rowcount == 1


def leave(connection: Connection, node: str, incarnation: str) -> None:
    """Delete the row of a node that has ended in good order, or whose calls have all been ended."""
    connection.execute(_LEAVE, {"node": node, "incarnation": incarnation})


def take_duty(connection: Connection, duty: str, node: str) -> bool:
    """Acquire a duty that no living node has; True if it is this node's."""
    names = {"duty": duty, "node": node}
    holder = connection.execute(_DUTY, {"duty": duty}).scalar()
    return holder == node or connection.execute(_TAKE_DUTY, names).rowcount == 1


def leave_duty(connection: Connection, duty: str, node: str) -> None:
    """Leave a duty to other nodes."""
    connection.execute(_LEAVE_DUTY, {"duty": duty, "node": node})


def claim_conference(connection: Connection, account_sid: str, name: str, node: str) -> Node | None:
    """Acquire a conference that no other node has; return that other node, or None if it is this node's."""
    key = {"account_sid": account_sid, "name": name}
    while connection.execute(_CLAIM_CONFERENCE, {**key, "node": node}).rowcount != 1:
        owner = one_node(connection, connection.execute(_CONFERENCE, key).scalar_one())
        if owner is not None:
            return owner
        # That node has left since: nodes do so out of turn.
    return None


def leave_conference(connection: Connection, account_sid: str, name: str, node: str) -> None:
    """Leave a conference to the next node that asks for it."""
    connection.execute(_LEAVE_CONFERENCE, {"account_sid": account_sid, "name": name, "node": node})


def leave_conferences(connection: Connection, node: str) -> None:
    """Leave all conferences of a node, which has no call left."""
    connection.execute(_LEAVE_CONFERENCES, {"node": node})


def one_node(connection: Connection, node: str) -> Node | None:
    """Get a node by its name."""
    row = connection.execute(_ONE, {"node": node}).first()
    return None if row is None else Node(*row)


def all_nodes(connection: Connection) -> list[Node]:
    """All nodes, by name."""
    return [Node(*row) for row in connection.execute(_ALL)]


def reports(connection: Connection) -> list[NodeReport]:
    """All nodes, by name, for their operator."""
    return [
        NodeReport(
            Node(*node),
            to_moment(started),
            to_moment_or_none(draining),
            calls,
            tuple((duties or "").split()),
            version,
            schema_revision,
        )
        for started, draining, version, schema_revision, calls, duties, *node in connection.execute(_REPORTS)
    ]


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)
