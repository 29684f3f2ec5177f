"""Messages on their way through a process: handed over once, whatever fails, restarts or runs beside it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from api.process.idempotency_recovery import answer_interrupted
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.statements import to_micros
from callcontrol.database.tables.chat import chat_paces
from callcontrol.errors import ChannelNotConfigured, NotFound, SendFailed, ValidationFailed
from callcontrol.messaging.aio import receiving
from callcontrol.messaging.aio.dispatcher import DispatcherSettings
from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.models import MessageStatus
from callcontrol.messaging.network import (
    InboundMessage,
    NetworkRefused,
    NetworkUnavailable,
    Receipt,
)
from callcontrol.messaging.store import channels, contacts
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store import queue as chat_queue
from callcontrol.messaging.store.messages import MessageFilter
from callcontrol.models import Account
from fixtures.messaging_network import SandboxMessagingNetwork
from tests.support.campaigns import approve
from tests.support.late_answers import LateAnswer
from tests.support.messaging import MessagingStage, ScriptedNetwork, messaging, queued
from tests.support.secrets import SECRETS
from tests.support.waiting import until

TO = "+919800100000"
QUICK = DispatcherSettings(poll_s=0.2, direct_delays_s=(0.01, 0.01), timeout_s=30.0)


def text(to: str = TO) -> SendMessage:
    return SendMessage(to, "text", text="Your parcel is here.")


@pytest.fixture
async def sandbox(storage: Storage) -> AsyncIterator[MessagingStage]:
    """The service before the stand-in, which is twenty times as fast as documented."""
    async with messaging(storage, SandboxMessagingNetwork(speed=20.0), QUICK) as stage:
        yield stage


@pytest.mark.parametrize(
    ("ending", "last"),
    [("00", "read"), ("01", "delivered"), ("02", "sent"), ("03", "failed"), ("09", "read"), ("10", "read")],
)
async def test_the_number_decides_what_becomes_of_a_message(
    sandbox: MessagingStage, account: Account, ending: str, last: MessageStatus
) -> None:
    sent = await sandbox.messages.send(account.account_sid, text(f"+919800112 3{ending}"))
    found = await sandbox.when(account.account_sid, sent.message_id, last)
    assert found.network_ref == f"sandbox-{sent.message_id}"
    assert found.error_code == ("UNDELIVERABLE" if last == "failed" else None)
    # A state is counted once it is durable, so it can be read before it is counted.
    await until(lambda: sandbox.receiver.counts[last])
    assert sandbox.receiver.counts[last] == 1
    assert not [count for count in sandbox.receiver.counts.values() if count > 1]


@pytest.mark.parametrize(
    ("ending", "code"),
    [("04", "NOT_ON_NETWORK"), ("05", "POLICY_VIOLATION"), ("06", "NETWORK_UNAVAILABLE")],
)
async def test_what_the_network_does_not_take_is_refused_and_kept_as_failed(
    sandbox: MessagingStage, account: Account, ending: str, code: str
) -> None:
    with pytest.raises(SendFailed) as refusal:
        await sandbox.messages.send(account.account_sid, text(f"+9198001123{ending}"))
    message_id = refusal.value.details["messageId"]
    found = await sandbox.messages.get(account.account_sid, message_id)
    assert (found.status, found.error_code) == ("failed", code)


async def test_a_network_that_comes_back_is_tried_again(sandbox: MessagingStage, account: Account) -> None:
    direct = await sandbox.messages.send(account.account_sid, text("+919800112307"))
    waiting = queued(account.account_sid, "+919800112407")
    await sandbox.storage.writer.commit(partial(chat_messages.insert_many, messages=[waiting]))
    sandbox.dispatcher.wake()
    for message_id in (direct.message_id, waiting.message_id):
        await sandbox.when(account.account_sid, message_id, "read")


async def test_messages_of_others_are_not_there(sandbox: MessagingStage, account: Account) -> None:
    other, _ = await sandbox.storage.accounts.create("Other")
    sent = await sandbox.messages.send(other.account_sid, text())
    with pytest.raises(NotFound):
        await sandbox.messages.get(account.account_sid, sent.message_id)
    page = await sandbox.messages.list(account.account_sid, MessageFilter())
    assert (page.items, page.total) == ([], 0)


async def test_lists_are_narrowed_by_every_filter(sandbox: MessagingStage, account: Account) -> None:
    sid = account.account_sid
    first = await sandbox.messages.send(sid, text("+919800112302"))
    second = await sandbox.messages.send(sid, text("+919800112303"))
    await sandbox.when(sid, second.message_id, "failed")
    came = await sandbox.messages.simulate(sid, "+919800112302", "Which floor?")
    campaign = queued(sid, campaign_id=7)
    far = utc_now() + timedelta(days=1)
    await sandbox.storage.writer.commit(
        partial(chat_messages.insert_many, messages=[campaign], node="far", leased_until=to_micros(far))
    )

    async def found(**given: Any) -> list[str]:
        page = await sandbox.messages.list(sid, MessageFilter(**given))
        assert page.total == len(page.items)
        return [message.message_id for message in page.items]

    everything = [campaign.message_id, came.message_id, second.message_id, first.message_id]
    assert sorted(await found()) == sorted(everything)
    assert await found(status="failed") == [second.message_id]
    assert await found(direction="inbound") == [came.message_id]
    assert await found(to="+919800112302") == [first.message_id]
    assert await found(from_="+919800112302") == [came.message_id]
    assert await found(campaign_id=7) == [campaign.message_id]
    assert await found(campaign_id=7, status="read") == []
    page = await sandbox.messages.list(sid, MessageFilter(), page=2, per_page=3)
    assert (page.total, page.total_pages, len(page.items)) == (4, 2, 1)


async def test_who_opted_out_gets_nothing(sandbox: MessagingStage, account: Account) -> None:
    sid = account.account_sid
    await sandbox.messages.simulate(sid, TO, "STOP")
    with pytest.raises(ValidationFailed) as refusal:
        await sandbox.messages.send(sid, text())
    assert [error.field for error in refusal.value.errors] == ["to"]
    waiting = queued(sid, TO)
    await sandbox.storage.writer.commit(partial(chat_messages.insert_many, messages=[waiting]))
    failed = await sandbox.when(sid, waiting.message_id, "failed")
    assert failed.error_code == "OPTED_OUT"
    await sandbox.messages.simulate(sid, TO, "start")
    await sandbox.messages.send(sid, text())


async def test_what_came_in_is_kept_once(sandbox: MessagingStage, account: Account) -> None:
    message = InboundMessage("net-1", TO, "+918001100000", "text", {"text": "STOP"}, at=utc_now())
    first = await sandbox.receiver.inbound(account.account_sid, message)
    again = await sandbox.receiver.inbound(account.account_sid, message)
    assert first.message_id == again.message_id
    assert sandbox.receiver.counts["received"] == 1
    out = await sandbox.storage.database.read(
        partial(contacts.opted_out, account_sid=account.account_sid, numbers=[TO])
    )
    assert out == {TO}


async def test_a_template_must_be_approved_and_filled(sandbox: MessagingStage, account: Account) -> None:
    sid = account.account_sid
    template = await approve(sandbox.storage, sid)

    def wanted(**changes: object) -> SendMessage:
        values = [f"value {place}" for place in range(template.variables)]
        given = {"name": template.name, "language": template.language, "bodyParameters": values, **changes}
        return SendMessage(TO, "template", template=given)

    sent = await sandbox.messages.send(sid, wanted())
    assert sent.content["template"]["name"] == template.name
    for changes, field in (
        ({"name": "no_such"}, "template.name"),
        ({"language": "hi"}, "template.name"),
        ({"bodyParameters": ["x"] * (template.variables + 1)}, "template.bodyParameters"),
    ):
        with pytest.raises(ValidationFailed) as refusal:
            await sandbox.messages.send(sid, wanted(**changes))
        assert [error.field for error in refusal.value.errors] == [field]
    await sandbox.messages.simulate(sid, TO, "STOP")
    with pytest.raises(ValidationFailed) as refusal:
        await sandbox.messages.send(sid, wanted(name="no_such"))
    assert [error.field for error in refusal.value.errors] == ["to", "template.name"]


async def test_nothing_leaves_over_a_channel_that_is_not_connected(
    sandbox: MessagingStage, account: Account
) -> None:
    change = partial(channels.change, account_sid=account.account_sid, now=utc_now())
    await sandbox.storage.writer.commit(partial(change, values={"is_connected": False}))
    with pytest.raises(ChannelNotConfigured):
        await sandbox.messages.send(account.account_sid, text())


async def test_beyond_the_pace_messages_are_accepted_and_leave_in_their_turn(
    storage: Storage, account: Account
) -> None:
    network, sid = ScriptedNetwork(), account.account_sid
    await storage.writer.commit(partial(use_up, account_sid=sid))
    async with messaging(storage, network, QUICK) as stage:
        sent = [await stage.messages.send(sid, text()) for _ in range(3)]
        assert [(await stage.messages.get(sid, one.message_id)).status for one in sent] == ["queued"] * 3
        assert network.sent == []
        await storage.writer.commit(lambda connection: connection.execute(sa.delete(chat_paces)) and None)
        for message in sent:
            await stage.when(sid, message.message_id, "sent")
    assert Counter(network.sent) == Counter(message.message_id for message in sent)


@pytest.mark.parametrize(
    ("rate", "of_campaign", "singles", "ahead"),
    [
        # The first message of the campaign leaves at once, and the second before the singles are written.
        (1, 10, 5, 2),
        (20, 200, 40, 20),
    ],
)
async def test_single_messages_leave_before_those_of_a_campaign_that_runs(
    storage: Storage, account: Account, rate: int, of_campaign: int, singles: int, ahead: int
) -> None:
    network, sid = ScriptedNetwork(), account.account_sid
    campaign = [queued(sid, campaign_id=7) for _ in range(of_campaign)]
    async with messaging(storage, network, DispatcherSettings(poll_s=0.2), rate=rate) as stage:
        await storage.writer.commit(partial(chat_messages.insert_many, messages=campaign))
        stage.dispatcher.wake()
        await until(lambda: len(network.sent) >= min(ahead, 2))
        began = utc_now()
        sent = [await stage.messages.send(sid, text()) for _ in range(singles)]
        all_written = len(network.sent)
        done = [await stage.when(sid, message.message_id, "sent") for message in sent]
    written = {message.message_id for message in sent}
    last = max(place for place, message_id in enumerate(network.sent) if message_id in written)
    # While singles are still being written, messages of the campaign leave.
    assert sum(message_id not in written for message_id in network.sent[all_written:last]) <= ahead
    # Those that wait leave in the order in which they were written, at the rate. While some are still
    # being written, one that is sent at once may pass one that waits for its turn.
    waiting = [message_id for message_id in network.sent[all_written:] if message_id in written]
    assert waiting == [message.message_id for message in sent if message.message_id in waiting]
    ended = max(message.sent_at or began for message in done)
    assert last <= (ended - began).total_seconds() * rate + rate + ahead + 1


async def test_a_campaign_goes_on_behind_single_messages(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    campaign = [queued(sid, campaign_id=7) for _ in range(50)]
    singles = [queued(sid) for _ in range(30)]
    await storage.writer.commit(partial(chat_messages.insert_many, messages=campaign + singles))
    turns = [(await turn(storage, claim(step / 2), rate=20)).claimed for step in range(5)]
    of_campaign = [[each.message.campaign_id for each in claimed] for claimed in turns]
    # Single messages may run a second ahead of the pace, and a campaign only 0.4 s.
    assert of_campaign == [[None] * 21, [None] * 9, [], [7] * 9, [7] * 9]


def use_up(connection: Connection, account_sid: str) -> None:
    """Use up an account's quota of the next hour."""
    hour = 3600 * 1_000_000
    chat_queue.pace(connection, account_sid, to_micros(utc_now()), 1000, hour, hour)


