"""Legs whose process was killed and whose peers are still to be told."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, insert_into
from callcontrol.database.tables import former_dialogs
from callcontrol.database.values import clean, pack, unpack
from callcontrol.models import CallRecord

Dialogs = Mapping[str, Mapping[str, Any]]
"""What ends the legs of a call, by leg."""

_INSERT: Final = insert_into(former_dialogs, ignore_conflict=True)
_OF_NODE: Final = Statement(
    sa.select(former_dialogs.c.call_sid, former_dialogs.c.dialogs).where(
        former_dialogs.c.node == sa.bindparam("node")
    )
)


def keep(connection: Connection, node: str, records: Iterable[CallRecord]) -> None:
    """Keep what ends the legs of calls that a former process of the node left behind."""
    rows = [
        {"call_sid": record.call_sid, "node": node, "dialogs": clean(pack(record.dialogs))}
        for record in records
    ]
    _INSERT.many(connection, rows)


def of_node(connection: Connection, node: str) -> dict[str, Dialogs]:
    """The legs that are still to be ended, by call; none for a row that cannot be read."""
    return {row["call_sid"]: _read(row["dialogs"]) for row in _OF_NODE.all(connection, {"node": node})}


def forget(connection: Connection, call_sids: Sequence[str]) -> None:
    """Take calls out whose peers were told."""
    connection.execute(sa.delete(former_dialogs).where(former_dialogs.c.call_sid.in_(call_sids)))


def _read(text: str) -> Dialogs:
    """What a row holds; a damaged one must not keep the server from starting, and its peers have timers."""
    try:
        dialogs = unpack(text)
    except ValueError:
        return {}
    if not isinstance(dialogs, Mapping):
        return {}
    return {leg: saved for leg, saved in dialogs.items() if isinstance(saved, Mapping)}
