"""
Chat messages of verbs, sent by the account's tool ``send_message``.

A voice agent of the account may use that tool in a call, too. So a verb sends nothing that could not be sent
before, and the tool's limits, checks, counts and its being disabled hold for both.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from callcontrol.calls.aio.context import ActiveCall
from callcontrol.calls.steps.send_message import MAX_MESSAGES, MessageHandled, SendChatMessage
from callcontrol.errors import DomainError, RateLimited, ValidationFailed
from callcontrol.models import Principal
from callcontrol.tools.aio.service import call_principal
from callcontrol.tools.models import ToolResult

TOOL: Final = "send_message"

_MAX_ERROR_CHARS: Final = 500


class AccountTools(Protocol):
    """The part of ``ToolService`` that is used."""

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Execute a tool once; raises ``DomainError``."""


class CallMessages:
    """
    Sends the messages of calls.

    ``tools`` returns the service, which is built after the calls that use it. ``number_of`` returns the
    number of an account's channel, from which all its messages are sent.
    """

    def __init__(self, tools: Callable[[], AccountTools], number_of: Callable[[str], Awaitable[str]]) -> None:
        self._tools = tools
        self._number_of = number_of

    def perform(self, call: ActiveCall, effect: SendChatMessage) -> None:
        """Send a message; ``MessageHandled`` follows while the call is up."""
        call.mailbox.spawn_helper(self._perform(call, effect))

    async def _perform(self, call: ActiveCall, effect: SendChatMessage) -> None:
        number = effect.number
        try:
            message_id = await self._sent(call, effect)
        except DomainError as refusal:
            call.mailbox.log.info("message not sent: %s", refusal.message)
            refused_id, code = refusal.details.get("message_id"), refusal.details.get("reason", refusal.code)
            error = refusal.message[:_MAX_ERROR_CHARS]
            call.mailbox.post(MessageHandled(number, "failed", refused_id, code, error))
        else:
            call.mailbox.post(MessageHandled(number, "accepted", message_id))

    async def _sent(self, call: ActiveCall, effect: SendChatMessage) -> str:
        account_sid = call.account.account_sid
        if call.messages_sent >= MAX_MESSAGES:
            raise RateLimited(f"A call sends at most {MAX_MESSAGES} messages.", retry_after_s=0.0)
        call.messages_sent += 1
        if effect.from_ is not None and effect.from_ != await self._number_of(account_sid):
            raise ValidationFailed.of("from", "must be the number of the account's channel")
        try:
            arguments = {"to": effect.to, "text": effect.text}
            result = await self._tools().execute(call_principal(account_sid), TOOL, arguments)
        except ValidationFailed as refusal:
            raise _plain(refusal) from None
        return str(result.content["message_id"])


def _plain(refusal: ValidationFailed) -> ValidationFailed:
    """Name the fields as the verb does; an error that has a reason lends it to the whole."""
    found = refusal.renamed(lambda field: field.removeprefix("arguments."))
    reason = next((error.reason for error in found.errors if error.reason is not None), None)
    if reason is not None:
        found.details = {**found.details, "reason": reason.upper()}
    return found
