"""Events of messaging on their way out: in order for each message, once, signed as libraries check it."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

from callcontrol.aio.tokens import utc_now
from callcontrol.messaging.events import EVENTS, message_status_event
from callcontrol.messaging.models import MessageStatus
from callcontrol.models import SubscribedEvent
from callcontrol.webhooks.store import publish as fan_out
from tests.support.messaging import queued
from tests.support.waiting import until
from tests.support.webhook_stage import ACCOUNT_SID, Received, Receiver, Stage, fast

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_STATES: tuple[MessageStatus, ...] = ("sent", "delivered", "read")


def told(message_id: str, status: MessageStatus) -> SubscribedEvent:
    event = message_status_event(
        replace(queued(ACCOUNT_SID), message_id=message_id, status=status), utc_now()
    )
    assert event is not None
    return event


async def register(stage: Stage, receiver: Receiver, **values: Any) -> None:
    wanted: dict[str, Any] = {
        "service": "messaging",
        "event_types": EVENTS.names,
        "secret": _SECRET,
    }
    await stage.subscribe(**{"url": receiver.url("/hook"), **wanted, **values})


async def test_the_events_of_a_message_keep_their_order_though_the_first_is_refused(
    stage: Stage, receiver: Receiver
) -> None:
    late, punctual = str(uuid.uuid4()), str(uuid.uuid4())

    def refuse_until_another_came(got: Received) -> web.Response:
        came = any(punctual.encode() in other.body for other in receiver.requests)
        return web.Response(status=200 if came else 500)

    receiver.answers["/hook"] = refuse_until_another_came
    await stage.start(fast(offsets_s=tuple(0.1 * attempt for attempt in range(300))))
    await register(stage, receiver)
    states = [told(late, state) for state in _STATES]
    await stage.publish_all(*states)
    ids = [fan_out.delivery_id_of(event.event_id, "sub-1") for event in states]
    await until(lambda: bool(receiver.requests))
    await stage.publish_all(told(punctual, "sent"))
    rows = await stage.ended(*ids)
    assert {row.status for row in rows} == {"delivered"} and rows[0].attempts > 1
    arrived = [Webhook(_SECRET).verify(got.body, got.headers) for got in receiver.requests]
    of_late = [body["event"] for body in arrived if body["data"]["messageId"] == late]
    # Refused once or more, and then all of it in order.
    assert of_late[-3:] == ["message.sent", "message.delivered", "message.read"]
    assert set(of_late[:-2]) == {"message.sent"}


async def test_a_receipt_that_is_applied_again_is_told_once(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    await register(stage, receiver)
    message_id = str(uuid.uuid4())
    for _ in range(3):
        await stage.publish_all(*(told(message_id, state) for state in _STATES))
    ids = [fan_out.delivery_id_of(told(message_id, state).event_id, "sub-1") for state in _STATES]
    await stage.ended(*ids)
    assert [json.loads(got.body)["data"]["status"] for got in receiver.requests] == list(_STATES)
    assert [got.headers["webhook-id"] for got in receiver.requests] == ids


async def test_each_endpoint_gets_what_it_asked_for(stage: Stage, receiver: Receiver) -> None:
    await stage.start()
    await register(stage, receiver, event_types=("message.read",))
    await register(
        stage, receiver, name="sub-2", url=receiver.url("/failed"), event_types=("message.failed",)
    )
    message_id = str(uuid.uuid4())
    assert await stage.publish_all(*(told(message_id, state) for state in _STATES)) == 1
    await stage.ended(fan_out.delivery_id_of(told(message_id, "read").event_id, "sub-1"))
    assert [got.path for got in receiver.requests] == ["/hook"]
