"""Implementations of the built-in tools, by the product's own services, for the account of the key."""

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, Final

from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.requests import CreateCall
from callcontrol.database.aio.database import Database
from callcontrol.errors import SendFailed, ValidationFailed
from callcontrol.messaging.aio.contacts import ContactService
from callcontrol.messaging.aio.messages import MessageService
from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.templates import DEFAULT_LANGUAGE
from callcontrol.models.parties import DEFAULT_RING_TIMEOUT_S
from callcontrol.numbers.binding import no_registered_number
from callcontrol.numbers.store.numbers import default_caller_id
from callcontrol.otp.aio import VoiceOtp
from callcontrol.otp.otp import DEFAULT_DIGITS, DEFAULT_REPEAT, DEFAULT_TTL_S, SendOtp
from callcontrol.routing.targets import normalise_number
from callcontrol.tools.results import (
    call_result,
    contacts_result,
    message_result,
    otp_result,
    wallet_result,
)
from callcontrol.wallet.aio import WalletService

Builtin = Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, dict[str, Any]]]
"""Runs a tool for an account, with arguments that fit its schema."""

_LANGUAGE: Final = "en-IN"

_FOUND: Final = 10

_ARGUMENTS: Final[Mapping[str, str]] = {
    "verbs[0].text": "message",
    "verbs[0].language": "language",
    "template.name": "template",
    "template.language": "language",
    "template.bodyParameters": "body_parameters",
}
"""The argument that each field of a call, a password or a message comes from."""
_RESULTS: Final[Mapping[str, str]] = {"messageId": "message_id"}
"""Names in results of tools for the details of a refusal."""


def call_tools(database: Database, calls: CallControl, passwords: VoiceOtp) -> dict[str, Builtin]:
    """The tools for calls and one-time passwords."""

    async def place_call(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        message, agent_id = arguments.get("message"), arguments.get("agent_id")
        if (message is None) == (agent_id is None):
            raise ValidationFailed.of("arguments.message", "give either message or agent_id")
        from_ = arguments.get("from")
        if from_ is None:
            from_ = await database.look_up(partial(default_caller_id, account_sid=account_sid))
        if from_ is None:
            raise no_registered_number("to call from")
        said = {"verb": "say", "text": message, "language": arguments.get("language", _LANGUAGE)}
        with _naming_arguments():
            request = CreateCall(
                from_=from_,
                to=normalise_number(arguments["to"], field="to"),
                verbs=[said, {"verb": "hangup"}] if message is not None else None,
                agent_id=agent_id.lower() if agent_id is not None else None,
                timeout_s=float(arguments.get("ring_timeout_sec", DEFAULT_RING_TIMEOUT_S)),
            )
            return call_result(await calls.create_call(account_sid, request))

    async def call_status(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return call_result(await calls.get_call(account_sid, arguments["call_sid"].lower()))

    async def hang_up(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return call_result(await calls.hangup_call(account_sid, arguments["call_sid"].lower()))

    async def send_otp(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request = SendOtp(
            to=arguments["to"],
            length=int(arguments.get("length", DEFAULT_DIGITS)),
            language=arguments.get("language", _LANGUAGE),
            repeat=int(arguments.get("repeat", DEFAULT_REPEAT)),
            from_=arguments.get("from"),
            ttl_s=int(arguments.get("valid_for_sec", DEFAULT_TTL_S)),
        )
        with _naming_arguments():
            return otp_result((await passwords.send(account_sid, request)).record)

    return {
        "place_call": place_call,
        "call_status": call_status,
        "hang_up": hang_up,
        "send_otp": send_otp,
    }


def wallet_tools(wallets: WalletService) -> dict[str, Builtin]:
    """The tools for the wallet."""

    async def wallet_balance(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return wallet_result(await wallets.wallet(account_sid))

    return {"wallet_balance": wallet_balance}


def messaging_tools(messages: MessageService, contacts: ContactService) -> dict[str, Builtin]:
    """The tools for messages and contacts."""

    async def send_message(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        text, template = arguments.get("text"), arguments.get("template")
        if (text is None) == (template is None):
            raise ValidationFailed.of("arguments.text", "give either text or template")
        of_template = [name for name in ("language", "body_parameters") if name in arguments]
        if template is None and of_template:
            raise ValidationFailed.of(f"arguments.{of_template[0]}", "is for templates only")
        request = SendMessage(
            to=arguments["to"],
            type="text" if template is None else "template",
            text=text,
            template={
                "name": template,
                "language": arguments.get("language", DEFAULT_LANGUAGE),
                "bodyParameters": list(arguments.get("body_parameters", ())),
            }
            if template is not None
            else None,
        )
        try:
            with _naming_arguments():
                return message_result(await messages.send(account_sid, request))
        except SendFailed as refusal:
            details = {_RESULTS.get(name, name): value for name, value in refusal.details.items()}
            raise SendFailed(refusal.message, details=details) from None

    async def lookup_contact(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        limit = int(arguments.get("limit", _FOUND))
        return contacts_result(await contacts.list(account_sid, arguments["search"], 1, limit))

    return {"send_message": send_message, "lookup_contact": lookup_contact}


@contextlib.contextmanager
def _naming_arguments() -> Iterator[None]:
    """Rename the fields in a refusal to the tool's arguments that they were made from."""
    try:
        yield
    except ValidationFailed as refusal:
        raise refusal.renamed(lambda field: f"arguments.{_argument_of(field)}") from None


def _argument_of(field: str) -> str:
    whole, bracket, place = field.partition("[")
    return _ARGUMENTS.get(field) or _ARGUMENTS.get(whole, whole) + bracket + place
