"""Applications."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.encryption import seal_binding, unseal_binding
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.trunks import carriers, phone_numbers
from callcontrol.database.values import to_micros, to_moment
from callcontrol.models import Application

_LIVE = applications.c.deleted_at.is_(None)


def insert(connection: Connection, application: Application, revision: int) -> None:
    """Write a new application."""
    connection.execute(
        sa.insert(applications).values(
            app_sid=application.app_sid,
            account_sid=application.account_sid,
            created_at=to_micros(application.created_at),
            deleted_at=None,
            **_mutable(connection, application, revision),
        )
    )


def update(connection: Connection, application: Application, revision: int) -> None:
    """Write the changed fields of an application."""
    connection.execute(
        sa.update(applications)
        .where(applications.c.app_sid == application.app_sid)
        .values(_mutable(connection, application, revision))
    )


def delete(connection: Connection, app_sid: str, now: datetime, revision: int) -> None:
    """Delete an application; the row stays for the call records that name it."""
    connection.execute(
        sa.update(applications)
        .where(applications.c.app_sid == app_sid)
        .values(deleted_at=to_micros(now), revision=revision)
    )


def get(connection: Connection, app_sid: str, *, lock: bool = False) -> Application | None:
    """
    One application, of any account.

    With ``lock`` it can be neither deleted nor attached to another number until the transaction ends, so that
    its attachments and its existence never contradict each other.
    """
    wanted = sa.select(applications).where(applications.c.app_sid == app_sid, _LIVE)
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return _application(connection, row) if row is not None else None


def page(
    connection: Connection, account_sid: str, *, offset: int, limit: int
) -> tuple[list[Application], int]:
    """A page of the account's applications, oldest first, and their total number."""
    mine = [applications.c.account_sid == account_sid, _LIVE]
    total = connection.scalar(sa.select(sa.func.count()).select_from(applications).where(*mine)) or 0
    rows = connection.execute(
        sa.select(applications)
        .where(*mine)
        .order_by(applications.c.created_at, applications.c.app_sid)
        .offset(offset)
        .limit(limit)
    )
    return [_application(connection, row) for row in rows], total


def attached(connection: Connection, app_sid: str) -> dict[str, int]:
    """Count of the numbers and carriers attached to an application; zeros are omitted."""
    counts = {
        name: connection.scalar(
            sa.select(sa.func.count())
            .select_from(table)
            .where(table.c.app_sid == app_sid, table.c.deleted_at.is_(None))
        )
        or 0
        for name, table in (("numbers", phone_numbers), ("carriers", carriers))
    }
    return {name: count for name, count in counts.items() if count}


def changed_since(connection: Connection, seen: int) -> Iterator[tuple[Application, bool]]:
    """Applications changed after a revision, each with True if it still exists."""
    for row in connection.execute(sa.select(applications).where(applications.c.revision > seen)):
        yield _application(connection, row), row.deleted_at is None


def _mutable(connection: Connection, application: Application, revision: int) -> dict[str, Any]:
    return {
        "name": application.name,
        "binding": seal_binding(connection, applications.c.binding, application.app_sid, application.binding),
        "record_all_calls": application.record_all_calls,
        "updated_at": to_micros(application.updated_at),
        "revision": revision,
    }


def _application(connection: Connection, row: Row[Any]) -> Application:
    return Application(
        app_sid=row.app_sid,
        account_sid=row.account_sid,
        name=row.name,
        binding=unseal_binding(connection, applications.c.binding, row.app_sid, row.binding),
        record_all_calls=bool(row.record_all_calls),
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
    )
