"""Which number of an account masked calls show."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.store.tables import phone_numbers

MASKING_TARGET: Final = "masking"
"""The target of inbound calls that makes a number one for masking."""

# Bindings are stored with their target first (`Binding.to_json`).
_ENROLLED: Final = f'{{"target":"{MASKING_TARGET}"'


def masked_number(connection: Connection, account_sid: str) -> str | None:
    """
    The number that both parties of a masked call see; None when the account has none that may call.

    It is the one enrolled for masking that has been there for longest, else the one there for longest.
    """
    enrolled = sa.func.coalesce(phone_numbers.c.binding, "").startswith(_ENROLLED, autoescape=True)
    return connection.scalar(
        sa.select(phone_numbers.c.number)
        .where(
            phone_numbers.c.account_sid == account_sid,
            phone_numbers.c.deleted_at.is_(None),
            phone_numbers.c.status == "active",
            phone_numbers.c.registered,
        )
        .order_by(
            sa.case((enrolled, 0), else_=1), phone_numbers.c.created_at, phone_numbers.c.phone_number_id
        )
        .limit(1)
    )
