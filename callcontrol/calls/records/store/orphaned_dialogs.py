"""Dialogs of calls whose process was killed, and whose peers have not been notified yet."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, insert_into, pack_exact, unpack
from callcontrol.database.tables.calls import former_dialogs
from callcontrol.models import CallRecord

Dialogs = Mapping[str, Mapping[str, Any]]
"""Saved dialogs of a call, by leg."""

_INSERT: Final = insert_into(former_dialogs, ignore_conflict=True)
_OF_NODE: Final = Statement(
    sa.select(former_dialogs.c.call_sid, former_dialogs.c.dialogs).where(
        former_dialogs.c.node == sa.bindparam("node")
    )
)


def keep(connection: Connection, node: str, records: Iterable[CallRecord]) -> None:
    """Save the dialogs of calls that a previous process of the node left behind."""
    rows = [
        {"call_sid": record.call_sid, "node": node, "dialogs": pack_exact(record.dialogs)}
        for record in records
    ]
    _INSERT.many(connection, rows)


def of_node(connection: Connection, node: str) -> dict[str, Dialogs]:
    """Dialogs that are still to be ended, by call; empty for a row that cannot be read."""
    return {row["call_sid"]: _read(row["dialogs"]) for row in _OF_NODE.all(connection, {"node": node})}


def move(connection: Connection, node: str, to_node: str) -> None:
    """Assign the remaining dialogs of a node to another."""
    connection.execute(sa.update(former_dialogs).where(former_dialogs.c.node == node).values(node=to_node))


def forget(connection: Connection, call_sids: Sequence[str]) -> None:
    """Delete the rows of calls whose peers were notified."""
    connection.execute(sa.delete(former_dialogs).where(former_dialogs.c.call_sid.in_(call_sids)))


def _read(text: str) -> Dialogs:
    """Read a row; a damaged one must not prevent the start of the server, and its peers have timers."""
    try:
        dialogs = unpack(text)
    except ValueError:
        return {}
    if not isinstance(dialogs, Mapping):
        return {}
    return {leg: saved for leg, saved in dialogs.items() if isinstance(saved, Mapping)}
