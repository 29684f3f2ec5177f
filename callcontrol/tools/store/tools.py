"""Tools that accounts define, and the disabled ones of all tools."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database import revisions
from callcontrol.database.encryption import seal, unseal
from callcontrol.database.statements import pack, to_micros, to_moment, unpack
from callcontrol.database.tables.tools import disabled_tools, tool_changes, tools
from callcontrol.tools.definitions import HttpTool
from callcontrol.tools.models import ToolAnnotations

_DEFINITION = (
    *("title", "description", "input_schema", "output_schema", "url", "method", "timeout_s", "annotations"),
)


def insert(connection: Connection, tool: HttpTool) -> None:
    """Write a new tool."""
    connection.execute(
        sa.insert(tools).values(
            tool_id=tool.tool_id,
            account_sid=tool.account_sid,
            name=tool.name,
            created_at=to_micros(tool.created_at),
            **_mutable(connection, tool),
        )
    )


def update(connection: Connection, tool: HttpTool) -> None:
    """Write the changed fields of a tool."""
    connection.execute(
        sa.update(tools).where(tools.c.tool_id == tool.tool_id).values(_mutable(connection, tool))
    )


def delete(connection: Connection, tool: HttpTool) -> None:
    """Delete a tool; its usage stays in the account's counts."""
    connection.execute(sa.delete(tools).where(tools.c.tool_id == tool.tool_id))
    set_enabled(connection, tool.account_sid, tool.name, enabled=True)


def get(connection: Connection, account_sid: str, name: str, *, lock: bool = False) -> HttpTool | None:
    """A tool of the account by its name; ``lock`` blocks other writers."""
    wanted = sa.select(tools).where(tools.c.account_sid == account_sid, tools.c.name == name)
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return _tool(connection, row) if row is not None else None


def of_account(connection: Connection, account_sid: str) -> list[HttpTool]:
    """The account's tools, by name."""
    rows = connection.execute(
        sa.select(tools).where(tools.c.account_sid == account_sid).order_by(tools.c.name)
    )
    return [_tool(connection, row) for row in rows]


def count(connection: Connection, account_sid: str) -> int:
    """Number of tools that the account has defined."""
    wanted = sa.select(sa.func.count()).select_from(tools).where(tools.c.account_sid == account_sid)
    return connection.scalar(wanted) or 0


def disabled(connection: Connection, account_sid: str) -> frozenset[str]:
    """The names of the tools that the account has disabled, including built-in ones."""
    return frozenset(
        connection.scalars(
            sa.select(disabled_tools.c.name).where(disabled_tools.c.account_sid == account_sid)
        )
    )


def set_enabled(connection: Connection, account_sid: str, name: str, *, enabled: bool) -> None:
    """Enable or disable a tool; repeating it changes nothing."""
    connection.execute(
        sa.delete(disabled_tools).where(
            disabled_tools.c.account_sid == account_sid, disabled_tools.c.name == name
        )
    )
    if not enabled:
        connection.execute(sa.insert(disabled_tools).values(account_sid=account_sid, name=name))


def begin_change(connection: Connection, account_sid: str) -> None:
    """
    Record that the tools of an account change in this transaction.

    Changes of all accounts are serialised from here on, so that later reads stay true until the transaction
    ends, and no reader sees a later change without an earlier one.
    """
    revision = revisions.next_revision(connection)
    noted = connection.execute(
        sa.update(tool_changes).where(tool_changes.c.account_sid == account_sid).values(revision=revision)
    )
    if noted.rowcount == 0:
        connection.execute(sa.insert(tool_changes).values(account_sid=account_sid, revision=revision))


def last_change(connection: Connection) -> int:
    """The revision of the latest change of any account's tools."""
    return connection.scalar(sa.select(sa.func.max(tool_changes.c.revision))) or 0


def changed_since(connection: Connection, seen: int) -> Mapping[str, int]:
    """The accounts whose tools have changed after a revision, each with the revision of its change."""
    rows = connection.execute(
        sa.select(tool_changes.c.account_sid, tool_changes.c.revision).where(tool_changes.c.revision > seen)
    )
    return {row.account_sid: row.revision for row in rows}


def _mutable(connection: Connection, tool: HttpTool) -> dict[str, Any]:
    shown: dict[str, Any] = {name: getattr(tool, name) for name in _DEFINITION}
    marks = tool.annotations
    shown["annotations"] = {name: getattr(marks, name) for name in ToolAnnotations.__slots__}
    headers = pack(dict(tool.headers)) if tool.headers else None
    return {
        "definition": pack(shown),
        "headers": seal(connection, tools.c.headers, tool.tool_id, headers),
        "secret": seal(connection, tools.c.secret, tool.tool_id, tool.secret),
        "updated_at": to_micros(tool.updated_at),
    }


def _tool(connection: Connection, row: Row[Any]) -> HttpTool:
    values: dict[str, Any] = unpack(row.definition)
    headers = unseal(connection, tools.c.headers, row.tool_id, row.headers)
    return HttpTool(
        tool_id=row.tool_id,
        account_sid=row.account_sid,
        name=row.name,
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
        headers=unpack(headers) if headers is not None else {},
        secret=unseal(connection, tools.c.secret, row.tool_id, row.secret) or "",
        **{**values, "annotations": ToolAnnotations(**values["annotations"])},
    )
