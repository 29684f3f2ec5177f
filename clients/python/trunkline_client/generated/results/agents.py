# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class ScriptGather(Result):
    """
    Input to collect, after the node's prompt and while it is spoken.
    """

    num_digits: int | None = None
    finish_on_key: str | None = None
    timeout_s: float | None = None
    barge_in: bool | None = None
    retries: int | None = None
    retry_say: str | None = None
    variable: str | None = None


class ScriptTransfer(Result):
    """
    Transfer of the call to another party.
    """

    to: Annotated[str, Field(description='A number, or a sip: address.')]
    caller_id: str | None = None
    timeout_s: float | None = None


class ScriptNode(Result):
    """
    One node: an optional prompt, then exactly one of gather, transfer, next and hangup.
    """

    say: str | None = None
    gather: ScriptGather | None = None
    transfer: ScriptTransfer | None = None
    next: str | None = None
    hangup: Literal[True] | None = None
    on: dict[str, str] | None = None


class AgentScript(Result):
    """
    Script of the built-in agent: a graph of nodes.
    """

    start: str | None = None
    max_turns: int | None = None
    nodes: dict[str, ScriptNode]


class Agent(Result):
    """
    A voice agent; credentials of its stream are never shown.
    """

    id: str
    name: str
    language: str
    voice: str | None
    greeting: str | None
    instructions: str | None
    workspace_id: str | None
    stream_url: str | None
    sample_rate: int | None
    stream_protocol: str | None
    encoding: str | None
    custom_parameters: dict[str, str] | None
    script: AgentScript | None
    created_at: datetime
    updated_at: datetime