# What a kill leaves behind.


async def test_what_a_former_run_had_claimed_is_handed_over_again(storage: Storage, account: Account) -> None:
    claimed, under_way = queued(account.account_sid), queued(account.account_sid)
    far = to_micros(utc_now() + timedelta(hours=1))
    await storage.writer.commit(
        partial(chat_messages.insert_many, messages=[claimed, under_way], node="local", leased_until=far)
    )
    receipt = Receipt(under_way.message_id, "sent", utc_now(), "net-1")
    await storage.writer.commit(partial(chat_messages.apply, receipts=[receipt]))
    network = ScriptedNetwork()
    async with messaging(storage, network, QUICK) as stage:
        await stage.when(account.account_sid, claimed.message_id, "sent")
        await until(lambda: network.rechecked)
    assert network.sent == [claimed.message_id]
    assert network.rechecked[0] == under_way.message_id


async def test_the_stand_in_tells_the_rest_after_a_restart(storage: Storage, account: Account) -> None:
    async with messaging(storage, SandboxMessagingNetwork(speed=0.001), QUICK) as stage:
        sent = await stage.messages.send(account.account_sid, text())
    async with messaging(storage, SandboxMessagingNetwork(speed=20.0), QUICK) as stage:
        await stage.when(account.account_sid, sent.message_id, "read")


