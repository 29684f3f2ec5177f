"""The built-in tools of messaging: sending messages and finding contacts."""

from collections.abc import Mapping
from typing import Any, Final

from callcontrol.errors import SendFailed, ValidationFailed
from callcontrol.messaging.aio.contacts import ContactService
from callcontrol.messaging.aio.messages import MessageService
from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.templates import DEFAULT_LANGUAGE
from callcontrol.tools.aio.builtin import Builtin, naming_arguments
from callcontrol.tools.results import contacts_result, message_result

_FOUND: Final = 10

_ARGUMENTS: Final[Mapping[str, str]] = {
    "template.name": "template",
    "template.language": "language",
    "template.bodyParameters": "body_parameters",
}
"""The argument that each field of the message comes from."""
_RESULTS: Final[Mapping[str, str]] = {"messageId": "message_id"}
"""Names in results of tools for the details of a refusal."""


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
            with naming_arguments(_ARGUMENTS):
                return message_result(await messages.send(account_sid, request))
        except SendFailed as refusal:
            details = {_RESULTS.get(name, name): value for name, value in refusal.details.items()}
            raise SendFailed(refusal.message, details=details) from None

    async def lookup_contact(account_sid: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        limit = int(arguments.get("limit", _FOUND))
        return contacts_result(await contacts.list(account_sid, arguments["search"], 1, limit))

    return {"send_message": send_message, "lookup_contact": lookup_contact}
