"""Numbers enrolled for masking: their calls go to the target of the caller's session."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.models import PhoneNumber
from callcontrol.numbers.store import numbers

# ``target`` is the first field of a binding, and so of its stored text.
_ENROLLED: Final = (
    phone_numbers.c.binding.like('{"target":"masking"%'),
    phone_numbers.c.deleted_at.is_(None),
)
_OLDEST_FIRST: Final = (phone_numbers.c.created_at, phone_numbers.c.phone_number_id)


_POOL: Final = Statement(
    sa.select(phone_numbers.c.number)
    .where(
        phone_numbers.c.account_sid == sa.bindparam("account_sid"),
        phone_numbers.c.status == "active",
        phone_numbers.c.registered,
        *_ENROLLED,
    )
    .order_by(*_OLDEST_FIRST)
)


def pool(connection: Connection, account_sid: str) -> list[str]:
    """The account's enrolled numbers that can call out, oldest first."""
    return [row["number"] for row in _POOL.all(connection, {"account_sid": account_sid})]


def caller_id(connection: Connection, account_sid: str, enrolled: Sequence[str]) -> str | None:
    """
    The caller ID of masked calls that name no number: the oldest enrolled one, else the oldest registered.

    ``enrolled`` is the account's ``pool``.
    """
    return enrolled[0] if enrolled else numbers.default_caller_id(connection, account_sid)


def page(
    connection: Connection, account_sid: str, *, offset: int, limit: int
) -> tuple[list[PhoneNumber], int]:
    """A page of the account's enrolled numbers, oldest first, and their total number."""
    mine = (phone_numbers.c.account_sid == account_sid, *_ENROLLED)
    return numbers.NUMBERS.page(connection, *mine, order=_OLDEST_FIRST, offset=offset, limit=limit)