async def test_a_message_whose_outcome_was_lost_is_sent_under_the_same_reference(
    storage: Storage, account: Account
) -> None:
    network = ScriptedNetwork(stuck=asyncio.Event())
    async with messaging(storage, network, QUICK) as stage:
        sending = asyncio.create_task(stage.messages.send(account.account_sid, text()))
        await until(lambda: network.sent)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    again = ScriptedNetwork()
    async with messaging(storage, again, QUICK) as stage:
        await stage.when(account.account_sid, network.sent[0], "sent")
    assert again.sent == network.sent


async def test_two_processes_hand_each_message_over_once(
    url: str, account: Account, storage: Storage
) -> None:
    messages = [queued(account.account_sid) for _ in range(120)]
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    networks = ScriptedNetwork(), ScriptedNetwork()
    try:
        async with (
            messaging(storage, networks[0], QUICK) as stage,
            messaging(other, networks[1], DispatcherSettings(node="other", poll_s=0.2)),
        ):
            await storage.writer.commit(partial(chat_messages.insert_many, messages=messages))
            for message in messages:
                await stage.when(account.account_sid, message.message_id, "sent")
    finally:
        await other.close()
    sent = Counter(networks[0].sent + networks[1].sent)
    assert sent == Counter(message.message_id for message in messages)


