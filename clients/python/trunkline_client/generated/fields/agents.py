# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from . import shared


class ScriptGather(TypedDict):
    """
    Input to collect, after the node's prompt and while it is spoken.
    """

    num_digits: NotRequired[int | None]
    finish_on_key: NotRequired[str | None]
    timeout_s: NotRequired[float | None]
    barge_in: NotRequired[bool | None]
    retries: NotRequired[int | None]
    retry_say: NotRequired[str | None]
    variable: NotRequired[str | None]


class ScriptTransfer(TypedDict):
    """
    Transfer of the call to another party.
    """

    to: str
    caller_id: NotRequired[str | None]
    timeout_s: NotRequired[float | None]


class ListAgentsFields(TypedDict):
    """
    Fields of `agents.list`.
    """

    per_page: NotRequired[int]


class ScriptNode(TypedDict):
    """
    One node: an optional prompt, then exactly one of gather, transfer, next and hangup.
    """

    say: NotRequired[str | None]
    gather: NotRequired[ScriptGather | None]
    transfer: NotRequired[ScriptTransfer | None]
    next: NotRequired[str | None]
    hangup: NotRequired[Literal[True] | None]
    on: NotRequired[dict[str, str] | None]


class AgentScript(TypedDict):
    """
    Script of the built-in agent: a graph of nodes.
    """

    start: NotRequired[str | None]
    max_turns: NotRequired[int | None]
    nodes: dict[str, ScriptNode]


class CreateAgentFields(TypedDict):
    """
    Fields of `agents.create`.
    """

    language: NotRequired[str | None]
    voice: NotRequired[str | None]
    greeting: NotRequired[str | None]
    instructions: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    stream_url: NotRequired[str | None]
    sample_rate: NotRequired[Literal[8000, 16000] | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    script: NotRequired[AgentScript | None]
    name: str


class UpdateAgentFields(TypedDict):
    """
    Fields of `agents.update`.
    """

    language: NotRequired[str | None]
    voice: NotRequired[str | None]
    greeting: NotRequired[str | None]
    instructions: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    stream_url: NotRequired[str | None]
    sample_rate: NotRequired[Literal[8000, 16000] | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    script: NotRequired[AgentScript | None]
    name: NotRequired[str]
