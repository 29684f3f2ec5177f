"""Campaigns over a real database: taken, made into messages, counted, completed once, cancelled."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.campaigns import campaigns as table
from callcontrol.database.tables.webhooks import deliveries
from callcontrol.errors import ChannelNotConfigured, Conflict, NotFound, ValidationFailed
from callcontrol.messaging.campaigns import MAX_OPEN, RECEIPTS_AWAITED, CampaignCounts, CampaignState
from callcontrol.messaging.models import SANDBOX_NUMBER
from callcontrol.messaging.store import campaigns, channels, contacts, queue, templates
from callcontrol.models import Account
from callcontrol.webhooks.store import subscriptions
from callcontrol.webhooks.subscriptions import Subscription
from tests.support.campaigns import approve, held, messages_of, numbers, receive, request
from tests.support.secrets import SECRETS

HOUR = timedelta(hours=1)


async def told(storage: Storage, event: str) -> int:
    """Return the number of published events of a kind."""
    count = sa.select(sa.func.count()).select_from(deliveries).where(deliveries.c.event == event)
    return await storage.database.read(lambda connection: connection.scalar(count) or 0)


async def subscribe(storage: Storage, account: Account, *events: str) -> None:
    now = utc_now()
    made = Subscription(
        new_id(), account.account_sid, "messaging", "https://receiver.example/hook", events, now, now
    )
    await storage.writer.commit(lambda connection: subscriptions.insert(connection, made))


def wrong_fields(refusal: ValidationFailed) -> set[str]:
    return {error.field for error in refusal.errors}


async def finish_making(storage: Storage, minutes: int = 0) -> None:
    """Finish all calls that may be made."""
    while await storage.campaigns.run(utc_now() + timedelta(minutes=minutes)):
        pass


async def test_a_campaign_sends_one_message_to_each_number(storage: Storage, account: Account) -> None:
    await approve(storage, account.account_sid)
    given = ["+91 98001-00001", "+919800100002", "+919800100001", "98001", "+919800100002"]
    taken = await storage.campaigns.create(account.account_sid, request(phone_numbers=given))
    assert taken.duplicates == ("+919800100001", "+919800100002") and taken.invalid == ("98001",)
    campaign = taken.view.campaign
    assert (campaign.state, campaign.total) == (CampaignState.RUNNING, 2)
    assert taken.view.counts == CampaignCounts(queued=2)
    await finish_making(storage)
    made = await messages_of(storage, campaign.campaign_id)
    assert [message.to for message in made] == ["+919800100001", "+919800100002"]
    assert {(message.type, message.status, message.from_) for message in made} == {
        ("template", "queued", SANDBOX_NUMBER)
    }
    assert made[0].content == {
        "template": {"name": "offer", "language": "en_US", "bodyParameters": ["Asha", "10 %"]}
    }


async def test_who_has_opted_out_is_left_out_and_named(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    await approve(storage, sid)
    one, two = numbers(2)
    await storage.writer.commit(lambda rows: contacts.set_opted_out(rows, sid, two, True, utc_now()))
    taken = await storage.campaigns.create(sid, request(2))
    assert taken.opted_out == (two,) and taken.view.counts.total == 1
    with pytest.raises(ValidationFailed) as refusal:
        await storage.campaigns.create(sid, request(phone_numbers=[two]))
    assert wrong_fields(refusal.value) == {"phoneNumbers"}
    assert (await storage.campaigns.list(sid, None, 1, 10)).total == 1
    assert one not in taken.opted_out


async def test_what_makes_no_sense_is_refused_whole(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    await approve(storage, sid)
    past = utc_now() - HOUR
    with pytest.raises(ValidationFailed) as refusal:
        await storage.campaigns.create(sid, request(phone_numbers=["x", "12"], scheduled_for=past))
    assert wrong_fields(refusal.value) == {"phoneNumbers", "scheduledFor"}
    with pytest.raises(ValidationFailed) as refusal:
        await storage.campaigns.create(sid, request(variables={"1": "a", "name": "b"}))
    assert wrong_fields(refusal.value) == {"variables.2", "variables.name"}
    for unknown in (request(template_name="no_such"), request(language="hi")):
        with pytest.raises(NotFound):
            await storage.campaigns.create(sid, unknown)
    with pytest.raises(NotFound):
        await storage.campaigns.create((await another(storage)).account_sid, request())
    await storage.writer.commit(lambda rows: channels.change(rows, sid, {"is_connected": False}, utc_now()))
    with pytest.raises(ChannelNotConfigured):
        await storage.campaigns.create(sid, request())
    assert (await storage.campaigns.list(sid, None, 1, 10)).total == 0


async def another(storage: Storage) -> Account:
    return (await storage.accounts.create("Other"))[0]


async def test_a_scheduled_campaign_waits_for_its_time(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    template = await approve(storage, sid)
    taken = await storage.campaigns.create(sid, request(scheduled_for=utc_now() + HOUR))
    campaign_id = taken.view.campaign.campaign_id
    await finish_making(storage, minutes=59)
    view = await storage.campaigns.status(sid, campaign_id)
    assert view.campaign.state is CampaignState.SCHEDULED and view.campaign.started_at is None
    assert view.counts == CampaignCounts(queued=3) and await messages_of(storage, campaign_id) == []
    assert await storage.database.read(lambda rows: campaigns.uses_template(rows, template.template_id))
    await finish_making(storage, minutes=61)
    view = await storage.campaigns.status(sid, campaign_id)
    assert view.campaign.state is CampaignState.RUNNING and view.campaign.started_at is not None
    assert len(await messages_of(storage, campaign_id)) == 3


async def test_messages_are_made_some_seconds_ahead_only(storage: Storage, account: Account) -> None:
    sid, now = account.account_sid, utc_now()
    await approve(storage, sid)
    await storage.writer.commit(lambda rows: channels.change(rows, sid, {"messages_per_second": 30}, now))
    taken = await storage.campaigns.create(sid, request(400))
    campaign_id = taken.view.campaign.campaign_id
    await finish_making(storage)
    made = await messages_of(storage, campaign_id)
    assert len(made) == 150
    view = await storage.campaigns.status(sid, campaign_id)
    assert view.counts == CampaignCounts(queued=400)
    await receive(storage, made[:60], "delivered", now)
    await finish_making(storage)
    assert len(await messages_of(storage, campaign_id)) == 200
    assert (await storage.campaigns.status(sid, campaign_id)).counts == CampaignCounts(340, delivered=60)


async def test_a_campaign_completes_once_and_says_so(storage: Storage, account: Account) -> None:
    sid, now = account.account_sid, utc_now()
    await approve(storage, sid)
    await subscribe(storage, account, "campaign.completed")
    taken = await storage.campaigns.create(sid, request(4))
    campaign_id = taken.view.campaign.campaign_id
    await finish_making(storage)
    one, two, three, four = await messages_of(storage, campaign_id)
    assert not await receive(storage, [one, two], "read", now)
    assert not await receive(storage, [three, four], "sent", now)
    assert not await receive(storage, [three], "failed", now)
    assert (await storage.campaigns.status(sid, campaign_id)).campaign.state is CampaignState.RUNNING
    assert await receive(storage, [four], "delivered", now)
    assert not await receive(storage, [four], "read", now)
    view = await storage.campaigns.status(sid, campaign_id)
    assert view.campaign.state is CampaignState.COMPLETED and view.campaign.ended_at is not None
    assert view.counts == CampaignCounts(read=3, failed=1)
    assert await told(storage, "campaign.completed") == 1


async def test_messages_that_nobody_hears_of_again_hold_no_campaign_up(
    storage: Storage, account: Account
) -> None:
    sid, now = account.account_sid, utc_now()
    await approve(storage, sid)
    await subscribe(storage, account, "campaign.completed")
    campaign_id = (await storage.campaigns.create(sid, request(2))).view.campaign.campaign_id
    await finish_making(storage)
    made = await messages_of(storage, campaign_id)
    await receive(storage, made, "sent", now)
    await storage.campaigns.run(now + RECEIPTS_AWAITED / 2)
    assert (await storage.campaigns.status(sid, campaign_id)).campaign.state is CampaignState.RUNNING
    for _ in range(2):
        await storage.campaigns.run(now + RECEIPTS_AWAITED)
    assert (await storage.campaigns.status(sid, campaign_id)).campaign.state is CampaignState.COMPLETED
    assert await told(storage, "campaign.completed") == 1
    await receive(storage, made, "read", now + HOUR)
    assert (await storage.campaigns.status(sid, campaign_id)).counts == CampaignCounts(read=2)


async def test_a_campaign_of_which_all_fails_has_failed(storage: Storage, account: Account) -> None:
    sid, now = account.account_sid, utc_now()
    await approve(storage, sid)
    await subscribe(storage, account, "campaign.completed")
    campaign_id = (await storage.campaigns.create(sid, request(2))).view.campaign.campaign_id
    await finish_making(storage)
    assert await receive(storage, await messages_of(storage, campaign_id), "failed", now)
    view = await storage.campaigns.status(sid, campaign_id)
    assert view.campaign.state is CampaignState.FAILED and view.counts == CampaignCounts(failed=2)
    assert await told(storage, "campaign.completed") == 1


async def test_what_changes_before_a_campaign_starts_has_its_messages_fail(
    storage: Storage, account: Account
) -> None:
    sid = account.account_sid
    template = await approve(storage, sid)
    await subscribe(storage, account, "message.failed", "campaign.completed")
    later = request(2, scheduled_for=utc_now() + HOUR)
    first, second, third = [
        (await storage.campaigns.create(sid, later)).view.campaign.campaign_id for _ in range(3)
    ]
    opted, _ = numbers(2)

    await storage.writer.commit(lambda rows: channels.change(rows, sid, {"is_connected": False}, utc_now()))
    await run_only(storage, first)
    await storage.writer.commit(lambda rows: channels.change(rows, sid, {"is_connected": True}, utc_now()))
    await storage.writer.commit(lambda rows: contacts.set_opted_out(rows, sid, opted, True, utc_now()))
    await run_only(storage, second)
    waiting = [each for each in await messages_of(storage, second) if each.status == "queued"]
    assert await held(storage, waiting) == {}
    await storage.writer.commit(lambda rows: templates.delete(rows, template.reference))
    await approve(storage, sid)
    await run_only(storage, third)
    assert [set(await codes(storage, each)) for each in (first, second, third)] == [
        {"CHANNEL_NOT_CONFIGURED"},
        {"OPTED_OUT", None},
        {"OPTED_OUT", "TEMPLATE_NOT_APPROVED"},
    ]
    assert await held(storage, waiting) == {waiting[0].message_id: "TEMPLATE_NOT_APPROVED"}
    assert (await storage.campaigns.status(sid, third)).campaign.state is CampaignState.FAILED
    assert (await told(storage, "message.failed"), await told(storage, "campaign.completed")) == (5, 2)


async def run_only(storage: Storage, campaign_id: int) -> None:
    """Make a campaign due, and no other."""
    now = utc_now()
    await storage.writer.commit(
        lambda rows: (
            rows.execute(
                sa.update(table).where(table.c.campaign_id == campaign_id).values(starts_at=0)
            ).rowcount
        )
    )
    while await storage.campaigns.run(now):
        pass


async def codes(storage: Storage, campaign_id: int) -> list[str | None]:
    return [message.error_code for message in await messages_of(storage, campaign_id)]


async def test_a_message_that_waits_for_its_next_attempt_keeps_a_campaign_running(
    storage: Storage, account: Account
) -> None:
    sid, now = account.account_sid, utc_now()
    await approve(storage, sid)
    campaign_id = (await storage.campaigns.create(sid, request(3))).view.campaign.campaign_id
    await finish_making(storage)
    waiting, *others = await messages_of(storage, campaign_id)
    await receive(storage, others, "read", now)
    later = now + timedelta(minutes=5)
    postponed = queue.Postponed(waiting.message_id, later)
    await storage.writer.commit(partial(queue.postpone, due=[postponed]))
    await finish_making(storage, minutes=3)
    view = await storage.campaigns.status(sid, campaign_id)
    assert (view.campaign.state, view.counts) == (CampaignState.RUNNING, CampaignCounts(queued=1, read=2))
    assert view.estimated_end == later
    assert (await storage.campaigns.list(sid, None, 1, 10)).items == [view]
    await receive(storage, [waiting], "failed", now)
    view = await storage.campaigns.status(sid, campaign_id)
    assert (view.campaign.state, view.estimated_end) == (CampaignState.COMPLETED, None)


async def test_a_cancelled_campaign_sends_nothing_more(storage: Storage, account: Account) -> None:
    sid, now = account.account_sid, utc_now()
    await approve(storage, sid)
    await subscribe(storage, account, "campaign.completed", "message.failed")
    await storage.writer.commit(lambda rows: channels.change(rows, sid, {"messages_per_second": 1}, now))
    campaign_id = (await storage.campaigns.create(sid, request(130))).view.campaign.campaign_id
    await finish_making(storage)
    made = await messages_of(storage, campaign_id)
    await receive(storage, made[:10], "sent", now)
    for _ in range(2):
        view = await storage.campaigns.cancel(sid, campaign_id)
        assert view.campaign.state is CampaignState.CANCELLED and view.estimated_end is None
        assert view.counts == CampaignCounts(sent=10, cancelled=120)
    await finish_making(storage)
    assert len(await messages_of(storage, campaign_id)) == len(made) == 100
    await receive(storage, made[:10], "delivered", now)
    assert (await storage.campaigns.status(sid, campaign_id)).counts == CampaignCounts(
        delivered=10, cancelled=120
    )
    assert set((await held(storage, made)).values()) == {"CAMPAIGN_CANCELLED"}
    assert (await told(storage, "campaign.completed"), await told(storage, "message.failed")) == (0, 0)


async def test_what_is_over_or_foreign_cannot_be_cancelled(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    await approve(storage, sid)
    campaign_id = (await storage.campaigns.create(sid, request(1))).view.campaign.campaign_id
    stranger = (await another(storage)).account_sid
    for attempt in (storage.campaigns.cancel, storage.campaigns.status):
        with pytest.raises(NotFound):
            await attempt(stranger, campaign_id)
        with pytest.raises(NotFound):
            await attempt(sid, campaign_id + 1)
    await finish_making(storage)
    await receive(storage, await messages_of(storage, campaign_id), "read", utc_now())
    with pytest.raises(Conflict) as refusal:
        await storage.campaigns.cancel(sid, campaign_id)
    assert refusal.value.details == {"status": "completed"}


async def test_campaigns_are_listed_newest_first_with_their_counts(
    storage: Storage, account: Account
) -> None:
    sid = account.account_sid
    await approve(storage, sid)
    made = [
        (await storage.campaigns.create(sid, request(size, name=f"Number {size}"))).view.campaign.campaign_id
        for size in (1, 2, 3, 4, 5)
    ]
    await finish_making(storage)
    await storage.campaigns.cancel(sid, made[1])
    await storage.campaigns.create(sid, request(scheduled_for=utc_now() + HOUR))
    pages = [await storage.campaigns.list(sid, None, page, 4) for page in (1, 2, 3)]
    assert [page.total for page in pages] == [6, 6, 6]
    sizes = [view.counts.total for page in pages for view in page.items]
    assert sizes == [3, 5, 4, 3, 2, 1]
    states = [view.campaign.state.status for page in pages for view in page.items]
    assert states == ["scheduled", "running", "running", "running", "cancelled", "running"]
    cancelled = await storage.campaigns.list(sid, CampaignState.CANCELLED, 1, 10)
    assert [view.counts for view in cancelled.items] == [CampaignCounts(cancelled=2)]
    assert (await storage.campaigns.list((await another(storage)).account_sid, None, 1, 10)).items == []


async def test_an_account_may_have_so_many_campaigns_under_way(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid = account.account_sid
    await approve(storage, sid)
    monkeypatch.setattr("callcontrol.messaging.aio.campaigns.MAX_OPEN", 2)
    ids = [(await storage.campaigns.create(sid, request(1))).view.campaign.campaign_id for _ in range(2)]
    with pytest.raises(Conflict):
        await storage.campaigns.create(sid, request(1))
    await storage.campaigns.cancel(sid, ids[0])
    await storage.campaigns.create(sid, request(1))
    assert MAX_OPEN == 100


async def test_two_processes_make_each_message_once(url: str, storage: Storage, account: Account) -> None:
    sid = account.account_sid
    await approve(storage, sid)
    await subscribe(storage, account, "campaign.completed")
    second = await Storage.open(url, StorageSettings(node="second"), deliver=False, secrets=SECRETS)
    try:
        made = await asyncio.gather(
            *(process.campaigns.create(sid, request(70)) for process in (storage, second))
        )
        ids = [taken.view.campaign.campaign_id for taken in made]
        await asyncio.gather(*(finish_making(process) for process in (storage, second, storage, second)))
        for campaign_id in ids:
            found = await messages_of(storage, campaign_id)
            assert [message.to for message in found] == numbers(70)
            now = utc_now()
            await asyncio.gather(
                receive(storage, found[:40], "read", now), receive(second, found[30:], "read", now)
            )
        await asyncio.gather(*(finish_making(process) for process in (storage, second)))
        views = [await storage.campaigns.status(sid, campaign_id) for campaign_id in ids]
        assert {view.campaign.state for view in views} == {CampaignState.COMPLETED}
        assert await told(storage, "campaign.completed") == 2
    finally:
        await second.close()
