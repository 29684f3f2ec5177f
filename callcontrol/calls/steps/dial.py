"""A second party as a verb dials it: for a limited time, and with a server that is told how it went."""

from collections.abc import Iterator
from dataclasses import replace

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Arm, Disarm, Effect
from callcontrol.calls.events import Event, Timer, TimerFired
from callcontrol.calls.hangup_cause import ALLOTTED_TIMEOUT
from callcontrol.calls.plan import Dial
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.bridge import Bridge
from callcontrol.models import CallStatus


class DialStep(Bridge):
    """The step that dials a second party, and then asks what follows if that is wished."""

    def __init__(self, call: CallParts, dial: Dial) -> None:
        super().__init__(call, dial.party)
        self._action = dial.action
        self._limit_s = dial.time_limit_s
        self._joined_at: float | None = None

    def handle(self, event: Event) -> Iterator[Effect]:
        """Take one event of the call."""
        if isinstance(event, TimerFired) and event.timer is Timer.TALK:
            yield from self._time_up()
        else:
            yield from super().handle(event)
        if self.joined and self._joined_at is None:
            self._joined_at = self.call.now_s
            if self._limit_s is not None:
                yield Arm(Timer.TALK, self._limit_s)
        if self.over:
            yield from self._done()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Give up the second party."""
        yield from self._disarm()
        yield from super().stop(ending)

    def _time_up(self) -> Iterator[Effect]:
        """The two have talked for as long as they may; the first party goes on with the plan."""
        if self.joined and self._limit_s is not None:
            ending = Ending(CallStatus.COMPLETED, ALLOTTED_TIMEOUT, "system")
            yield from super().stop(ending)
            self.ending = ending

    def _done(self) -> Iterator[Effect]:
        yield from self._disarm()
        if self._action is None or self.ending is None:
            return
        talked_s = 0 if self._joined_at is None else round(self.call.now_s - self._joined_at)
        # Its own status is no more than that of the call once the two are joined.
        status = self.ending.status if self._joined_at is None else CallStatus.COMPLETED
        facts = (("dial_call_status", status.value), ("dial_call_duration", talked_s))
        self.call.follow((replace(self._action, facts=(*self._action.facts, *facts)),))

    def _disarm(self) -> Iterator[Effect]:
        if self._limit_s is not None and self._joined_at is not None:
            yield Disarm(Timer.TALK)
