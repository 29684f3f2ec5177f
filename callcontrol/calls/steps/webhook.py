"""
Requests to the customer's server for instructions: as a step of the plan, and during any step.

An answer may arrive after its step is over: requests are numbered, and an answer with another number than the
awaited one is ignored.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking
from callcontrol.calls.effects.records import Arm, Disarm, Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.commands import RedirectRequested
from callcontrol.calls.events.instructions import InstructionProblem, InstructionsFailed, InstructionsReceived
from callcontrol.calls.hangup_cause import (
    NO_ANSWER,
    NORMAL_CLEARING,
    NORMAL_TEMPORARY_FAILURE,
    STREAM_DISCONNECTED,
)
from callcontrol.calls.leg import InboundLeg
from callcontrol.calls.plan import FALLBACK_EVENT, STREAMED_EVENT, RequestInstructions
from callcontrol.calls.records.call_info import COMPLETION_REASON
from callcontrol.calls.steps.base import CallParts, TableStep
from callcontrol.calls.transfers.replaces import PartnerStep
from callcontrol.models import CallStatus
from sip.machine import Rules, compile_rules

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine

MAX_REQUESTS: Final = 200
"""Limit of requests to a server per call: enough for a long menu, and it stops endless loops."""

MAX_UNANSWERED_S: Final = 600.0
"""Ringing limit for an unanswered caller, in seconds; ringing is unpaid and occupies a call."""

_REDIRECTED: Final = "call.redirected"


class WebhookState(IntEnum):
    """States of a request made by the plan, in order."""

    NEW = 0
    ASKING = 1
    WAITING = 2
    """The server gave no instructions for an unanswered caller: it rings."""
    OVER = 3


class WebhookInput(IntEnum):
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


class WebhookStep(TableStep[WebhookState]):
    """The step that asks the customer's server; the instructions are the next steps of the call."""

    needs_answer = False
    keeps_keys = True
    keeps_party = True

    def __init__(self, call: CallParts, request: RequestInstructions) -> None:
        super().__init__(call, WebhookState.NEW)
        self._request = request
        self._number = 0

    def begin(self) -> Iterator[Effect]:
        """Send the request, while a waiting caller hears ringing."""
        self._number = self.call.next_request_id()
        if self._number > MAX_REQUESTS:
            yield from self.trigger(WebhookInput.FAILED, _too_often(self._number))
        else:
            yield from self.trigger(WebhookInput.BEGIN)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        what = self._input_of(event)
        if what is not None:
            yield from self.trigger(what, event)

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop waiting for the answer."""
        yield from self.trigger(WebhookInput.STOP)

    def _input_of(self, event: Event) -> WebhookInput | None:
        match event:
            case InstructionsReceived() if event.number == self._number:
                silent = WebhookInput.LET_GO if self.call.a_leg.up else WebhookInput.LET_RING
                told = event.steps or self._request.otherwise
                return WebhookInput.INSTRUCTED if told else silent
            case InstructionsFailed() if event.number == self._number:
                return WebhookInput.FAILED
            case TimerFired(Timer.RING):
                return WebhookInput.TIMEOUT
        return None

    def _ask(self, _: Event | None) -> Iterator[Effect]:
        yield from self.call.ring()
        if self._number == 1 and not self.call.a_leg.up:
            yield Arm(Timer.TIME_LIMIT, MAX_UNANSWERED_S)  # the answer replaces it by the limit of the call
        request = self._request
        # Instructions of a fallback fall back to it, too.
        fallback = replace(request, facts=()) if request.event == FALLBACK_EVENT else request.fallback
        facts = request.facts + self._completion()
        yield AskWebhook(
            self._number, request.url, request.method, request.event, facts, request.format, fallback
        )

    def _completion(self) -> tuple[tuple[str, str], ...]:
        """Return the fact, in jambonz's words, of how the session with a speech model has ended."""
        stream, ending = self.call.record.stream, self.call.last_ending
        is_model = stream is not None and stream.model is not None
        if self._request.event != STREAMED_EVENT or self._request.format != "jambonz" or not is_model:
            return ()
        if ending is None or ending.cause != STREAM_DISCONNECTED:
            return ((COMPLETION_REASON, "normal conversation end"),)
        reached = ending.status is CallStatus.COMPLETED
        reason = "disconnect from remote end" if reached else "connection failure"
        return ((COMPLETION_REASON, reason),)

    def _instructed(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, InstructionsReceived)
        self.call.set_next_steps(event.steps or self._request.otherwise)
        yield from ()

    def _let_ring(self, _: Event | None) -> Iterator[Effect]:
        self.call.set_next_steps(())
        yield Arm(Timer.RING, self._request.ring_timeout_s)

    def _let_go(self, _: Event | None) -> Iterator[Effect]:
        self.call.set_next_steps(())
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "api")
        yield from ()

    def _failed(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, InstructionsFailed)
        yield _alert(self._request.url, event)
        fallback = self._request.fallback
        if fallback is None or event.reason == "limit":
            self.call.set_next_steps(())
            self.ending = Ending(CallStatus.FAILED, NORMAL_TEMPORARY_FAILURE, "system", 480)
        else:
            self.call.set_next_steps((self._instead(fallback, event),))

    def _instead(self, fallback: RequestInstructions, event: InstructionsFailed) -> RequestInstructions:
        """Request to the fallback URL; includes what happened before."""
        failed = self._request
        told = fallback.after_failure(failed.url, event.reason, event.message, failed.facts)
        return replace(told, ring_timeout_s=failed.ring_timeout_s)

    def _rung(self, _: Event | None) -> Iterator[Effect]:
        self.ending = Ending(CallStatus.NO_ANSWER, NO_ANSWER, "system", 480)
        yield from ()

    def _stop_asking(self, _: Event | None) -> Iterator[Effect]:
        yield StopAsking(self._number)

    def _stop_ringing(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.RING)


