"""
Requests to the customer's server for instructions: as a step of the plan, and during any step.

An answer may arrive after its step is over: requests are numbered, and an answer with another number than the
awaited one is ignored.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Arm, AskWebhook, Disarm, Effect, Save, StopAsking
from callcontrol.calls.events import (
    ConsultRequested,
    Event,
    InstructionProblem,
    InstructionsFailed,
    InstructionsReceived,
    Timer,
    TimerFired,
)
from callcontrol.calls.hangup_cause import NO_ANSWER, NORMAL_CLEARING, NORMAL_TEMPORARY_FAILURE
from callcontrol.calls.leg import InboundLeg
from callcontrol.calls.plan import FALLBACK_EVENT, Consult
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.base_table import Rules, TableStep
from callcontrol.calls.transfers.replaces import PartnerStep
from callcontrol.models import CallStatus

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine

MAX_CONSULTATIONS: Final = 200
"""Limit of requests to a server per call: enough for a long menu, and it stops endless loops."""

MAX_UNANSWERED_S: Final = 600.0
"""Ringing limit for an unanswered caller, in seconds; ringing is unpaid and occupies a call."""

_REDIRECTED: Final = "call.redirected"


class ConsultState(IntEnum):
    """States of a request made by the plan, in order."""

    NEW = 0
    ASKING = 1
    WAITING = 2
    """The server gave no instructions for an unanswered caller: it rings."""
    OVER = 3


class ConsultInput(IntEnum):
    """Inputs of a request."""

    BEGIN = auto()
    INSTRUCTED = auto()
    LET_RING = auto()
    """The server gave no instructions, and the caller is not answered."""
    LET_GO = auto()
    """The server gave no instructions for an answered party."""
    FAILED = auto()
    TIMEOUT = auto()
    """The ringing limit has passed."""
    STOP = auto()
    """Command: the call ends, or continues with other steps."""


Action = Callable[["ConsultStep", Event | None], Iterator[Effect]]


class ConsultStep(TableStep[ConsultState, ConsultInput]):
    """The step that asks the customer's server; the instructions are the next steps of the call."""

    needs_answer = False
    keeps_keys = True

    def __init__(self, call: CallParts, consult: Consult) -> None:
        super().__init__(call, ConsultState.NEW)
        self._consult = consult
        self._number = 0

    def rules(self) -> Rules[ConsultState, ConsultInput]:
        """The table of the machine."""
        return RULES

    def begin(self) -> Iterator[Effect]:
        """Send the request, while a waiting caller hears ringing."""
        self._number = self.call.next_consultation()
        if self._number > MAX_CONSULTATIONS:
            yield from self._take(ConsultInput.FAILED, _too_often(self._number))
        else:
            yield from self._take(ConsultInput.BEGIN)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        what = self._input_of(event)
        if what is not None:
            yield from self._take(what, event)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop waiting for the answer."""
        yield from self._take(ConsultInput.STOP)

    def _input_of(self, event: Event) -> ConsultInput | None:
        match event:
            case InstructionsReceived() if event.number == self._number:
                silent = ConsultInput.LET_GO if self.call.a_leg.up else ConsultInput.LET_RING
                return ConsultInput.INSTRUCTED if event.steps else silent
            case InstructionsFailed() if event.number == self._number:
                return ConsultInput.FAILED
            case TimerFired(Timer.RING):
                return ConsultInput.TIMEOUT
        return None

    def _ask(self, _: Event | None) -> Iterator[Effect]:
        yield from self.call.ring()
        if self._number == 1 and not self.call.a_leg.up:
            yield Arm(Timer.TIME_LIMIT, MAX_UNANSWERED_S)  # the answer replaces it by the limit of the call
        consult = self._consult
        # Instructions of a fallback fall back to it, too.
        fallback = replace(consult, facts=()) if consult.event == FALLBACK_EVENT else consult.fallback
        yield AskWebhook(
            self._number, consult.url, consult.method, consult.event, consult.facts, consult.format, fallback
        )

    def _instructed(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, InstructionsReceived)
        self.call.follow(event.steps)
        yield from ()

    def _let_ring(self, _: Event | None) -> Iterator[Effect]:
        self.call.follow(())
        yield Arm(Timer.RING, self._consult.ring_timeout_s)

    def _let_go(self, _: Event | None) -> Iterator[Effect]:
        self.call.follow(())
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "api")
        yield from ()

    def _failed(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, InstructionsFailed)
        yield _alert(self._consult.url, event)
        fallback = self._consult.fallback
        if fallback is None or event.reason == "limit":
            self.call.follow(())
            self.ending = Ending(CallStatus.FAILED, NORMAL_TEMPORARY_FAILURE, "system", 480)
        else:
            self.call.follow((self._instead(fallback, event),))

    def _instead(self, fallback: Consult, event: InstructionsFailed) -> Consult:
        """Request to the fallback URL; includes what happened before."""
        why = (
            ("failed_url", self._consult.url),
            ("error_reason", event.reason),
            ("error_message", event.message),
        )
        return replace(
            fallback,
            event=FALLBACK_EVENT,
            facts=(*self._consult.facts, *why),
            ring_timeout_s=self._consult.ring_timeout_s,
        )

    def _rung(self, _: Event | None) -> Iterator[Effect]:
        self.ending = Ending(CallStatus.NO_ANSWER, NO_ANSWER, "system", 480)
        yield from ()

    def _stop_asking(self, _: Event | None) -> Iterator[Effect]:
        yield StopAsking(self._number)

    def _stop_ringing(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.RING)


_S, _I = ConsultState, ConsultInput
RULES: Final[dict[tuple[ConsultState, ConsultInput], tuple[ConsultState, Action]]] = {
    (_S.NEW, _I.BEGIN): (_S.ASKING, ConsultStep._ask),
    (_S.NEW, _I.FAILED): (_S.OVER, ConsultStep._failed),
    (_S.NEW, _I.STOP): (_S.OVER, ConsultStep._nothing),
    (_S.ASKING, _I.INSTRUCTED): (_S.OVER, ConsultStep._instructed),
    (_S.ASKING, _I.LET_RING): (_S.WAITING, ConsultStep._let_ring),
    (_S.ASKING, _I.LET_GO): (_S.OVER, ConsultStep._let_go),
    (_S.ASKING, _I.FAILED): (_S.OVER, ConsultStep._failed),
    (_S.ASKING, _I.STOP): (_S.OVER, ConsultStep._stop_asking),
    (_S.WAITING, _I.TIMEOUT): (_S.OVER, ConsultStep._rung),
    (_S.WAITING, _I.STOP): (_S.OVER, ConsultStep._stop_ringing),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in ConsultInput if what not in (_I.BEGIN, _I.FAILED, _I.STOP)}
    | {(_S.ASKING, _I.BEGIN), (_S.ASKING, _I.TIMEOUT)}
    | {(_S.WAITING, what) for what in ConsultInput if what not in (_I.TIMEOUT, _I.STOP)}
    | {(_S.OVER, what) for what in ConsultInput}
)


class Consultations:
    """
    Requests ordered by the API during a call, one at a time: a newer one replaces the older.

    The call goes on until the server has answered. Then the current step is aborted and the instructions are
    followed. A server that has no instructions, or cannot be reached, changes nothing.
    """

    def __init__(self, call: "CallMachine") -> None:
        self._call = call
        self._awaited = 0
        self._url = ""

    def requested(self, event: ConsultRequested) -> Iterator[Effect]:
        """Send a request, instead of any earlier one."""
        yield from self.stop()
        problem = self._objection()
        number = self._call.next_consultation()
        if problem is None and number > MAX_CONSULTATIONS:
            problem = _too_often(number)
        if problem is not None:
            yield _alert(event.url, problem)
            return
        self._awaited, self._url = number, event.url
        yield AskWebhook(number, event.url, event.method, _REDIRECTED)

    def received(self, event: InstructionsReceived) -> Iterator[Effect]:
        """Follow the server's instructions, if they answer the request awaited here."""
        if event.number != self._awaited:
            yield from self._call.pass_on(event)
            return
        self._awaited = 0
        problem = self._objection()
        if problem is not None:
            yield _alert(self._url, problem)
        elif event.steps:
            yield from self._call.interrupt(event.steps)

    def failed(self, event: InstructionsFailed) -> Iterator[Effect]:
        """Report the failure to the customer; the call goes on."""
        if event.number != self._awaited:
            yield from self._call.pass_on(event)
            return
        self._awaited = 0
        yield _alert(self._url, event)

    def stop(self) -> Iterator[Effect]:
        """Stop waiting for the answer."""
        if self._awaited:
            yield StopAsking(self._awaited)
            self._awaited = 0

    def objection(self) -> str | None:
        """Return why the call cannot be redirected now, None when it can."""
        problem = self._objection()
        return problem.message if problem is not None else None

    def _objection(self) -> InstructionsFailed | None:
        """Return why the call cannot be redirected now, as a failure event; None when it can."""
        first = self._call.a_leg
        waits = isinstance(first, InboundLeg) and not first.over
        if isinstance(self._call.step, PartnerStep):
            return _impossible("its party is joined with one of another call")
        if self._call.transfers.busy:
            return _impossible("its parties are being transferred")
        return None if first.up or waits else _impossible("it is not answered")


def _impossible(why: str) -> InstructionsFailed:
    return InstructionsFailed(0, "state", f"the call cannot be redirected: {why}", attempts=0)


def _too_often(number: int) -> InstructionsFailed:
    message = f"instructions were asked for {MAX_CONSULTATIONS} times during this call"
    return InstructionsFailed(number, "limit", message, attempts=0)


def _alert(url: str, event: InstructionsFailed) -> Save:
    """Report the failure by the status webhook of the customer."""
    reason: InstructionProblem = event.reason
    details = {
        "reason": reason,
        "message": event.message,
        "http_status": event.http_status,
        "attempts": event.attempts,
        "webhook_url": url,
    }
    return Save("webhook.failed", details)
