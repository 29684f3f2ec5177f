"""
A chat message that the plan of a call sends, and the result that the customer's server is told.

A message that is refused ends nothing: the result says so, and the call goes on.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final, Literal

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.events import Event
from callcontrol.calls.plan import SendMessage
from callcontrol.calls.records.call_info import MESSAGE_STATUS
from callcontrol.calls.steps.base import CallParts, RunningStep
from sip.values import frozen

MAX_MESSAGES: Final = 20
"""Limit of messages that one call may send, so that no list of verbs floods people."""


@frozen
class SendChatMessage(Effect):
    """Send a text, in the name of the call's account; ``MessageHandled`` of the same ``number`` follows."""

    number: int
    to: str
    text: str = field(repr=False)
    from_: str | None = None


@frozen
class MessageHandled(Event):
    """
    The message was ``accepted`` and will leave, or it ``failed``.

    ``message_id`` is None for one that was refused before it was stored. ``error_code`` is that of the API,
    ``error`` describes the failure for people.
    """

    number: int
    status: Literal["accepted", "failed"]
    message_id: str | None = None
    error_code: str | None = None
    error: str | None = None


class SendMessageStep(RunningStep):
    """Send a message, and ask the ``action`` URL with the result; a waiting caller hears ringing."""

    needs_answer = False
    keeps_keys = True
    keeps_party = True

    def __init__(self, call: CallParts, step: SendMessage) -> None:
        super().__init__(call)
        self._step = step
        self._number = 0

    def begin(self) -> Iterator[Effect]:
        """Send it."""
        yield from self.call.ring()
        # A late result of an earlier message has another number.
        self._number = self.call.next_request_id()
        yield SendChatMessage(self._number, self._step.to, self._step.text, self._step.from_)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Finish with the result."""
        if isinstance(event, MessageHandled) and event.number == self._number:
            self.over = True
            self._ask(event)
        yield from ()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Wait no more for the result; the message goes on its way."""
        self._number = 0
        yield from ()

    def _ask(self, event: MessageHandled) -> None:
        action = self._step.action
        if action is None:
            return
        facts = (
            (MESSAGE_STATUS, event.status),
            ("message_id", event.message_id),
            ("message_error_code", event.error_code),
            ("message_error", event.error),
        )
        self.call.set_next_steps((replace(action, facts=(*action.facts, *facts)),))
