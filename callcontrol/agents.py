"""
Voice agents of accounts: who they are, and how the server is reached that speaks for each.

An agent is a name for a stream and for what its server needs to know. Numbers and calls name it by its
``agent_id``; what it is changed to holds from the next call on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol

from callcontrol.errors import BindFailed, FieldError, ValidationFailed
from callcontrol.models import Binding
from callcontrol.numbers import UUID, check_binding, stream_fields_of
from callcontrol.requests import CreateCall, StreamRequest

DEFAULT_LANGUAGE: Final = "en-IN"

_TEXTS: Final = {"name": 128, "voice": 128, "greeting": 2000, "instructions": 20_000}
_STREAM_FIELDS: Final = (
    "stream_url",
    "sample_rate",
    "stream_protocol",
    "encoding",
    "custom_parameters",
    "stream_auth",
)
_OWN_FIELDS: Final = ("name", "language", "voice", "greeting", "instructions", "workspace_id")
LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class VoiceAgent:
    """
    An agent; ``stream`` is the binding of calls to its server, None while that has no address.

    ``workspace_id`` is the customer's own grouping; where it is set, bindings have to name the same one.
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

    def wiring(self, binding: Binding) -> Binding | None:
        """What calls do whose binding names this agent, None when its server has no address."""
        if self.stream is None:
            return None
        return replace(
            self.stream,
            custom_parameters={"agent_id": self.agent_id, **(self.stream.custom_parameters or {})},
            record=binding.record,
            status_webhook_url=binding.status_webhook_url,
        )


class Agents(Protocol):
    """The directory, as far as it knows agents."""

    def agent(self, agent_id: str) -> VoiceAgent | None:
        """An agent by its identifier, of whichever account."""


def new_agent(agent_id: str, account_sid: str, values: Mapping[str, Any], now: datetime) -> VoiceAgent:
    """
    An agent from the fields that are given: its own, and those of its stream.

    Raises:
        ValidationFailed: With every wrong, missing or unknown field.
    """
    return _with(VoiceAgent(agent_id, account_sid, "", now, now), values)


def changed_agent(agent: VoiceAgent, values: Mapping[str, Any], now: datetime) -> VoiceAgent:
    """
    An agent with the fields that are given changed; a field that is None is taken out.

    Raises:
        ValidationFailed: With every wrong or unknown field.
    """
    return replace(_with(agent, values), updated_at=now)


def agent_errors(account_sid: str, binding: Binding, agents: Agents) -> list[FieldError]:
    """Why calls cannot be sent to the agent that a binding names."""
    agent = agents.agent(binding.agent_id or "")
    if agent is None or agent.account_sid != account_sid:
        return [FieldError("agent_id", "names no agent of the account")]
    errors: list[FieldError] = []
    if agent.stream is None:
        errors.append(FieldError("agent_id", "names an agent without stream_url; give it one first"))
    if agent.workspace_id is not None and agent.workspace_id != binding.workspace_id:
        errors.append(FieldError("workspace_id", "is not that of the agent"))
    return errors


def with_agent(request: CreateCall, agent: VoiceAgent) -> CreateCall:
    """
    A request that names an agent as one for the agent's stream; parameters of the request go before its own.

    Raises:
        ValidationFailed: The agent's server has no address.
    """
    wiring = agent.wiring(Binding("voice_agent"))
    if wiring is None:
        raise ValidationFailed.of("agent_id", "names an agent without stream_url; give it one first")
    given = request.stream_fields.get("custom_parameters")
    parameters = {**(wiring.custom_parameters or {}), **(given if isinstance(given, Mapping) else {})}
    fields = {**stream_fields_of(wiring), "custom_parameters": parameters}
    return replace(request, agent_id=None, stream=StreamRequest(wiring.stream_url or "", fields))


def _with(agent: VoiceAgent, values: Mapping[str, Any]) -> VoiceAgent:
    known = {*_OWN_FIELDS, *_STREAM_FIELDS}
    errors = [FieldError(name, "is not a field") for name in values if name not in known]
    changed = replace(agent, **{name: values[name] for name in values if name in _OWN_FIELDS})
    if changed.language is None:
        changed = replace(changed, language=DEFAULT_LANGUAGE)
    if isinstance(changed.workspace_id, str):
        changed = replace(changed, workspace_id=changed.workspace_id.lower())
    errors += _own_errors(changed)
    try:
        stream = _stream(agent.stream, {name: values[name] for name in values if name in _STREAM_FIELDS})
    except BindFailed as refusal:
        errors += refusal.errors
    if errors:
        raise ValidationFailed(errors)
    return replace(changed, stream=stream)


def _own_errors(agent: VoiceAgent) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, limit in _TEXTS.items():
        text = getattr(agent, name)
        least = 1 if name == "name" else 0
        if not isinstance(text, str) and (text is not None or least):
            errors.append(FieldError(name, "must be a string"))
        elif text is not None and not least <= len(text.strip()) <= len(text) <= limit:
            errors.append(FieldError(name, f"must have {least} to {limit} characters"))
    if not isinstance(agent.language, str) or LANGUAGE.fullmatch(agent.language) is None:
        errors.append(FieldError("language", "must be a language such as en-IN or hi"))
    if agent.workspace_id is not None and not UUID.fullmatch(str(agent.workspace_id)):
        errors.append(FieldError("workspace_id", "must be a UUID"))
    return errors


def _stream(former: Binding | None, values: Mapping[str, Any]) -> Binding | None:
    if not values:
        return former
    stream = replace(former or Binding("media_stream"), **values)
    if stream.stream_url is not None:
        return check_binding(stream)
    left = [name for name in _STREAM_FIELDS if values.get(name) is not None]
    if left:
        raise BindFailed([FieldError(name, "needs a stream_url") for name in left])
    return None
