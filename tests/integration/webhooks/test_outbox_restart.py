"""Deliveries left at the end of a process, and their fate in the next one."""

import asyncio
from datetime import timedelta

import pytest

from callcontrol.aio.tokens import utc_now
from callcontrol.models import Delivery
from callcontrol.webhooks.aio import outbox as outbox_module
from callcontrol.webhooks.store import deliveries
from tests.support.waiting import holds_for, until
from tests.support.webhook_stage import SLOW, Gate, Receiver, Stage, fast, statuses


async def test_after_a_restart_the_rest_is_delivered_under_the_same_ids(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "_CLOSE_S", 0.05)
    gate = Gate()
    receiver.answers["/hook"] = gate
    await stage.start(fast(per_destination=2))
    done = await stage.post(receiver.url("/done"), "call-0")
    await stage.ended(done)
    events = [stage.event(receiver.url("/hook"), f"call-{number}") for number in range(1, 6)]
    await stage.publish(*events)
    await until(lambda: gate.waiting == 2)
    await stage.close()
    gate.open()
    receiver.requests.clear()

    await stage.start()
    rows = await stage.ended(*[event.delivery_id for event in events])
    assert {row.attempts for row in rows} == {1}
    assert sorted(receiver.ids()) == sorted(event.delivery_id for event in events)
    assert receiver.ids("/done") == []


async def test_leases_of_a_killed_run_do_not_outlive_it(stage: Stage, receiver: Receiver) -> None:
    await stage.start(deliver=False)
    delivery_id = await stage.post(receiver.url("/hook"))
    assert len(await stage.lease("local", 3600)) == 1
    await stage.close()
    await stage.start()
    await stage.ended(delivery_id)
    assert receiver.ids() == [delivery_id]


async def test_what_another_process_holds_is_left_to_it(stage: Stage, receiver: Receiver) -> None:
    await stage.start(deliver=False)
    held = await stage.post(receiver.url("/hook"), "call-1")
    assert len(await stage.lease("other", 3600)) == 1
    lapsed = await stage.post(receiver.url("/hook"), "call-2")
    assert len(await stage.lease("another", -1)) == 1
    await stage.close()
    await stage.start()
    await stage.ended(lapsed)
    assert receiver.ids() == [lapsed]
    assert (await stage.row(held)).attempts == 0


async def test_order_survives_a_restart(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500)
    await stage.start(SLOW)
    first = await stage.post(receiver.url("/hook"))
    await stage.attempted(first)
    await stage.close()
    receiver.requests.clear()

    # The first one waits for an hour; what its call publishes now must not overtake it.
    await stage.start(SLOW)
    second = await stage.post(receiver.url("/hook"))
    await stage.ended(await stage.post(receiver.url("/other"), "call-2"))
    assert receiver.ids("/hook") == []
    assert (await stage.row(second)).attempts == 0


async def test_what_is_blocked_is_due_when_what_blocks_it_is(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500)
    await stage.start(SLOW)
    first = await stage.attempted(await stage.post(receiver.url("/hook")))
    second, third = [await stage.post(receiver.url("/hook")) for _ in range(2)]
    await stage.ended(await stage.post(receiver.url("/other"), "call-2"))
    rows = await stage.rows()
    assert rows[second].next_attempt_at == rows[third].next_attempt_at == first.next_attempt_at


async def test_a_late_outcome_does_not_undo_a_delivery(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    event = stage.event(receiver.url("/hook"))
    await stage.publish(event)
    await stage.ended(event.delivery_id)
    late = deliveries.outcome_row(Delivery(event, utc_now(), attempts=1, last_error="no answer"))
    await stage.writer.commit(lambda connection: deliveries.record_outcomes(connection, [late]))
    row = await stage.row(event.delivery_id)
    assert (row.status, row.last_error) == ("delivered", None)
    assert len(receiver.requests) == 1


async def test_what_is_under_way_at_the_end_may_finish(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    outbox = await stage.start(fast(per_destination=2))
    events = [stage.event(receiver.url("/hook"), f"call-{number}") for number in range(5)]
    ids = await stage.publish(*events)
    await until(lambda: gate.waiting == 2)
    closing = asyncio.create_task(outbox.close())
    await holds_for(0.05, lambda: not closing.done())
    late = await stage.post(receiver.url("/hook"), "call-late")
    gate.open()
    await closing
    rows = await stage.rows()
    assert sorted(rows[delivery_id].status for delivery_id in ids) == ["delivered"] * 2 + ["pending"] * 3
    assert rows[late].status == "pending"
    assert outbox.held == 0
    # What is left is free for whoever comes next.
    assert len(await stage.lease("other", 60)) == 4


async def test_closing_cuts_what_hangs(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "_CLOSE_S", 0.05)
    gate = Gate()
    receiver.answers["/hook"] = gate
    outbox = await stage.start()
    delivery_id = await stage.post(receiver.url("/hook"))
    await until(lambda: gate.waiting == 1)
    await outbox.close()
    await outbox.close()
    row = await stage.row(delivery_id)
    assert (row.status, row.attempts) == ("pending", 0)
    assert outbox.held == 0
    assert len(await stage.lease("other", 60)) == 1
    gate.open()


async def test_an_outbox_that_does_not_deliver_still_writes(stage: Stage, receiver: Receiver) -> None:
    outbox = await stage.start(deliver=False)
    delivery_id = await stage.post(receiver.url("/hook"))
    assert (await stage.row(delivery_id)).status == "pending"
    assert outbox.held == 0
    assert receiver.connections == 0


async def test_outcomes_survive_a_transaction_that_fails(stage: Stage, receiver: Receiver) -> None:
    outbox = await stage.start()
    delivery_id = await stage.post(receiver.url("/hook"))
    await stage.ended(delivery_id)
    newer = {**deliveries.outcome_row(await stage.row(delivery_id)), "attempts": 9}
    outcomes = outbox._outcomes
    outcomes.put("a", {**newer, "attempts": 1})
    outcomes.put("b", newer)
    assert outcomes.drain() is not None
    assert outcomes.drain() is None
    outcomes.put("a", newer)
    outcomes.restore()
    assert outcomes.take() == {"a": newer, "b": newer}


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1)], ids=["back", "ahead"])
async def test_a_clock_that_jumps_holds_up_nothing(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    receiver.answers["/hook"] = statuses(500, 500, 200)
    await stage.start(fast(offsets_s=(0.0, 0.2, 0.4, 0.6)))
    before = await stage.post(receiver.url("/hook"), "call-1")
    await until(lambda: bool(receiver.requests))
    monkeypatch.setattr(outbox_module, "utc_now", lambda: utc_now() + jump)
    # One that is tried again, and one that is published under the new time.
    rows = await stage.ended(before, await stage.post(receiver.url("/other"), "call-2"))
    assert [row.status for row in rows] == ["delivered", "delivered"]
    assert receiver.ids("/hook") == [before] * 3


async def test_what_is_under_way_when_the_clock_jumps_is_not_sent_twice(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    outbox = await stage.start()
    delivery_id = await stage.post(receiver.url("/hook"))
    await until(lambda: gate.waiting == 1)
    # By the new time its lease is long over.
    monkeypatch.setattr(outbox_module, "utc_now", lambda: utc_now() + timedelta(days=1))
    await stage.ended(await stage.post(receiver.url("/other"), "call-2"))
    gate.open()
    await stage.ended(delivery_id)
    assert receiver.ids("/hook") == [delivery_id]
    assert outbox.held == 0
