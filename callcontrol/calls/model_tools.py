"""
Tools of a speech model that act on its call: their descriptions, and their translation to commands.

The vendor's arguments are as hostile as an agent's commands, and checked by the same readers.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from media.streams import AgentCommand, CommandError, ModelTool, decode_command

MAX_RESULT_CHARS: Final = 16_000
"""Length of a tool's result that a model gets; the rest is cut off."""

_MAX_DEPTH: Final = 32


def _tool(name: str, description: str, required: tuple[str, ...] = (), **properties: Any) -> ModelTool:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return ModelTool(name, description, {**schema, "required": list(required)} if required else schema)


_TOOLS: Final = (
    _tool(
        "transfer",
        "Transfer the caller to another phone number. Say that you do so first. The result comes only if the"
        " transfer fails; the caller is still with you then.",
        ("to",),
        to={
            "type": "string",
            "description": "Phone number in E.164 such as +919811100000, or a sip: address.",
        },
    ),
    _tool("hangup", "End the call. Say goodbye first; what you have said is played to its end."),
    _tool(
        "hold",
        "Put the caller on hold with music, or take them back.",
        ("active",),
        active={"type": "boolean", "description": "True to hold, false to take the caller back."},
    ),
    _tool(
        "send_digits",
        "Press keys of the telephone, for a machine that answers at the other end.",
        ("digits",),
        digits={"type": "string", "description": "1 to 64 of 0-9 * #; w waits half a second."},
    ),
)
TOOLS: Final[Mapping[str, ModelTool]] = MappingProxyType({tool.name: tool for tool in _TOOLS})
"""The tools by name."""

NAME_OF_REF: Final[Mapping[str, str]] = MappingProxyType(
    {"transfer": "transfer", "hold": "hold", "dtmf": "send_digits"}
)
"""The tool whose command an error or an acknowledgement of the call refers to."""


def _transfer(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"event": "transfer", "transfer": {"to": given.get("to")}}


def _hangup(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"event": "hangup", "hangup": {"drain": True}}


def _hold(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"event": "hold", "hold": {"active": given.get("active")}}


def _send_digits(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"event": "dtmf", "dtmf": {"digits": given.get("digits")}}


_COMMANDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]] = MappingProxyType(
    {"transfer": _transfer, "hangup": _hangup, "hold": _hold, "send_digits": _send_digits}
)


def command_of(name: str, arguments: Mapping[str, Any]) -> AgentCommand:
    """
    Return the command that a tool of the call stands for.

    Raises:
        CommandError: An argument is wrong.
    """
    return decode_command(_COMMANDS[name](arguments))


def read_arguments(text: str) -> dict[str, Any]:
    """
    Parse a model's arguments; no text at all stands for none.

    Raises:
        CommandError: They are no JSON object, or nested too deep.
    """
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise CommandError("the arguments are not JSON") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict) or _depth(arguments) > _MAX_DEPTH:
        raise CommandError("the arguments must be an object, not nested too deep")
    return arguments


def error_result(message: str) -> str:
    """Return the result of a use that failed."""
    return json.dumps({"error": message})


def shortened(result: str) -> str:
    """Return a result that fits into the conversation."""
    if len(result) <= MAX_RESULT_CHARS:
        return result
    return f"{result[:MAX_RESULT_CHARS]} (cut off after {MAX_RESULT_CHARS} characters)"


def _depth(value: Any) -> int:
    """Nesting of a value, counted up to the limit."""
    level, depth = [value], 0
    while level and depth <= _MAX_DEPTH:
        inner = [
            item.values() if isinstance(item, dict) else item
            for item in level
            if isinstance(item, dict | list)
        ]
        level = [part for parts in inner for part in parts]
        depth += 1
    return depth
