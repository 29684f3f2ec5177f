"""The settings of streams in a real database: sealed, taken in by the directory, changed at once."""

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.accounts import accounts
from callcontrol.errors import NotFound, ValidationFailed


async def test_settings_are_kept_sealed_and_known_at_once(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Acme")
    sid = account.account_sid
    settings = storage.stream_settings
    await settings.set_protocol(sid, "exotel")
    rotated, secret = await settings.rotate_secret(sid, 3600)
    known = storage.directory.account(sid)
    assert known is not None and known.stream_protocol == "exotel"
    assert known.stream_secrets(utc_now()) == (secret, account.webhook_secret)
    assert (await settings.of(sid)).stream_secret == rotated.stream_secret
    row = await storage.database.read(
        lambda connection: connection.execute(sa.select(accounts).where(accounts.c.account_sid == sid)).one()
    )
    assert row.stream_secret.startswith("sealed:") and secret not in str(row)
    await storage.accounts.update(sid, {"max_calls": 7})
    assert (await settings.of(sid)).stream_secret == rotated.stream_secret, "nothing else touches it"


async def test_what_cannot_be_set(storage: Storage) -> None:
    account, _ = await storage.accounts.create("Acme")
    with pytest.raises(ValidationFailed):
        await storage.stream_settings.set_protocol(account.account_sid, "esperanto")
    with pytest.raises(ValidationFailed):
        await storage.stream_settings.rotate_secret(account.account_sid, -1)
    with pytest.raises(NotFound):
        await storage.stream_settings.rotate_secret("nobody", 60)
