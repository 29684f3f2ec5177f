"""Webhooks from a real database to real receivers on loopback."""

import asyncio
import json
from datetime import timedelta

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from callcontrol.aio.tokens import utc_now
from tests.support.waiting import until
from tests.support.webhook_stage import SECRET, SLOW, Gate, Received, Receiver, Stage, fast, statuses

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
    await stage.start()
    event = stage.event(receiver.url("/hook"))
    await stage.publish(event)
    await stage.ended(event.delivery_id)
    (got,) = receiver.requests
    assert Webhook(SECRET).verify(got.body, got.headers) == json.loads(event.body)


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
    row = await stage.attempted(delivery_id)
    assert row.next_attempt_at >= before + timedelta(seconds=600)


async def test_the_first_retry_is_after_the_schedules_first_gap(stage: Stage, receiver: Receiver) -> None:
    receiver.answers["/hook"] = statuses(500)
    await stage.start(SLOW)
    before = utc_now()
    row = await stage.attempted(await stage.post(receiver.url("/hook")))
    assert timedelta(seconds=2880) <= row.next_attempt_at - before
    assert row.next_attempt_at - utc_now() <= timedelta(seconds=4320)
    assert (row.status, row.attempts, row.response_code) == ("pending", 1, 500)


async def test_an_account_without_a_secret_waits_for_one(stage: Stage, receiver: Receiver) -> None:
    stage.secrets.clear()
    await stage.start(fast(offsets_s=[0.02 * step for step in range(1000)]))
    delivery_id = await stage.post(receiver.url("/hook"))
    row = await stage.attempted(delivery_id)
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
    row = await stage.attempted(await stage.post(f"http://127.0.0.1:{port}/"))
    server.close()
    assert row.status == "pending"
    assert row.last_error is not None
    assert len(row.last_error) <= 300
    assert "\0" not in row.last_error


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
    await stage.attempted(first)
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


# The log of the attempts.


async def test_each_attempt_is_logged_with_what_was_answered(stage: Stage, receiver: Receiver) -> None:
    def answer(got: Received) -> web.Response:
        number = len(receiver.requests)
        signature = got.headers["webhook-signature"]
        return web.Response(status=200 if number == 3 else 503, text=f"<i>{number}</i> {SECRET} {signature}")

    receiver.answers["/hook"] = answer
    await stage.start()
    (row,) = await stage.ended(await stage.post(receiver.url("/hook")))
    log = row.attempt_log
    assert [(attempt.status, attempt.problem) for attempt in log] == [
        *((503, "answered 503"), (503, "answered 503")),
        (200, None),
    ]
    assert [(attempt.body or "").split()[0] for attempt in log] == [
        f"<i>{number}</i>" for number in (1, 2, 3)
    ]
    assert all(attempt.is_whole and attempt.took_ms is not None for attempt in log)
    assert [attempt.at for attempt in log] == sorted(attempt.at for attempt in log)
    signed = [got.headers["webhook-signature"].removeprefix("v1,") for got in receiver.requests]
    for attempt in log:
        assert attempt.body is not None and "**" in attempt.body
        assert not any(text in attempt.body for text in (SECRET, *signed))


async def test_the_log_has_the_beginning_of_a_long_answer_and_the_length_of_another(
    stage: Stage, receiver: Receiver
) -> None:
    receiver.answers["/long"] = lambda _: web.Response(text="x" * 1_000_000)
    receiver.answers["/image"] = lambda _: web.Response(body=b"\x89PNG\0" * 100)
    receiver.answers["/empty"] = lambda _: web.Response(status=204)
    await stage.start()
    kept = []
    for path in ("/long", "/image", "/empty"):
        (row,) = await stage.ended(await stage.post(receiver.url(path), f"call-{path}"))
        (attempt,) = row.attempt_log
        kept.append((attempt.body, attempt.body_bytes, attempt.is_whole))
    assert kept[0][0] == "x" * 4096 and kept[0][1] >= 4096 and not kept[0][2]
    assert kept[1:] == [(None, 500, True), ("", 0, True)]


async def test_a_receiver_that_is_not_there_is_logged_without_an_answer(
    stage: Stage, receiver: Receiver
) -> None:
    await receiver.close()
    await stage.start(fast(offsets_s=(0.0, 0.01)))
    (row,) = await stage.ended(await stage.post(receiver.url("/hook")))
    assert [(attempt.status, attempt.body) for attempt in row.attempt_log] == [(0, "")] * 2
    assert {attempt.problem for attempt in row.attempt_log} == {"the host refuses connections at this port"}
