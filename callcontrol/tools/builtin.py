"""Descriptions of the built-in tools for models; ``callcontrol.tools.aio.builtin`` runs them."""

from collections.abc import Mapping
from typing import Any, Final

from callcontrol.e164 import MAX_NUMBER_CHARS, read_number
from callcontrol.errors import FieldError
from callcontrol.otp.otp import (
    DEFAULT_DIGITS,
    DEFAULT_REPEAT,
    DEFAULT_TTL_S,
    MAX_DIGITS,
    MAX_REPEAT,
    MAX_TTL_S,
    MIN_DIGITS,
    MIN_TTL_S,
)
from callcontrol.tools.models import Tool, ToolAnnotations
from callcontrol.tools.schemas import UUID_PATTERN

_LOOKS: Final = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
_REACHES_OUT: Final = ToolAnnotations(destructive=False)


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _either(kind: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], "description": description, **more}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


_PHONE: Final = _text(
    "Phone number in E.164 with the country code, such as +919811100000.",
    minLength=4,
    maxLength=MAX_NUMBER_CHARS,
)
_FROM: Final = _text(
    "Number of the account to call from, in E.164. Leave it out to use the account's oldest number.",
    minLength=4,
    maxLength=MAX_NUMBER_CHARS,
)
_CALL_SID: Final = _text("The call_sid that place_call or send_otp returned.", pattern=UUID_PATTERN)
_LANGUAGE: Final = _text("Language spoken, such as en-IN or hi-IN. Default en-IN.", minLength=2, maxLength=16)
_STATUS: Final = _text(
    "queued, initiated, ringing or in-progress while it is up; completed, busy, no-answer, failed or canceled"
    " once it is over."
)
_CALL: Final = _object(
    ("call_sid", "status", "from", "to"),
    **{"from": _text("Who calls."), "to": _text("Who is called.")},
    call_sid=_text("Names the call; pass it to call_status and hang_up."),
    status=_STATUS,
    direction=_text("inbound or outbound."),
    created_at=_either("string", "When it was placed, RFC 3339."),
    answered_at=_either("string", "When it was answered, RFC 3339."),
    ended_at=_either("string", "When it ended, RFC 3339."),
    duration_sec=_either("integer", "Seconds from answer to end."),
    hangup_cause=_either("string", "Why it ended."),
    price=_either("number", "What it cost, in rupees."),
)

