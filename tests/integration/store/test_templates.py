"""Templates and channels in the database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import sqlalchemy as sa

from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.messaging.models import SANDBOX_NUMBER, Channel, Template, TemplateStatus
from callcontrol.messaging.store import channels, templates
from callcontrol.models import Account

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


async def kept(
    storage: Storage,
    account: Account,
    name: str = "order_update",
    language: str = "en_US",
    *,
    status: TemplateStatus = "APPROVED",
    reference: str | None = None,
    check_at: datetime = NOW,
) -> Template | None:
    """A template of the account, written; None when there is one of its name."""
    template = Template(
        template_id=0,
        account_sid=account.account_sid,
        name=name,
        language=language,
        category="UTILITY",
        body="Your order {{1}} is on its way.",
        variables=1,
        status=status,
        created_at=NOW,
        updated_at=NOW,
        reference=reference or new_id(),
    )
    return await storage.writer.commit(lambda connection: templates.insert(connection, template, check_at))


async def usable(
    storage: Storage, account_sid: str, name: str, language: str | None = None, *, hold: bool = False
) -> Template | None:
    return await storage.writer.commit(
        lambda connection: templates.usable(connection, account_sid, name, language, hold=hold)
    )


async def test_a_repeated_insert_writes_no_second_row_and_no_name_is_taken_twice(
    storage: Storage, account: Account
) -> None:
    first = await kept(storage, account, reference="11111111")
    again = await kept(storage, account, reference="11111111")
    assert first is not None and again == first
    assert await kept(storage, account) is None
    assert await kept(storage, account, language="hi") is not None


async def test_no_identifier_is_used_twice(storage: Storage, account: Account) -> None:
    first = await kept(storage, account)
    assert first is not None
    assert await storage.writer.commit(lambda connection: templates.delete(connection, first.reference))
    second = await kept(storage, account)
    assert second is not None and second.template_id > first.template_id


async def test_only_approved_ones_of_the_account_are_usable(storage: Storage, account: Account) -> None:
    other, _ = await storage.accounts.create("Other")
    await kept(storage, account, "pending_one", status="PENDING")
    approved = await kept(storage, account, "good_one")
    for hold in (False, True):
        assert await usable(storage, account.account_sid, "good_one", hold=hold) == approved
        assert await usable(storage, account.account_sid, "good_one", "en_US", hold=hold) == approved
        assert await usable(storage, account.account_sid, "good_one", "hi", hold=hold) is None
        assert await usable(storage, account.account_sid, "pending_one", hold=hold) is None
        assert await usable(storage, other.account_sid, "good_one", hold=hold) is None


async def test_without_a_language_english_is_meant_and_else_the_newest(
    storage: Storage, account: Account
) -> None:
    await kept(storage, account, "greeting", "hi")
    newest = await kept(storage, account, "greeting", "ta")
    assert await usable(storage, account.account_sid, "greeting") == newest
    english = await kept(storage, account, "greeting", "en_US")
    assert await usable(storage, account.account_sid, "greeting") == english
    await kept(storage, account, "greeting", "bn")
    assert await usable(storage, account.account_sid, "greeting") == english


async def test_what_is_due_is_given_to_one_at_a_time(storage: Storage, account: Account) -> None:
    due = await kept(storage, account, "due_now", status="PENDING")
    later = await kept(storage, account, "due_later", status="PENDING", check_at=NOW + 9 * SECOND)
    assert due is not None and later is not None

    async def claim(now: datetime) -> list[int]:
        found = await storage.writer.commit(
            lambda connection: templates.claim_due(connection, now, now + 5 * SECOND, limit=10)
        )
        return [template.template_id for template in found]

    assert await storage.database.read(templates.next_due) == NOW
    assert await claim(NOW) == [due.template_id]
    assert await claim(NOW) == []
    assert await claim(NOW + 5 * SECOND) == [due.template_id]
    assert await claim(NOW + 9 * SECOND) == [later.template_id]
    for template in (due, later):
        await storage.writer.commit(partial(templates.postpone, reference=template.reference, check_at=None))
    assert await storage.database.read(templates.next_due) is None


async def test_a_withdrawal_waits_until_the_network_has_forgotten(storage: Storage, account: Account) -> None:
    template = await kept(storage, account)
    assert template is not None
    gone = replace(template, network_ref="net-1")
    for _ in range(2):
        await storage.writer.commit(lambda connection: templates.withdraw(connection, gone, NOW, NOW))
    claimed = await storage.writer.commit(
        lambda connection: templates.claim_withdrawals(connection, NOW, NOW + 5 * SECOND, limit=10)
    )
    assert [(item.reference, item.network_ref) for item in claimed] == [(gone.reference, "net-1")]
    assert (
        await storage.writer.commit(
            lambda connection: templates.claim_withdrawals(connection, NOW, NOW + 5 * SECOND, limit=10)
        )
        == []
    )
    await storage.writer.commit(lambda connection: templates.withdrawn(connection, gone.reference))
    assert (
        await storage.writer.commit(
            lambda connection: templates.claim_withdrawals(connection, NOW + 9 * SECOND, NOW, limit=10)
        )
        == []
    )


async def channel_of(storage: Storage, account: Account) -> Channel:
    return await storage.database.look_up(
        lambda connection: channels.channel_of(connection, account.account_sid, default_rate=33)
    )


async def test_an_account_that_has_set_nothing_has_a_sandbox_channel(
    storage: Storage, account: Account
) -> None:
    assert await channel_of(storage, account) == Channel(
        account.account_sid, SANDBOX_NUMBER, "Sandbox", True, 33
    )


async def test_a_channel_has_what_was_set_and_its_number_only_while_it_is_the_account_s(
    storage: Storage, account: Account
) -> None:
    number = await storage.numbers.add(account.account_sid, "+918047491899")
    values = {"number": number.number, "display_name": "Acme", "is_connected": False}
    for change in (values, {"messages_per_second": 5}):
        await storage.writer.commit(
            partial(channels.change, account_sid=account.account_sid, values=change, now=NOW)
        )
    assert await channel_of(storage, account) == Channel(
        account.account_sid, "+918047491899", "Acme", False, 5
    )
    await storage.writer.commit(
        lambda connection: connection.execute(sa.update(phone_numbers).values(status="suspended")).rowcount
    )
    assert (await channel_of(storage, account)).number == SANDBOX_NUMBER
