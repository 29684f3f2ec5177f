"""Digits in INFO requests: one after the other, and none once their call is over."""

import asyncio

from callcontrol.calls.aio.dtmf import InfoDigits
from callcontrol.calls.aio.mailbox import CallMailbox
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import DigitsSent
from tests.support.domain import make_ringing
from tests.support.waiting import until


class Desk:
    """Digits of a call, with its mailbox."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, str, int]] = []
        self.posted: list[Event] = []
        self.mailbox = CallMailbox(make_ringing(), lambda _: None)
        self.digits = InfoDigits(
            lambda leg, digit, ms: self.sent.append((leg, digit, ms)),
            self.posted.append,
            self.mailbox.spawn_helper,
        )


async def test_digits_wait_for_each_other() -> None:
    desk = Desk()
    desk.digits.send(0, "1a", 1, 0)
    desk.digits.send(0, "2", 1, 0)
    await desk.mailbox.wind_up()
    assert desk.sent == [(0, "1", 1), (0, "A", 1), (0, "2", 1)]
    assert desk.posted == [DigitsSent(0, "1a"), DigitsSent(0, "2")]


async def test_more_than_can_wait_is_refused() -> None:
    desk = Desk()
    for _ in range(65):
        desk.digits.send(0, "W", 100, 0)
    assert [event.problem for event in desk.posted if isinstance(event, DigitsSent)] == [
        "too many digits are waiting"
    ]
    desk.mailbox.cancel_helpers()
    await desk.mailbox.wind_up()


async def test_the_end_of_the_call_waits_for_no_pauses() -> None:
    desk = Desk()
    desk.digits.send(0, "1WWWWWWWWWW2", 1, 0)
    desk.digits.send(1, "W", 1, 0)
    await until(lambda: desk.sent)
    desk.mailbox.cancel_helpers()
    await asyncio.wait_for(desk.mailbox.wind_up(), 1.0)
    assert desk.sent == [(0, "1", 1)]
    assert not desk.posted
