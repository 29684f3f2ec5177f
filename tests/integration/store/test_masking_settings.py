"""Masking settings over a real database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.errors import ValidationFailed
from callcontrol.masking.settings import MaskingSettings
from callcontrol.models import Account
from callcontrol.webhooks.store import publish as fan_out
from tests.support.secrets import SECRETS

URL = "https://hooks.example.com/masking"
ROUTING_URL = "https://hooks.example.com/route"
SECRET = "a secret of eighteen"


async def stored_subscriptions(storage: Storage) -> list[tuple[str, str, str | None]]:
    def read(connection: sa.Connection) -> list[tuple[str, str, str | None]]:
        columns = (subscriptions.c.service, subscriptions.c.url, subscriptions.c.secret)
        return [(row[0], row[1], row[2]) for row in connection.execute(sa.select(*columns))]

    return await storage.database.read(read)


async def test_an_account_that_has_set_nothing_has_the_defaults(storage: Storage, account: Account) -> None:
    found = await storage.masking_settings.of(account.account_sid)
    assert found == MaskingSettings(account_sid=account.account_sid)
    assert found.record_calls and found.events_to is None


async def test_what_is_set_holds_for_the_next_call_on_every_node(
    storage: Storage, url: str, account: Account
) -> None:
    sid = account.account_sid
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    try:
        change = {
            "webhook_url": URL,
            "webhook_secret": SECRET,
            "routing_url": ROUTING_URL,
            "record_calls": False,
        }
        made = await storage.masking_settings.update(sid, change)
        assert made.subscription_id is not None and made.updated_at is not None
        assert await other.masking_settings.of(sid) == made
        assert (made.events_to, made.webhook_secret, made.record_calls) == (URL, SECRET, False)

        paused = await other.masking_settings.update(sid, {"webhook_active": False})
        assert await storage.masking_settings.of(sid) == paused
        assert (paused.events_to, paused.webhook_url, paused.webhook_secret) == (None, URL, SECRET)
        assert paused.subscription_id == made.subscription_id
    finally:
        await other.close()


async def test_a_pause_by_the_server_is_a_change(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    made = await storage.masking_settings.update(sid, {"webhook_url": URL})
    assert made.subscription_id is not None and made.updated_at is not None
    at = made.updated_at + timedelta(seconds=1)
    disable = partial(fan_out.disable, subscription_id=made.subscription_id, url=URL, reason="gone", now=at)
    assert await storage.writer.commit(disable)
    assert await storage.masking_settings.of(sid) == replace(made, webhook_active=False, updated_at=at)


async def test_the_secret_is_sealed_and_the_subscription_is_of_masking(
    storage: Storage, account: Account
) -> None:
    sid = account.account_sid
    await storage.masking_settings.update(sid, {"webhook_url": URL, "webhook_secret": SECRET})
    ((service, url, secret),) = await stored_subscriptions(storage)
    assert (service, url) == ("masking", URL)
    assert secret is not None and SECRET not in secret
    unsigned = await storage.masking_settings.update(sid, {"webhook_secret": None})
    assert unsigned.webhook_secret is None
    assert await stored_subscriptions(storage) == [("masking", URL, None)]


async def test_a_webhook_that_is_taken_away_leaves_nothing(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    await storage.masking_settings.update(
        sid, {"webhook_url": URL, "webhook_secret": SECRET, "webhook_active": False}
    )
    gone = await storage.masking_settings.update(sid, {"webhook_url": None})
    assert gone == MaskingSettings(account_sid=sid, updated_at=gone.updated_at)
    assert await stored_subscriptions(storage) == []
    again = await storage.masking_settings.update(sid, {"webhook_url": URL})
    assert (again.events_to, again.webhook_secret) == (URL, None)


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (
            {"webhook_url": "https://10.0.0.1/", "routing_url": "gopher://x"},
            ["webhook_url", "routing_url"],
        ),
        ({"webhook_url": "http://hooks.example.com/"}, ["webhook_url"]),
        ({"webhook_secret": SECRET}, ["webhook_secret"]),
        ({"webhook_active": True, "webhook_secret": SECRET}, ["webhook_secret", "webhook_active"]),
        ({"webhook_url": None, "webhook_active": False}, ["webhook_active"]),
    ],
)
async def test_what_cannot_be_is_refused_whole(
    storage: Storage, account: Account, change: dict[str, object], fields: list[str]
) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        await storage.masking_settings.update(account.account_sid, change)
    assert [error.field for error in refusal.value.errors] == fields
    assert await storage.masking_settings.of(account.account_sid) == MaskingSettings(
        account_sid=account.account_sid
    )
