"""Old rows go, those that are needed stay, however many there are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio import housekeeping
from callcontrol.bootstrap.aio.housekeeping import Housekeeper
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database import idempotency
from callcontrol.models import Account, StoredReply, WebhookEvent
from callcontrol.webhooks.store import deliveries

AGES_DAYS = (90, 60, 45, 31, 29, 7, 0)
STATUSES = ("delivered", "failed", "pending")


async def test_old_deliveries_and_keys_are_deleted_in_small_steps(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "_ROWS", 4)
    monkeypatch.setattr(housekeeping, "_PAUSE_S", 0.0)
    now, sid = utc_now(), account.account_sid
    stored = storage.secrets.digest("idempotency", b"h").hex()

    def fill(connection: Connection) -> None:
        for age in AGES_DAYS:
            at = now - timedelta(days=age)
            for status in STATUSES:
                event = WebhookEvent(
                    new_id(), sid, f"{age}-{status}", "https://example.com/", b"{}", at, call_sid=new_id()
                )
                deliveries.insert(connection, [deliveries.row_of(event) | {"status": status}])
            for number in range(3):
                key = (sid, f"{age}-{number}")
                idempotency.begin(
                    connection, key, "POST /x", stored, stored.__eq__, now=at, before=at, node="local"
                )
                idempotency.complete(connection, key, StoredReply(201, b"x"))

    await storage.database.write(fill)
    housekeeper = Housekeeper(storage.writer, storage.idempotency, [storage.forget_passwords])
    for _ in range(2):
        await housekeeper.clean()
        counts = await storage.database.read(deliveries.counts)
        # Of what is pending only that goes which its receiver has not taken for weeks.
        assert counts == {"pending": 4, "delivered": 3, "failed": 3}
    assert await storage.idempotency.begin(sid, "0-1", "POST /x", "h") == StoredReply(201, b"x")
    assert await storage.idempotency.begin(sid, "7-1", "POST /x", "other") is None
    assert await storage.idempotency.purge() == 0
