"""The step of a dial verb: a second party with a time limit, and a server that gets the result."""

from collections.abc import Iterator
from dataclasses import replace

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.records import Arm, Disarm
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.hangup_cause import ALLOTTED_TIMEOUT
from callcontrol.calls.plan import Dial
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.models import CallStatus


class DialStep(BridgeStep):
    """The step that dials a second party, and then asks the ``action`` URL, if there is one."""

    def __init__(self, call: CallParts, dial: Dial) -> None:
        super().__init__(call, dial.party)
        self._action = dial.action
        self._limit_s = dial.time_limit_s
        self._joined_at: float | None = None

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
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
        """Abandon the second party."""
        yield from self._disarm()
        yield from super().stop(ending)

    def _time_up(self) -> Iterator[Effect]:
        """Disconnect the second party at the time limit; the first party continues with the plan."""
        if self.joined and self._limit_s is not None:
            ending = Ending(CallStatus.COMPLETED, ALLOTTED_TIMEOUT, "system")
            yield from super().stop(ending)
            self.ending = ending

    def _done(self) -> Iterator[Effect]:
        yield from self._disarm()
        if self._action is None or self.ending is None:
            return
        talked_s = 0 if self._joined_at is None else round(self.call.now_s - self._joined_at)
        # After the connection the ending describes the call, not the dialled party.
        status = self.ending.status if self._joined_at is None else CallStatus.COMPLETED
        facts = (("dial_call_status", status.value), ("dial_call_duration", talked_s))
        self.call.set_next_steps((replace(self._action, facts=(*self._action.facts, *facts)),))

    def _disarm(self) -> Iterator[Effect]:
        if self._limit_s is not None and self._joined_at is not None:
            yield Disarm(Timer.TALK)
