"""Templates of messages, and their pending requests to the network."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.rows import ValueTable, count
from callcontrol.database.statements import Statement, insert_into, to_micros, to_micros_or_none, to_moment
from callcontrol.database.tables.templates import template_withdrawals, templates
from callcontrol.messaging.models import Template, TemplateStatus

PREFERRED_LANGUAGE: Final = "en_US"
"""The language used for a template in several languages when the request names none."""

_TEMPLATES: Final = ValueTable(templates, Template, order=(templates.c.template_id.desc(),))
_INSERT: Final = insert_into(templates, ignore_conflict=True)
_WITHDRAW: Final = insert_into(template_withdrawals, ignore_conflict=True)

_USABLE: Final = (
    sa.select(templates)
    .where(
        templates.c.account_sid == sa.bindparam("account_sid"),
        templates.c.name == sa.bindparam("name"),
        sa.text("templates.status = 'APPROVED'"),
    )
    .limit(1)
)
_IN_LANGUAGE: Final = _USABLE.where(templates.c.language == sa.bindparam("language"))
_IN_ANY: Final = _USABLE.order_by(
    sa.desc(templates.c.language == sa.bindparam("language")), templates.c.template_id.desc()
)
# Keys: a language is requested; the template must stay while it is used.
_FIND_USABLE: Final = {
    (named, held): Statement(clause.with_for_update(read=True) if held else clause)
    for named, clause in ((True, _IN_LANGUAGE), (False, _IN_ANY))
    for held in (False, True)
}


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A template deleted here that the network has still to forget."""

    reference: str
    account_sid: str
    network_ref: str | None
    created_at: datetime


def insert(connection: Connection, template: Template, check_at: datetime) -> Template | None:
    """
    Write a new template with an id of the database; None when the account has one of its name.

    ``check_at`` is when any process takes it over, if this process has not submitted it by then.
    """
    _INSERT.run(connection, {**_TEMPLATES.row_of(connection, template), "check_at": to_micros(check_at)})
    return by_reference(connection, template.reference)


def get(connection: Connection, template_id: int, *, lock: bool = False) -> Template | None:
    """One template, of any account; ``lock`` blocks other writers until the transaction ends."""
    return _TEMPLATES.get(connection, template_id, lock=lock)


def by_reference(connection: Connection, reference: str, *, lock: bool = False) -> Template | None:
    """The template that the network knows under a reference."""
    return _TEMPLATES.first(connection, templates.c.reference == reference, lock=lock)


def named(connection: Connection, account_sid: str, name: str, language: str) -> Template | None:
    """The account's template of a name and language, in any status."""
    mine = templates.c.account_sid == account_sid
    return _TEMPLATES.first(connection, mine, templates.c.name == name, templates.c.language == language)


def usable(
    connection: Connection,
    account_sid: str,
    name: str,
    language: str | None = None,
    *,
    hold: bool = False,
) -> Template | None:
    """
    The approved template of a name; without a language the one in en_US, else the newest.

    ``hold`` keeps it from being deleted before this transaction has ended.
    """
    values = {"account_sid": account_sid, "name": name, "language": language or PREFERRED_LANGUAGE}
    row = _FIND_USABLE[language is not None, hold].first(connection, values)
    return _TEMPLATES.value_of(connection, row) if row is not None else None


def page(
    connection: Connection, account_sid: str, statuses: Collection[TemplateStatus], *, offset: int, limit: int
) -> tuple[list[Template], int]:
    """A page of the account's templates in some statuses, newest first, and their total number."""
    mine = (templates.c.account_sid == account_sid, templates.c.status.in_(statuses))
    return _TEMPLATES.page(connection, *mine, offset=offset, limit=limit)


def number_of(connection: Connection, account_sid: str) -> int:
    """Number of templates of the account."""
    return count(connection, templates, templates.c.account_sid == account_sid)


