"""Receivers that hang, vanish or dawdle cost everybody else nothing."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.waiting import holds_for, look_again, until
from tests.support.webhook_stage import Gate, Received, Receiver, Stage, fast, statuses


async def test_a_hanging_destination_delays_nobody(stage: Stage, receiver: Receiver, tmp_path: Path) -> None:
    gate, hanging = Gate(), Receiver()
    hanging.answers["/hook"] = gate
    await hanging.start()
    outbox = await stage.start(fast(per_destination=2))
    stuck = [stage.event(hanging.url("/hook"), f"stuck-{number}") for number in range(50)]
    await stage.publish(*stuck)
    await until(lambda: gate.waiting == 2)
    # Were these to wait for those, they would wait until the gate is opened.
    ids = [await stage.post(receiver.url("/hook"), f"call-{number}") for number in range(20)]
    await stage.ended(*ids)
    assert gate.waiting == 2
    assert outbox.held == 50
    gate.open()
    await stage.ended(*[event.delivery_id for event in stuck])
    assert sorted(hanging.ids()) == sorted(event.delivery_id for event in stuck)
    await hanging.close()


async def test_a_hanging_destination_does_not_fill_the_memory(stage: Stage, receiver: Receiver) -> None:
    gate, hanging = Gate(), Receiver()
    hanging.answers["/hook"] = gate
    await hanging.start()
    outbox = await stage.start(fast(per_destination=2, held=20, held_per_destination=4))
    stuck = [stage.event(hanging.url("/hook"), f"stuck-{number}") for number in range(100)]
    await stage.publish(*stuck)
    await until(lambda: outbox.stats.postponed >= 94)
    assert outbox.held == 6
    ids = [await stage.post(receiver.url("/hook"), f"call-{number}") for number in range(20)]
    await stage.ended(*ids)
    assert gate.waiting == 2
    gate.open()
    rows = await stage.ended(*[event.delivery_id for event in stuck])
    assert {row.attempts for row in rows} == {1}
    assert len(hanging.requests) == 100
    await hanging.close()


async def test_many_hanging_destinations_leave_connections_for_others(
    stage: Stage, receiver: Receiver
) -> None:
    # More destinations than a connector's usual hundred connections serve.
    gate = Gate()
    hanging = [Receiver() for _ in range(15)]
    await stage.start()
    for one in hanging:
        one.answers["/hook"] = gate
        await one.start()
    stuck = [
        stage.event(one.url("/hook"), f"stuck-{one.port}-{number}") for one in hanging for number in range(8)
    ]
    await stage.publish(*stuck)
    await until(lambda: gate.waiting == 120)
    await stage.ended(await stage.post(receiver.url("/hook"), "call-1"))
    gate.open()
    await stage.ended(*[event.delivery_id for event in stuck])
    for one in hanging:
        await one.close()


async def test_a_silent_destination_is_probed_and_comes_back(stage: Stage, receiver: Receiver) -> None:
    port = receiver.port
    await receiver.close()
    outbox = await stage.start(
        fast(unresponsive_after=3, per_destination=3, offsets_s=[0.1 * step for step in range(1000)])
    )
    events = [stage.event(receiver.url("/hook"), f"call-{number}") for number in range(30)]
    await stage.publish(*events)
    await until(lambda: outbox.stats.skipped > 60)
    # Most attempts were spared: about one in each probing interval was made.
    assert outbox.stats.attempts < outbox.stats.skipped
    await receiver.start(port)
    await stage.ended(*[event.delivery_id for event in events])
    assert sorted(receiver.ids()) == sorted(event.delivery_id for event in events)


async def test_a_tarpit_costs_its_own_connections_and_no_more(stage: Stage, receiver: Receiver) -> None:
    fed = 0

    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal fed
        with contextlib.suppress(OSError):
            writer.write(b"HTTP/1.1 200 OK\r\nX-Header: ")
            while True:
                writer.write(b"x")
                await writer.drain()
                fed += 1
                await look_again()
        writer.close()

    server = await asyncio.start_server(dribble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outbox = await stage.start(
        fast(timeout_s=0.3, offsets_s=(0.0, 3600.0), per_destination=2, unresponsive_after=2)
    )
    stuck = [stage.event(f"http://127.0.0.1:{port}/", f"stuck-{number}") for number in range(20)]
    await stage.publish(*stuck)
    ids = [await stage.post(receiver.url("/hook"), f"call-{number}") for number in range(20)]
    await stage.ended(*ids)
    await until(lambda: outbox.held == 0)
    assert fed > 0
    found = await stage.rows()
    assert all(found[event.delivery_id].attempts == 1 for event in stuck)
    # Two in earnest; the rest is spared, but for a probe now and then.
    assert outbox.stats.skipped >= 10
    server.close()


@pytest.mark.parametrize("status", [500, 503])
async def test_a_storm_of_errors_delays_nobody(stage: Stage, receiver: Receiver, status: int) -> None:
    receiver.answers["/broken"] = statuses(status)
    await stage.start()
    failing = [stage.event(receiver.url("/broken"), f"failing-{number}") for number in range(100)]
    await stage.publish(*failing)
    other = Receiver()
    await other.start()
    ids = [await stage.post(other.url("/hook"), f"call-{number}") for number in range(20)]
    rows = await stage.ended(*ids)
    assert {row.attempts for row in rows} == {1}
    rows = await stage.ended(*[event.delivery_id for event in failing])
    assert {(row.status, row.attempts) for row in rows} == {("failed", 8)}
    await other.close()


async def test_what_is_new_does_not_wait_behind_what_is_old(stage: Stage, receiver: Receiver) -> None:
    # With room for all: what has none returns later, the later the slower the machine is.
    await stage.start(fast(held_per_destination=1200), deliver=False)
    old = [stage.event(receiver.url("/old"), f"old-{number}") for number in range(1200)]
    for start in range(0, len(old), 400):
        await stage.publish(*old[start : start + 400])
    other = Receiver()
    await other.start()
    fresh = await stage.post(other.url("/fresh"), "call-1")
    await stage.outbox.start()
    await until(lambda: other.ids() == [fresh])
    # Twelve hundred were published before it, and most of them are still to be sent.
    assert len(receiver.requests) < 600
    await stage.ended(*[event.delivery_id for event in old])
    assert len(receiver.requests) == 1200
    await other.close()


async def test_no_more_requests_than_allowed_are_under_way(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    others = [Receiver() for _ in range(4)]
    await stage.start(fast(active=5, per_destination=3))
    for one in others:
        one.answers["/hook"] = gate
        await one.start()
    events = [stage.event(one.url("/hook"), f"{one.port}-{number}") for one in others for number in range(10)]
    await stage.publish(*events)
    await until(lambda: gate.waiting == 5)
    await holds_for(0.05, lambda: gate.waiting == 5)
    gate.open()
    await stage.ended(*[event.delivery_id for event in events])
    assert sum(len(one.requests) for one in others) == 40
    for one in others:
        await one.close()


async def test_memory_is_bounded(stage: Stage, receiver: Receiver) -> None:
    most = 0

    async def answer(_: Received) -> web.StreamResponse:
        nonlocal most
        most = max(most, outbox.held)
        await asyncio.sleep(0)
        return web.Response(status=200)

    receiver.answers["/hook"] = answer
    outbox = await stage.start(fast(held=5))
    events = [stage.event(receiver.url("/hook"), f"call-{number}") for number in range(100)]
    await stage.publish(*events)
    ids = [event.delivery_id for event in events]
    await stage.ended(*ids)
    assert 1 <= most <= 5
    assert sorted(receiver.ids()) == sorted(ids)
