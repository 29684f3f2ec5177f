"""Voice agents of accounts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from callcontrol.models.numbers import Binding

DEFAULT_LANGUAGE: Final = "en-IN"


@dataclass(frozen=True, slots=True)
class VoiceAgent:
    """
    An agent; ``stream`` is the binding of calls to its server, None when it has none.

    ``script`` is the script of the built-in agent, as ``callcontrol.agents.script_parser`` reads it.
    ``workspace_id`` is the customer's own grouping; if it is set, bindings have to name the same one.
    """

    agent_id: str
    account_sid: str
    name: str
    created_at: datetime
    updated_at: datetime
    language: str = DEFAULT_LANGUAGE
    voice: str | None = None
    greeting: str | None = None
    instructions: str | None = None
    workspace_id: str | None = None
    stream: Binding | None = None
    script: Mapping[str, Any] | None = None