_TOOLS: Final = (
    Tool(
        name="place_call",
        title="Place a call",
        description=(
            "Call a phone number. Give message to have a text spoken and the call ended, or agent_id to have"
            " a voice agent of the account talk; exactly one of them. Returns at once, while the phone is"
            " still being called: ask call_status how it goes. Calls cost money of the account's wallet."
        ),
        kind="builtin",
        input_schema=_object(
            ("to",),
            to=_PHONE,
            message=_text("What is said when the call is answered.", minLength=1, maxLength=1000),
            language=_LANGUAGE,
            agent_id=_text("A voice agent of the account.", pattern=UUID_PATTERN),
            ring_timeout_sec={
                "type": "integer",
                "minimum": 5,
                "maximum": 120,
                "description": "How long the phone rings. Default 60.",
            },
            **{"from": _FROM},
        ),
        output_schema=_CALL,
        annotations=_REACHES_OUT,
    ),
    Tool(
        name="call_status",
        title="Ask how a call goes",
        description="Tell the state of a call: whether it rings, is up or over, and why it ended.",
        kind="builtin",
        input_schema=_object(("call_sid",), call_sid=_CALL_SID),
        output_schema=_CALL,
        annotations=_LOOKS,
    ),
    Tool(
        name="hang_up",
        title="End a call",
        description=(
            "End a call that rings or is up. The status returned may still say that it is up; it ends within"
            " a moment. Fails when the call is over already."
        ),
        kind="builtin",
        input_schema=_object(("call_sid",), call_sid=_CALL_SID),
        output_schema=_CALL,
        annotations=ToolAnnotations(idempotent=True, open_world=True),
    ),
    Tool(
        name="send_otp",
        title="Send a one-time password by voice",
        description=(
            "Call a phone number and speak a one-time password that the server makes. The password is not"
            " returned: have the person read it to your application, which verifies it with otp_id. A number"
            " can be sent five in ten minutes. Costs money of the account's wallet."
        ),
        kind="builtin",
        input_schema=_object(
            ("to",),
            to=_PHONE,
            language=_LANGUAGE,
            length={
                "type": "integer",
                "minimum": MIN_DIGITS,
                "maximum": MAX_DIGITS,
                "description": f"How many digits. Default {DEFAULT_DIGITS}.",
            },
            repeat={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_REPEAT,
                "description": f"How often it is said. Default {DEFAULT_REPEAT}.",
            },
            valid_for_sec={
                "type": "integer",
                "minimum": MIN_TTL_S,
                "maximum": MAX_TTL_S,
                "description": f"How long it can be verified. Default {DEFAULT_TTL_S}.",
            },
            **{"from": _FROM},
        ),
        output_schema=_object(
            ("otp_id", "call_sid", "to", "status"),
            otp_id=_text("Names the password when it is verified."),
            call_sid=_text("The call that speaks it; pass it to call_status."),
            to=_text("The last digits of the number."),
            status=_STATUS,
            expires_at=_either("string", "Until when it can be verified, RFC 3339."),
        ),
        annotations=_REACHES_OUT,
    ),
    Tool(
        name="wallet_balance",
        title="Look at the wallet",
        description="Tell how much money the account has, and how much of it is held for calls that are up.",
        kind="builtin",
        input_schema=_object(),
        output_schema=_object(
            ("balance", "reserved", "available", "currency"),
            balance={"type": "number", "description": "All money."},
            reserved={"type": "number", "description": "Held for calls that are up."},
            available={"type": "number", "description": "What new calls can use."},
            currency=_text("INR."),
        ),
        annotations=_LOOKS,
    ),
    Tool(
        name="send_message",
        title="Send a chat message",
        description=(
            "Send a chat message to a phone number: give text, or template for an approved template with its"
            " body_parameters; exactly one of them. Returns once it is accepted, before it is delivered."
            " People who opted out are sent nothing."
        ),
        kind="builtin",
        input_schema=_object(
            ("to",),
            to=_PHONE,
            text=_text("What it says.", minLength=1, maxLength=4096),
            template=_text("Name of an approved template.", minLength=1, maxLength=512),
            language=_text("Language of the template. Default en_US.", minLength=2, maxLength=16),
            body_parameters={
                "type": "array",
                "items": {"type": "string", "maxLength": 1024},
                "maxItems": 100,
                "description": "Values of the template's {{1}}, {{2}} and so on, in order.",
            },
        ),
        output_schema=_object(
            ("message_id", "to", "status"),
            message_id=_text("Names the message."),
            to=_text("Who gets it."),
            status=_text("queued, or further already."),
        ),
        annotations=_REACHES_OUT,
    ),
    Tool(
        name="lookup_contact",
        title="Look up a contact",
        description=(
            "Find people in the account's contacts by phone number, name or e-mail, or a part of these. Tells"
            " also who has opted out of messages."
        ),
        kind="builtin",
        input_schema=_object(
            ("search",),
            search=_text("Number, name or e-mail, or a part of it.", minLength=1, maxLength=200),
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "description": "How many at most. Default 10.",
            },
        ),
        output_schema=_object(
            ("contacts", "total"),
            contacts={
                "type": "array",
                "items": _object(
                    ("id", "phone_number", "opted_out"),
                    id={"type": "integer", "description": "Names the contact."},
                    phone_number=_text("E.164."),
                    first_name=_either("string", "First name."),
                    last_name=_either("string", "Last name."),
                    email=_either("string", "E-mail."),
                    notes=_either("string", "What the account has noted."),
                    opted_out={"type": "boolean", "description": "Wants no messages."},
                ),
            },
            total={"type": "integer", "description": "How many there are in all."},
        ),
        annotations=_LOOKS,
    ),
)

BUILTIN: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _TOOLS}
"""The built-in tools by name."""


def number_errors(tool: Tool, arguments: object, root: str) -> list[FieldError]:
    """Errors of telephone numbers among the arguments of a built-in tool, which a schema does not find."""
    if tool.kind != "builtin" or not isinstance(arguments, Mapping):
        return []
    errors: list[FieldError] = []
    for name, schema in tool.input_schema.get("properties", {}).items():
        given = arguments.get(name) if schema in (_PHONE, _FROM) else None
        if isinstance(given, str):
            try:
                read_number(given)
            except ValueError as error:
                errors.append(FieldError(f"{root}.{name}", str(error)))
    return errors