_S, _I = WebhookState, WebhookInput
RULES: Final[Rules[WebhookState, WebhookInput]] = {
    (_S.NEW, _I.BEGIN): (_S.ASKING, WebhookStep._ask),
    (_S.NEW, _I.FAILED): (_S.OVER, WebhookStep._failed),
    (_S.NEW, _I.STOP): (_S.OVER, WebhookStep._nothing),
    (_S.ASKING, _I.INSTRUCTED): (_S.OVER, WebhookStep._instructed),
    (_S.ASKING, _I.LET_RING): (_S.WAITING, WebhookStep._let_ring),
    (_S.ASKING, _I.LET_GO): (_S.OVER, WebhookStep._let_go),
    (_S.ASKING, _I.FAILED): (_S.OVER, WebhookStep._failed),
    (_S.ASKING, _I.STOP): (_S.OVER, WebhookStep._stop_asking),
    (_S.WAITING, _I.TIMEOUT): (_S.OVER, WebhookStep._rung),
    (_S.WAITING, _I.STOP): (_S.OVER, WebhookStep._stop_ringing),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in WebhookInput if what not in (_I.BEGIN, _I.FAILED, _I.STOP)}
    | {(_S.ASKING, _I.BEGIN), (_S.ASKING, _I.TIMEOUT)}
    | {(_S.WAITING, what) for what in WebhookInput if what not in (_I.TIMEOUT, _I.STOP)}
    | {(_S.OVER, what) for what in WebhookInput}
)


class CallWebhooks:
    """
    Requests ordered by the API during a call, one at a time: a newer one replaces the older.

    The call goes on until the server has answered. Then the current step is aborted and the instructions are
    followed. A server that has no instructions, or cannot be reached, changes nothing.
    """

    def __init__(self, call: "CallMachine") -> None:
        self._call = call
        self._awaited = 0
        self._url = ""

    def requested(self, event: RedirectRequested) -> Iterator[Effect]:
        """Send a request, instead of any earlier one."""
        yield from self.stop()
        problem = self._objection()
        number = self._call.next_request_id()
        if problem is None and number > MAX_REQUESTS:
            problem = _too_often(number)
        if problem is not None:
            yield _alert(event.url, problem)
            return
        self._awaited, self._url = number, event.url
        yield AskWebhook(number, event.url, event.method, _REDIRECTED, format=event.format)

    def received(self, event: InstructionsReceived) -> Iterator[Effect]:
        """Follow the server's instructions, if they answer the request awaited here."""
        if event.number != self._awaited:
            yield from self._call.forward(event)
            return
        self._awaited = 0
        problem = self._objection()
        if problem is not None:
            yield _alert(self._url, problem)
        elif event.steps:
            yield from self._call.abort_step(event.steps)

    def failed(self, event: InstructionsFailed) -> Iterator[Effect]:
        """Report the failure to the customer; the call goes on."""
        if event.number != self._awaited:
            yield from self._call.forward(event)
            return
        self._awaited = 0
        yield _alert(self._url, event)

    def stop(self) -> Iterator[Effect]:
        """Stop waiting for the answer."""
        if self._awaited:
            yield StopAsking(self._awaited)
            self._awaited = 0

    def reject_reason(self) -> str | None:
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
    message = f"instructions were asked for {MAX_REQUESTS} times during this call"
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


WebhookStep.ROWS = compile_rules(RULES)