def note_submitted(
    connection: Connection, reference: str, network_ref: str, check_at: datetime
) -> Template | None:
    """Record that the network has accepted a template; return it, None when it was deleted meanwhile."""
    connection.execute(
        sa.update(templates)
        .where(templates.c.reference == reference, templates.c.network_ref.is_(None))
        .values(network_ref=network_ref, check_at=to_micros(check_at))
    )
    return by_reference(connection, reference)


def update_status(connection: Connection, template: Template, check_at: datetime | None) -> None:
    """Write the status of a template."""
    changed = ("status", "rejection_reason", "updated_at")
    _TEMPLATES.update(connection, template, None, *changed, check_at=to_micros_or_none(check_at))


def postpone(connection: Connection, reference: str, check_at: datetime | None) -> None:
    """Set the time of the next query to the network about a template; None for no more."""
    connection.execute(
        sa.update(templates)
        .where(templates.c.reference == reference)
        .values(check_at=to_micros_or_none(check_at))
    )


def delete(connection: Connection, reference: str) -> bool:
    """Delete a template; return True if it existed."""
    return bool(connection.execute(sa.delete(templates).where(templates.c.reference == reference)).rowcount)


def claim_due(connection: Connection, now: datetime, until: datetime, *, limit: int) -> Sequence[Template]:
    """Claim templates due for a query to the network; no other process gets them before ``until``."""
    rows = connection.execute(
        sa.select(templates)
        .where(templates.c.check_at <= to_micros(now))
        .order_by(templates.c.check_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    _lease(connection, templates.c.reference, templates.c.check_at, rows, until)
    return [_TEMPLATES.value_of(connection, row) for row in rows]


def withdraw(connection: Connection, template: Template, now: datetime, due_at: datetime) -> None:
    """Record that the network has to forget a template."""
    _WITHDRAW.run(
        connection,
        {
            "reference": template.reference,
            "account_sid": template.account_sid,
            "network_ref": template.network_ref,
            "due_at": to_micros(due_at),
            "created_at": to_micros(now),
        },
    )


def claim_withdrawals(
    connection: Connection, now: datetime, until: datetime, *, limit: int
) -> Sequence[Withdrawal]:
    """Claim due withdrawals from the network; no other process gets them before ``until``."""
    rows = connection.execute(
        sa.select(template_withdrawals)
        .where(template_withdrawals.c.due_at <= to_micros(now))
        .order_by(template_withdrawals.c.due_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    _lease(connection, template_withdrawals.c.reference, template_withdrawals.c.due_at, rows, until)
    return [
        Withdrawal(row.reference, row.account_sid, row.network_ref, to_moment(row.created_at)) for row in rows
    ]


def postpone_withdrawal(connection: Connection, reference: str, due_at: datetime) -> None:
    """Set the time of the next attempt of a withdrawal."""
    connection.execute(
        sa.update(template_withdrawals)
        .where(template_withdrawals.c.reference == reference)
        .values(due_at=to_micros(due_at))
    )


def withdrawn(connection: Connection, reference: str) -> None:
    """Delete a withdrawal after the network has forgotten the template."""
    connection.execute(sa.delete(template_withdrawals).where(template_withdrawals.c.reference == reference))


def next_due(connection: Connection) -> datetime | None:
    """Earliest time of a due query or withdrawal."""
    moments = [
        connection.scalar(sa.select(sa.func.min(templates.c.check_at))),
        connection.scalar(sa.select(sa.func.min(template_withdrawals.c.due_at))),
    ]
    earliest = min((moment for moment in moments if moment is not None), default=None)
    return None if earliest is None else to_moment(earliest)


def _lease(
    connection: Connection,
    key: sa.Column[str],
    due: sa.Column[int],
    rows: Sequence[Row[Any]],
    until: datetime,
) -> None:
    references = [row.reference for row in rows]
    connection.execute(sa.update(key.table).where(key.in_(references)).values({due.name: to_micros(until)}))
