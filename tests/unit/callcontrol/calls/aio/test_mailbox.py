"""The queue of a call: its events reach the call in order, one at a time, until the call is finished."""

import asyncio
from contextvars import ContextVar

import pytest

from callcontrol.calls.aio.mailbox import CallMailbox
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.legs import LegConfirmed, LegEnded, LegProgress
from tests.support.domain import make_ringing
from tests.support.waiting import until


def make_mailbox() -> CallMailbox:
    return CallMailbox(make_ringing(), lambda _: None)


class Handler:
    """Notes the events that it is given; the call is finished, or not, after each."""

    def __init__(self, *, finished: bool = True) -> None:
        self.handled: list[Event] = []
        self._finished = finished

    def __call__(self, event: Event) -> bool:
        self.handled.append(event)
        return self._finished


async def test_events_are_handled_in_order_until_the_call_is_finished() -> None:
    mailbox, handled = make_mailbox(), list[Event]()

    def handle(event: Event) -> bool:
        handled.append(event)
        if isinstance(event, LegProgress):
            mailbox.post(LegEnded(0))  # Posted while an event is handled: it is the next but one.
        return isinstance(event, LegEnded)

    mailbox.post(LegProgress(0, 180))
    running = asyncio.create_task(mailbox.run(handle))
    await until(lambda: handled == [LegProgress(0, 180), LegEnded(0)])
    mailbox.post(LegConfirmed(0))
    await running
    mailbox.post(LegConfirmed(1))
    await asyncio.sleep(0)
    assert handled == [LegProgress(0, 180), LegEnded(0)]


async def test_an_event_wakes_a_call_that_waits() -> None:
    mailbox, handle = make_mailbox(), Handler()
    running = asyncio.create_task(mailbox.run(handle))
    await asyncio.sleep(0)
    mailbox.post(LegConfirmed(0))
    assert handle.handled == [], "never within the callback that reports it"
    await running
    assert handle.handled == [LegConfirmed(0)]


async def test_a_timer_that_was_stopped_after_it_fired_is_not_handled() -> None:
    mailbox, handle = make_mailbox(), Handler()
    mailbox.arm(Timer.RING, 0.0)
    mailbox.arm(Timer.TALK, 0.0)
    await until(lambda: len(mailbox._queue) == 2)
    mailbox.disarm(Timer.RING)
    await mailbox.run(handle)
    assert handle.handled == [TimerFired(Timer.TALK)]


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError])
async def test_an_error_ends_the_call_and_no_event_is_handled_after_it(error: type[BaseException]) -> None:
    mailbox, handled = make_mailbox(), list[Event]()

    def handle(event: Event) -> bool:
        handled.append(event)
        raise error("defect")

    running = asyncio.create_task(mailbox.run(handle))
    await asyncio.sleep(0)
    mailbox.post(LegConfirmed(0))
    mailbox.post(LegConfirmed(1))
    await until(running.done)
    with pytest.raises(error, match="defect"):
        running.result()
    assert handled == [LegConfirmed(0)]


async def test_events_are_handled_in_the_context_of_the_call_and_not_of_who_posts_them() -> None:
    claim: ContextVar[str] = ContextVar("claim", default="nobody")
    mailbox, seen = make_mailbox(), list[str]()

    def handle(_: Event) -> bool:
        seen.append(claim.get())
        return True

    running = asyncio.create_task(mailbox.run(handle))
    await asyncio.sleep(0)
    claim.set("a request of the API")
    mailbox.post(LegConfirmed(0))
    await running
    assert seen == ["nobody"]


async def test_a_call_that_is_cancelled_handles_no_more() -> None:
    mailbox, handle = make_mailbox(), Handler(finished=False)
    running = asyncio.create_task(mailbox.run(handle))
    await asyncio.sleep(0)
    mailbox.post(LegConfirmed(0))
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled() and handle.handled == []
