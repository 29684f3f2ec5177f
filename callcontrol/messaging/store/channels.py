"""Channels of accounts; an account without a row has a sandbox channel."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, to_micros
from callcontrol.database.tables.templates import channels
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.messaging.models import (
    DEFAULT_DISPLAY_NAME,
    DEFAULT_MESSAGES_PER_SECOND,
    SANDBOX_NUMBER,
    Channel,
)

# A number that was released, or suspended, may belong to another account by now: it is looked up each time.
_CHANNEL: Final = Statement(
    sa.select(
        phone_numbers.c.number,
        channels.c.display_name,
        channels.c.is_connected,
        channels.c.messages_per_second,
    )
    .select_from(
        channels.outerjoin(
            phone_numbers,
            sa.and_(
                phone_numbers.c.number == channels.c.number,
                phone_numbers.c.account_sid == channels.c.account_sid,
                sa.text("phone_numbers.status = 'active'"),
                phone_numbers.c.deleted_at.is_(None),
            ),
        )
    )
    .where(channels.c.account_sid == sa.bindparam("account_sid"))
)


def channel_of(
    connection: Connection, account_sid: str, *, default_rate: int = DEFAULT_MESSAGES_PER_SECOND
) -> Channel:
    """The channel of an account; ``default_rate``, in messages per second, applies where it has set none."""
    row = _CHANNEL.first(connection, {"account_sid": account_sid})
    if row is None:
        return Channel(account_sid, SANDBOX_NUMBER, DEFAULT_DISPLAY_NAME, True, default_rate)
    return Channel(
        account_sid=account_sid,
        number=row["number"] or SANDBOX_NUMBER,
        display_name=row["display_name"] or DEFAULT_DISPLAY_NAME,
        is_connected=bool(row["is_connected"]),
        messages_per_second=row["messages_per_second"] or default_rate,
    )


def change(connection: Connection, account_sid: str, values: Mapping[str, Any], now: datetime) -> None:
    """Set columns of an account's channel; None resets a column to its default."""
    stamped = {**values, "updated_at": to_micros(now)}
    changed = connection.execute(
        sa.update(channels).where(channels.c.account_sid == account_sid).values(stamped)
    )
    if not changed.rowcount:
        row = {"is_connected": True, **stamped, "account_sid": account_sid}
        connection.execute(sa.insert(channels).values(row))
