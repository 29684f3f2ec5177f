"""Script of the built-in voice agent."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import RequestModel
from callcontrol.agents.script import MAX_NODES, MAX_TEXT_CHARS, MAX_TURNS

__all__ = ["AgentScript"]

_Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
_NodeName = Annotated[str, Field(min_length=1, max_length=64)]
_Outcome = Annotated[str, Field(min_length=1, max_length=32)]


class ScriptGather(RequestModel):
    """Input to collect, after the node's prompt and while it is spoken."""

    num_digits: Annotated[int, Field(ge=1, le=32, description="Default: as many as `on` names.")] | None = (
        None
    )
    finish_on_key: Annotated[str, Field(max_length=1, description="Default #; empty for none.")] | None = None
    timeout_s: Annotated[float, Field(ge=1, le=60, description="Default 5.")] | None = None
    barge_in: (
        Annotated[bool, Field(description="Keys and speech interrupt the prompt; default true.")] | None
    ) = None
    retries: Annotated[int, Field(ge=0, le=5, description="Repetitions of the prompt; default 1.")] | None = (
        None
    )
    retry_say: Annotated[_Text, Field(description="Instead of `say` then.")] | None = None
    variable: (
        Annotated[str, Field(min_length=1, max_length=64, description="What the keys are known as.")] | None
    ) = None


class ScriptTransfer(RequestModel):
    """Transfer of the call to another party."""

    to: Annotated[str, Field(min_length=1, max_length=256, description="A number, or a sip: address.")]
    caller_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    timeout_s: Annotated[float, Field(ge=5, le=120, description="Default 30.")] | None = None


class ScriptNode(RequestModel):
    """One node: an optional prompt, then exactly one of gather, transfer, next and hangup."""

    say: Annotated[_Text, Field(description="{{name}} and {{name|other words}} are variables.")] | None = None
    gather: ScriptGather | None = None
    transfer: ScriptTransfer | None = None
    next: _NodeName | None = None
    hangup: Literal[True] | None = None
    on: (
        Annotated[
            dict[_Outcome, _NodeName],
            Field(
                max_length=64,
                description="Where keys, `digits` (any others), `speech`, `none` and `failed` lead.",
            ),
        ]
        | None
    ) = None


class AgentScript(RequestModel):
    """Script of the built-in agent: a graph of nodes."""

    start: Annotated[_NodeName, Field(description="The first node; default start.")] | None = None
    max_turns: (
        Annotated[int, Field(ge=1, le=MAX_TURNS, description="Then it says goodbye; default 50.")] | None
    ) = None
    nodes: Annotated[dict[_NodeName, ScriptNode], Field(min_length=1, max_length=MAX_NODES)]
