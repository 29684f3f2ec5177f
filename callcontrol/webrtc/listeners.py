"""Listeners of calls: who listened in, and their rows."""

from datetime import datetime
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.database.rows import ValueTable, count
from callcontrol.database.tables.calls import call_listeners
from callcontrol.errors import Conflict
from sip.values import frozen

LISTEN_SCOPE: Final = "calls.listen"
"""Scope of those who may listen in on calls; no key has it unless it is named."""

MAX_OF_CALL: Final = 3
"""Listeners of a call at one time."""

MAX_OF_ACCOUNT: Final = 20
"""Listeners of an account's calls at one time, on one node."""

MAX_KEPT: Final = 200
"""Listenings of a call in all: none of them may be behind those that are shown."""

_COLUMNS: Final = call_listeners.c


@frozen
class CallListener:
    """
    Somebody who listens in on a call, or has.

    Attributes:
        listened_by: Id of the API key, or ``operator:`` with the name of an operator.
        ended_at: End; None before it, and for good if the process was killed.
        reason: Reason of the end.
    """

    listener_sid: str
    account_sid: str
    call_sid: str
    listened_by: str
    created_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None


_LISTENERS: Final = ValueTable(
    call_listeners,
    CallListener,
    called="listener",
    order=(_COLUMNS.created_at, _COLUMNS.listener_sid),
)


def insert(connection: Connection, listener: CallListener) -> None:
    """
    Insert a listener, unless that was done: the result of a first commit can be lost.

    Raises:
        Conflict: 200 have listened to the call.
    """
    if _LISTENERS.get(connection, listener.listener_sid) is not None:
        return
    if count(connection, call_listeners, _COLUMNS.call_sid == listener.call_sid) >= MAX_KEPT:
        raise Conflict(f"{MAX_KEPT} have listened to the call; no more are recorded, so nobody else may.")
    _LISTENERS.insert(connection, listener)


def write_end(connection: Connection, listener: CallListener) -> None:
    """Write the end of a listener."""
    _LISTENERS.update(connection, listener, None, "ended_at", "reason")


def of_call(connection: Connection, call_sid: str) -> list[CallListener]:
    """Listeners of a call, in order."""
    return _LISTENERS.all(connection, _COLUMNS.call_sid == call_sid, limit=MAX_KEPT)


def get(connection: Connection, listener_sid: str) -> CallListener | None:
    """Listener of any call; None if there is none."""
    return _LISTENERS.get(connection, listener_sid)