async def test_the_network_may_be_away_and_refuse(storage: Storage, account: Account) -> None:
    away, refused = queued(account.account_sid, "+919800112301"), queued(account.account_sid, "+919800112302")
    network = ScriptedNetwork(
        answers={
            away.to: [NetworkUnavailable("no answer"), ValueError("a defect of an adapter")],
            refused.to: [NetworkRefused("SPAM", "It says so.")],
        }
    )
    async with messaging(storage, network, QUICK) as stage:
        await storage.writer.commit(partial(chat_messages.insert_many, messages=[away, refused]))
        stage.dispatcher.wake()
        found = await stage.when(account.account_sid, refused.message_id, "failed")
        assert (found.error_code, found.error_message) == ("SPAM", "It says so.")
        await stage.when(account.account_sid, away.message_id, "sent")
    assert Counter(network.sent) == {away.message_id: 3, refused.message_id: 1}


async def test_a_repeat_after_a_kill_is_answered_with_the_message_that_was_sent(
    sandbox: MessagingStage, account: Account
) -> None:
    keys, sid = sandbox.storage.idempotency, account.account_sid
    request = (sid, "table-4711", "POST /api/v1/messages", "hash")
    assert await keys.begin(*request) is None
    sent = await sandbox.messages.send(sid, text())
    CLAIM.set(None)
    assert await keys.free() == 0
    await answer_interrupted(sandbox.storage)
    repeated = await keys.begin(*request)
    assert repeated is not None and repeated.status == 200
    assert json.loads(repeated.body)["messageId"] == sent.message_id


