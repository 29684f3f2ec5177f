"""Webhooks from a real database to real receivers on loopback."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.aio import outbox as outbox_module
from callcontrol.aio.destinations import DestinationGuard
from callcontrol.aio.tokens import utc_now
from callcontrol.models import Delivery
from callcontrol.store.repositories import deliveries
from callcontrol.webhooks import OFFSETS_S
from tests.support.webhook_stage import (
    FAST,
    PATIENCE_S,
    SECRET,
    Gate,
    Received,
    Receiver,
    Stage,
    fast,
    statuses,
    until,
)

# Attempts far apart, so that what failed once does not come back during the test.
SLOW = fast(offsets_s=(0.0, 3600.0, 7200.0))


@pytest.fixture(autouse=True)
async def no_leaks() -> AsyncIterator[None]:
    """Every test leaves no task behind, and nothing complains to the event loop."""
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    yield
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert not complaints


@pytest.fixture
async def receiver(no_leaks: None) -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def stage(no_leaks: None, receiver: Receiver, tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    yield made
    await made.close()


# Success.


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_an_event_is_delivered_once(stage: Stage, receiver: Receiver, status: int) -> None:
    outbox = await stage.start()
    receiver.answers["/hook"] = statuses(status)
    body = '{"event":"call.ringing","data":{"tag":"grüß"}}'.encode()
    event = stage.event(receiver.url("/hook"), body=body)
    await stage.publish(event)
    (row,) = await stage.ended(event.delivery_id)
    assert (row.status, row.attempts, row.response_code, row.last_error) == ("delivered", 1, status, None)
    assert row.delivered_at is not None
    assert [(got.method, got.path, got.body) for got in receiver.requests] == [("POST", "/hook", body)]
    headers = receiver.requests[0].headers
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Service-Event"] == "call.ringing"
    assert headers["X-Service-Delivery"] == headers["webhook-id"] == event.delivery_id
    assert outbox.held == 0
    assert (outbox.stats.delivered, outbox.stats.attempts, outbox.stats.failed) == (1, 1, 0)


async def test_what_arrives_verifies(stage: Stage, receiver: Receiver) -> None:
    library = pytest.importorskip("standardwebhooks")
    await stage.start()
    event = stage.event(receiver.url("/hook"))
    await stage.publish(event)
    await stage.ended(event.delivery_id)
    (got,) = receiver.requests
    assert library.Webhook(SECRET).verify(got.body, got.headers) == json.loads(event.body)


async def test_a_get_carries_its_fields_in_the_query(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    body = json.dumps({"event": "call.ringing", "data": {"from": "+911140000001", "tag": "a&b=c é"}})
    event = stage.event(receiver.url("/hook?token=a%2Fb+c"), body=body.encode(), method="GET")
    await stage.publish(event)
    await stage.ended(event.delivery_id)
    (got,) = receiver.requests
    assert (got.method, got.body) == ("GET", b"")
    assert got.query == {
        "token": "a/b c",
        "event": "call.ringing",
        "from": "+911140000001",
        "tag": "a&b=c é",
    }


async def test_a_stalled_body_does_not_undo_a_success(stage: Stage, receiver: Receiver) -> None:
    stalled = asyncio.Event()

    async def stall(got: Received) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers={"Content-Length": "1000"})
        await response.prepare(got.request)
        await response.write(b"x")
        await stalled.wait()
        return response

    receiver.answers["/hook"] = stall
    await stage.start()
    (row,) = await stage.ended(await stage.post(receiver.url("/hook")))
    stalled.set()
    assert (row.status, row.attempts) == ("delivered", 1)


async def test_cookies_are_not_kept(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(200, headers={"Set-Cookie": "a=b; Path=/"})
    await stage.start()
    for call_sid in ("call-1", "call-2"):
        await stage.ended(await stage.post(receiver.url("/hook"), call_sid))
    assert not any("Cookie" in got.headers for got in receiver.requests)


# Failure.


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404, 429, 500, 503])
async def test_other_statuses_are_tried_again(stage: Stage, receiver: Receiver, status: int) -> None:
    receiver.answers["/hook"] = statuses(
        status, status, 200, headers={"Location": receiver.url("/elsewhere")}
    )
    await stage.start()
    delivery_id = await stage.post(receiver.url("/hook"))
    (row,) = await stage.ended(delivery_id)
    assert (row.status, row.attempts, row.response_code) == ("delivered", 3, 200)
    assert receiver.ids("/hook") == [delivery_id] * 3
    assert receiver.ids("/elsewhere") == []


async def test_a_silent_receiver_is_tried_again(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    receiver.answers["/hook"] = gate
    await stage.start(fast(timeout_s=0.2, offsets_s=(0.0, 0.01, 3600.0)))
    delivery_id = await stage.post(receiver.url("/hook"))
    await until(lambda: len(receiver.requests) == 2)
    gate.open()
    (row,) = await stage.ended(delivery_id)
    assert (row.status, row.attempts) == ("delivered", 2)


async def test_a_refused_connection_is_tried_again(stage: Stage, receiver: Receiver) -> None:
    port = receiver.port
    await receiver.close()
    outbox = await stage.start(fast(offsets_s=[0.02 * step for step in range(1000)]))
    delivery_id = await stage.post(receiver.url("/hook"))
    await until(lambda: outbox.stats.attempts >= 2)
    await receiver.start(port)
    (row,) = await stage.ended(delivery_id)
    assert row.status == "delivered"
    assert receiver.ids() == [delivery_id]


async def test_it_is_given_up_after_the_last_attempt(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500)
    outbox = await stage.start()
    (row,) = await stage.ended(await stage.post(receiver.url("/hook")))
    assert (row.status, row.attempts, row.response_code) == ("failed", 8, 500)
    assert row.last_error == "answered 500"
    assert len(receiver.requests) == 8
    assert outbox.stats.failed == 1


async def test_gone_fails_at_once(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(410)
    await stage.start()
    (row,) = await stage.ended(await stage.post(receiver.url("/hook")))
    assert (row.status, row.attempts, row.response_code) == ("failed", 1, 410)
    assert len(receiver.requests) == 1


async def test_retry_after_is_honoured(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(503, headers={"Retry-After": "600"})
    await stage.start()
    before = utc_now()
    delivery_id = await stage.post(receiver.url("/hook"))
    row = await attempted(stage, delivery_id)
    assert row.next_attempt_at >= before + timedelta(seconds=600)


async def test_the_first_retry_is_after_the_schedules_first_gap(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500)
    await stage.start(SLOW)
    before = utc_now()
    row = await attempted(stage, await stage.post(receiver.url("/hook")))
    assert timedelta(seconds=2880) <= row.next_attempt_at - before
    assert row.next_attempt_at - utc_now() <= timedelta(seconds=4320)
    assert (row.status, row.attempts, row.response_code) == ("pending", 1, 500)


async def test_an_account_without_a_secret_waits_for_one(stage: Stage, receiver: Receiver) -> None:
    stage.secrets.clear()
    await stage.start(fast(offsets_s=[0.02 * step for step in range(1000)]))
    delivery_id = await stage.post(receiver.url("/hook"))
    row = await attempted(stage, delivery_id)
    assert row.last_error == "the account has no secret to sign with"
    assert receiver.connections == 0
    stage.secrets.append(SECRET)
    await stage.ended(delivery_id)
    assert "X-Service-Signature" in receiver.requests[0].headers


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\xff" * 500 + b"\r\n\r\n",
        b"HTTP/1.1 999999 \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"",
    ],
)
async def test_nonsense_is_a_failure_like_any_other(stage: Stage, answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await stage.start(SLOW)
    row = await attempted(stage, await stage.post(f"http://127.0.0.1:{port}/"))
    server.close()
    assert row.status == "pending"
    assert row.last_error is not None
    assert len(row.last_error) <= 300
    assert "\0" not in row.last_error


async def attempted(stage: Stage, delivery_id: str) -> Delivery:
    """A delivery once its first attempt is noted."""
    found: list[Delivery] = []
    async with asyncio.timeout(PATIENCE_S):
        while not found or not found[0].attempts:
            found = [await stage.row(delivery_id)]
    return found[0]


# Order.


async def test_a_calls_events_wait_for_the_first_one(stage: Stage, receiver: Receiver) -> None:
    left = {"event-1": 3, "event-3": 1}

    def answer(got: Received) -> web.StreamResponse:
        failing = left.get(got.delivery_id, 0)
        left[got.delivery_id] = failing - 1
        return web.Response(status=500 if failing > 0 else 200)

    receiver.answers["/hook"] = answer
    await stage.start()
    events = [stage.event(receiver.url("/hook")) for _ in range(4)]
    ids = [
        *await stage.publish(*events[:2]),
        *await stage.publish(events[2]),
        *await stage.publish(events[3]),
    ]
    await stage.ended(*ids)
    assert receiver.ids() == ["event-1"] * 4 + ["event-2"] + ["event-3"] * 2 + ["event-4"]


async def test_other_calls_and_other_urls_do_not_wait(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/failing"] = statuses(500)
    await stage.start(SLOW)
    first = await stage.post(receiver.url("/failing"), "call-1")
    await attempted(stage, first)
    behind = await stage.post(receiver.url("/failing"), "call-1")
    others = [
        await stage.post(receiver.url("/hook"), "call-1"),
        await stage.post(receiver.url("/hook"), "call-2"),
        await stage.post(receiver.url("/hook"), None),
    ]
    await stage.ended(*others)
    assert behind not in receiver.ids()
    assert (await stage.row(behind)).attempts == 0


async def test_many_calls_keep_their_order_each(stage: Stage, receiver: Receiver) -> None:
    failures = {f"event-{number}" for number in range(3, 200, 7)}

    def answer(got: Received) -> web.StreamResponse:
        if got.delivery_id in failures:
            failures.discard(got.delivery_id)
            return web.Response(status=500)
        taken.append(got.delivery_id)
        return web.Response(status=200)

    taken: list[str] = []
    receiver.answers["/hook"] = answer
    await stage.start()
    calls: dict[str, list[str]] = {}
    for _ in range(6):
        events = [stage.event(receiver.url("/hook"), f"call-{call}") for call in range(20)]
        await stage.publish(*events)
        for event in events:
            calls.setdefault(event.call_sid or "", []).append(event.delivery_id)
    await stage.ended(*[delivery_id for ids in calls.values() for delivery_id in ids])
    assert len(taken) == len(set(taken)) == 120
    for ids in calls.values():
        assert [delivery_id for delivery_id in taken if delivery_id in ids] == ids


# Isolation.


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
    outbox = await stage.start(fast(per_destination=2, max_held=20, max_held_per_destination=4))
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
        fast(silent_after=3, per_destination=3, offsets_s=[0.1 * step for step in range(1000)])
    )
    events = [stage.event(receiver.url("/hook"), f"call-{number}") for number in range(30)]
    await stage.publish(*events)
    await until(lambda: outbox.stats.skipped > 60)
    # Most attempts were spared: about one in each probing interval was made.
    assert outbox.stats.attempts < outbox.stats.skipped
    await receiver.start(port)
    await stage.ended(*[event.delivery_id for event in events])
    assert sorted(receiver.ids()) == sorted(event.delivery_id for event in events)


async def test_no_more_requests_than_allowed_are_under_way(stage: Stage, receiver: Receiver) -> None:
    gate = Gate()
    others = [Receiver() for _ in range(4)]
    await stage.start(fast(max_active=5, per_destination=3))
    for one in others:
        one.answers["/hook"] = gate
        await one.start()
    events = [stage.event(one.url("/hook"), f"{one.port}-{number}") for one in others for number in range(10)]
    await stage.publish(*events)
    await until(lambda: gate.waiting == 5)
    await asyncio.sleep(0.05)
    assert gate.waiting == 5
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
    outbox = await stage.start(fast(max_held=5))
    events = [stage.event(receiver.url("/hook"), f"call-{number}") for number in range(100)]
    await stage.publish(*events)
    ids = [event.delivery_id for event in events]
    await stage.ended(*ids)
    assert 1 <= most <= 5
    assert sorted(receiver.ids()) == sorted(ids)


# Restart and end.


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
    await attempted(stage, first)
    await stage.close()
    receiver.requests.clear()

    # The first one waits for an hour; what its call publishes now must not overtake it.
    await stage.start(SLOW)
    second = await stage.post(receiver.url("/hook"))
    await stage.ended(await stage.post(receiver.url("/other"), "call-2"))
    assert receiver.ids("/hook") == []
    assert (await stage.row(second)).attempts == 0


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
    await asyncio.sleep(0.05)
    assert not closing.done()
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
    outbox._outcomes = {"a": {**newer, "attempts": 1}, "b": newer}
    assert outbox.take() is not None
    assert outbox.take() is None
    outbox._outcomes = {"a": newer}
    outbox.give_back()
    assert outbox._outcomes == {"a": newer, "b": newer}
    outbox._outcomes = {}


# Where requests may go.


def answering(*addresses: str) -> Any:
    """A resolver that gives one address after the other, the last one for ever."""
    left = list(addresses)

    def lookup(host: str, port: int) -> list[tuple[str, int]]:
        return [(left.pop(0) if len(left) > 1 else left[0], port)]

    return lookup


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "１２７.０.０.１"],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_private_destinations_are_refused(
    stage: Stage, receiver: Receiver, scheme: str, host: str
) -> None:
    await stage.start(SLOW, destinations=DestinationGuard(False))
    row = await attempted(stage, await stage.post(f"{scheme}://{host}:{receiver.port}/hook"))
    assert (row.status, row.response_code) == ("pending", 0)
    assert row.last_error
    assert receiver.connections == 0


async def test_names_of_private_addresses_are_refused(stage: Stage, receiver: Receiver) -> None:
    guard = DestinationGuard(False, lookup=answering("127.0.0.1"))
    await stage.start(SLOW, destinations=guard)
    url = f"https://hooks.example.com:{receiver.port}/hook"
    row = await attempted(stage, await stage.post(url))
    assert row.last_error is not None
    assert "hooks.example.com is a loopback address" in row.last_error
    assert receiver.connections == 0


async def test_a_name_that_is_rebound_is_not_followed(stage: Stage, receiver: Receiver) -> None:
    # The first answer may be connected to, the second may not even with allow_private.
    receiver.answers["/hook"] = statuses(500, headers={"Connection": "close"})
    guard = DestinationGuard(True, lookup=answering("127.0.0.1", "169.254.169.254"))
    await stage.start(destinations=guard)
    url = f"http://hooks.example.com:{receiver.port}/hook"
    (row,) = await stage.ended(await stage.post(url))
    assert (row.status, row.attempts, row.response_code) == ("failed", 8, 0)
    assert row.last_error is not None
    assert "link-local" in row.last_error
    assert receiver.connections == 1


class Deceived:
    """Judges names and then lets a resolver's answers through, as a guard with a gap would."""

    def __init__(self, forbidden: str) -> None:
        self._strict = DestinationGuard(False)
        self._forbidden = forbidden

    def check_url(self, url: str, *, schemes: Any) -> None:
        self._strict.check_url(url, schemes=schemes)

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        return [(self._forbidden, port)]


async def test_every_socket_is_judged_before_it_is_opened(stage: Stage, receiver: Receiver) -> None:
    await stage.start(SLOW, destinations=Deceived("127.0.0.1"))
    for run in range(50):
        url = f"https://hooks-{run}.example.com:{receiver.port}/hook"
        row = await attempted(stage, await stage.post(url, f"call-{run}"))
        assert row.last_error is not None
        assert "is a loopback address" in row.last_error
    assert receiver.connections == 0


async def test_a_name_that_does_not_resolve(stage: Stage) -> None:
    def lookup(host: str, port: int) -> list[tuple[str, int]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    await stage.start(SLOW, destinations=DestinationGuard(True, lookup=lookup))
    row = await attempted(stage, await stage.post("http://hooks.example.com/hook"))
    assert row.last_error is not None
    assert "Name or service not known" in row.last_error


async def test_the_fast_schedule_has_as_many_attempts_as_the_real_one() -> None:
    assert len(FAST.offsets_s) == len(OFFSETS_S)
