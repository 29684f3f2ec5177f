"""Reserves of calls that no record is written for."""

from __future__ import annotations

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.wallet.store import reserves


async def reserve(storage: Storage, account_sid: str, call_sid: str, amount_paise: int) -> None:
    """Reserve money for a call; raises `InsufficientBalance`."""
    now = utc_now()
    await storage.writer.commit(
        lambda connection: reserves.reserve(connection, account_sid, call_sid, amount_paise, now),
        undo=lambda connection: reserves.settle(connection, call_sid, 0, now),
    )


async def settle(storage: Storage, call_sid: str, charge_paise: int) -> int:
    """Charge a call, release the remainder of its reserve, and return the charge."""
    now = utc_now()
    return await storage.writer.commit(
        lambda connection: reserves.settle(connection, call_sid, charge_paise, now)
    )