async def test_what_only_the_pace_holds_back_is_claimed_a_few_times_a_second(
    sandbox: MessagingStage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def counted(*given: Any, claim: Any = chat_queue.claim) -> chat_queue.Turn:
        turn: chat_queue.Turn = claim(*given)
        found.append(len(turn.claimed))
        return turn

    monkeypatch.setattr(chat_queue, "claim", counted)
    messages = [queued(account.account_sid) for _ in range(80)]
    await sandbox.storage.writer.commit(partial(chat_messages.insert_many, messages=messages))
    sandbox.dispatcher.wake()
    for message in messages:
        await sandbox.when(account.account_sid, message.message_id, "read")
    # 33 leave at once, and 47 more in 0.6 s; a slow machine needs fewer turns.
    assert sum(found) == 80 and len(found) <= 8


async def test_no_event_is_made_while_nobody_listens(
    sandbox: MessagingStage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(receiving, "message_status_event", lambda message, _: told.append(message.status))
    unheard = await sandbox.messages.send(account.account_sid, text())
    await sandbox.when(account.account_sid, unheard.message_id, "read")
    assert told == []
    endpoint = {"url": "https://1.1.1.1/told", "event_types": ["message.failed"]}
    await sandbox.storage.webhook_endpoints.create(account.account_sid, endpoint)
    heard = await sandbox.messages.send(account.account_sid, text())
    await sandbox.when(account.account_sid, heard.message_id, "read")
    assert told == ["sent", "delivered", "read"]


# The queue, by moments of the test's own.


def claim(at_s: float, *, limit: int = 50, per_account: int = 50) -> chat_queue.Claim:
    now = NOW + timedelta(seconds=at_s)
    return chat_queue.Claim("local", now, now + timedelta(seconds=60), limit, per_account)


NOW = utc_now() + timedelta(hours=1)


async def turn(
    storage: Storage, wanted: chat_queue.Claim, rate: int = 80, after: str = ""
) -> chat_queue.Turn:
    return await storage.writer.commit(
        lambda connection: chat_queue.claim(connection, wanted, lambda *_: rate, lambda account: 0, after)
    )


async def test_an_account_with_much_to_send_does_not_hold_up_others(
    storage: Storage, account: Account
) -> None:
    others = [(await storage.accounts.create(f"Other {place}"))[0] for place in range(3)]
    messages = [queued(account.account_sid) for _ in range(200)]
    messages += [queued(other.account_sid) for other in others]
    await storage.writer.commit(partial(chat_messages.insert_many, messages=messages))
    found = await turn(storage, claim(0), rate=1000)
    shares = Counter(each.message.account_sid for each in found.claimed)
    assert all(shares[other.account_sid] == 1 for other in others) or found.is_full
    seen = set(shares)
    while seen != {account.account_sid, *(other.account_sid for other in others)}:
        found = await turn(storage, claim(0), rate=1000, after=found.last_account)
        assert found.claimed, "somebody has had no turn"
        seen |= {each.message.account_sid for each in found.claimed}


async def test_the_pace_holds_however_often_it_is_claimed(storage: Storage, account: Account) -> None:
    messages = [queued(account.account_sid, campaign_id=7) for _ in range(120)]
    await storage.writer.commit(partial(chat_messages.insert_many, messages=messages))
    taken = [len((await turn(storage, claim(step / 10))).claimed) for step in range(10)]
    # At once what the leeway lets through, and by the last turn, 0.9 s later, what the pace does besides.
    assert taken[0] == 32 + 1 and sum(taken) == 32 + 1 + 72
    assert max(taken[1:]) <= 8


async def test_what_has_its_time_waits_for_it_and_a_lease_runs_out(
    storage: Storage, account: Account
) -> None:
    one = queued(account.account_sid)
    await storage.writer.commit(partial(chat_messages.insert_many, messages=[one]))
    later = NOW + timedelta(seconds=10)
    postponed = chat_queue.Postponed(one.message_id, later)
    await storage.writer.commit(partial(chat_queue.postpone, due=[postponed]))
    assert (await turn(storage, claim(9))).claimed == []
    assert not await storage.database.read(partial(chat_queue.is_due, now=NOW))
    assert await storage.database.read(partial(chat_queue.is_due, now=later))
    assert [each.attempts for each in (await turn(storage, claim(10))).claimed] == [1]
    assert (await turn(storage, claim(60))).claimed == []
    assert [each.attempts for each in (await turn(storage, claim(71))).claimed] == [2]
    assert await storage.writer.commit(partial(chat_queue.release, node="other")) == 0
    assert await storage.writer.commit(partial(chat_queue.release, node="local")) == 1
    assert await storage.database.read(partial(chat_queue.depth, at_most=10)) == 1


# A sender that is refused although its message is committed: the answer to the commit comes too late.


async def undone(storage: Storage) -> None:
    """Wait until what was refused is undone: that is written with, or before, what comes after it."""
    await storage.writer.commit(lambda connection: None)
    await storage.writer.commit(lambda connection: None)


async def test_a_message_that_was_refused_is_never_sent(storage: Storage, account: Account) -> None:
    network = ScriptedNetwork()
    async with messaging(storage, network, QUICK) as stage:
        await storage.writer.flush_pending()
        assert await storage.idempotency.begin(account.account_sid, "key", "POST /messages", "hash") is None
        late = LateAnswer(storage)
        await late.refuse(stage.messages.send(account.account_sid, text()))
        CLAIM.set(None)
        late.release()
        await undone(storage)
        assert not (await stage.messages.list(account.account_sid, MessageFilter())).items
        # The client sends again, with the same key or without.
        storage.idempotency._running.clear()
        assert await storage.idempotency.begin(account.account_sid, "key", "POST /messages", "hash") is None
        again = await stage.messages.send(account.account_sid, text())
        await stage.when(account.account_sid, again.message_id, "sent")
        assert network.sent == [again.message_id]


async def test_a_refused_message_that_another_process_has_sent_stays(
    storage: Storage, url: str, account: Account
) -> None:
    """A message that may have left is never deleted: receipts and lists still know it."""
    network = ScriptedNetwork()
    # Its claim lasts no time, so that the other process need not wait for the end of a minute.
    async with messaging(storage, network, replace(QUICK, lease_s=0.0)) as stage:
        await storage.writer.flush_pending()
        late = LateAnswer(storage)
        await late.refuse(stage.messages.send(account.account_sid, text()))
        other = await Storage.open(url, deliver=False, secrets=SECRETS)
        try:
            async with messaging(other, network, replace(QUICK, node="other")):
                await until(lambda: bool(network.sent))
        finally:
            await other.close()
        late.release()
        await undone(storage)
        (kept,) = (await stage.messages.list(account.account_sid, MessageFilter())).items
        assert network.sent == [kept.message_id] and kept.status == "sent"
