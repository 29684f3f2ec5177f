"""
Voice agents of accounts: their settings, and the server or script that speaks for each.

An agent with a ``stream_url`` names a stream and the parameters for its server. For any other agent the
built-in agent speaks, by the agent's script or by the stock one. Numbers and calls name an agent by its
``agent_id``; a change of the agent applies from the next call on.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from callcontrol.agents.script import stock_script, stock_words, usable
from callcontrol.agents.script_parser import read_script, text_errors
from callcontrol.agents.steps.converse import Converse
from callcontrol.calls.plan import Stream
from callcontrol.calls.requests import CreateCall, StreamRequest
from callcontrol.errors import BindFailed, FieldError, ValidationFailed
from callcontrol.models import Binding, VoiceAgent
from callcontrol.models.agents import DEFAULT_LANGUAGE
from callcontrol.numbers.binding import UUID, check_binding, choice_of, stream_fields_of
from media.audio.speech import ESPEAK_VOICES

MAX_SCRIPT_CHARS: Final = 64_000

_TEXTS: Final = {"name": 128, "voice": 128, "greeting": 2000, "instructions": 20_000}
_STREAM_FIELDS: Final = (
    "stream_url",
    "sample_rate",
    "stream_protocol",
    "encoding",
    "custom_parameters",
    "stream_auth",
)
_OWN_FIELDS: Final = ("name", "language", "voice", "greeting", "instructions", "workspace_id", "script")
LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", re.ASCII)


def new_agent(agent_id: str, account_sid: str, values: Mapping[str, Any], now: datetime) -> VoiceAgent:
    """
    An agent with the given fields: its own, and those of its stream.

    Raises:
        ValidationFailed: Names every wrong, missing or unknown field.
    """
    return _with(VoiceAgent(agent_id, account_sid, "", now, now), values)


def changed_agent(agent: VoiceAgent, values: Mapping[str, Any], now: datetime) -> VoiceAgent:
    """
    An agent with the given fields changed; None removes a field.

    Raises:
        ValidationFailed: Names every wrong or unknown field.
    """
    changed = _with(agent, values)
    return changed if changed == agent else replace(changed, updated_at=now)


def agent_step(agent: VoiceAgent, context: Mapping[str, str] | None = None) -> Stream | Converse:
    """
    The step of a call with an agent: a stream to its server, or a conversation with the built-in agent.

    ``context`` is data about the call; it goes to the server as custom parameters, which override the agent's
    own, and fills the variables of the built-in agent's script.

    Raises:
        StreamSetupError: The agent's stream settings are not valid any more.
    """
    if agent.stream is not None:
        return Stream(choice_of(_stream_of(agent, context or {})))
    greeting = agent.greeting or ""
    if agent.script is not None:
        script = read_script(agent.script)
    else:
        script = stock_script(agent.language)
        greeting = greeting or stock_words(agent.language).greeting
    variables = usable({"agent_name": agent.name, **(context or {})})
    return Converse(agent.agent_id, script, agent.language, greeting, variables)


def with_agent(request: CreateCall, agent: VoiceAgent) -> CreateCall:
    """
    Replace the agent of a request with the agent's stream or step.

    The request's custom parameters become the context of the call.
    """
    given = request.stream_fields.get("custom_parameters")
    context = dict(given) if isinstance(given, Mapping) else {}
    if agent.stream is None:
        return replace(request, agent_id=None, step=agent_step(agent, context))
    binding = _stream_of(agent, context)
    return replace(
        request, agent_id=None, stream=StreamRequest(binding.stream_url or "", stream_fields_of(binding))
    )


def _stream_of(agent: VoiceAgent, context: Mapping[str, str]) -> Binding:
    """The stream of an agent's call; the context of the call overrides the agent's own parameters."""
    assert agent.stream is not None
    own = agent.stream.custom_parameters or {}
    return replace(agent.stream, custom_parameters={"agent_id": agent.agent_id, **own, **context})


def _with(agent: VoiceAgent, values: Mapping[str, Any]) -> VoiceAgent:
    known = {*_OWN_FIELDS, *_STREAM_FIELDS}
    errors = [FieldError(name, "is not a field") for name in values if name not in known]
    changed = replace(agent, **{name: values[name] for name in values if name in _OWN_FIELDS})
    if changed.language is None:
        changed = replace(changed, language=DEFAULT_LANGUAGE)
    if isinstance(changed.workspace_id, str):
        changed = replace(changed, workspace_id=changed.workspace_id.lower())
    errors += _own_errors(changed)
    errors += _script_errors(changed.script)
    stream: Binding | None = None
    try:
        stream = _stream(agent.stream, {name: values[name] for name in values if name in _STREAM_FIELDS})
    except BindFailed as refusal:
        errors += refusal.errors
    else:
        named = {error.field for error in errors}
        errors += [error for error in _target_errors(changed, stream) if error.field not in named]
    if errors:
        raise ValidationFailed(errors)
    return replace(changed, stream=stream)


def _script_errors(script: object) -> list[FieldError]:
    if script is None:
        return []
    try:
        read_script(script)
    except ValidationFailed as refusal:
        return list(refusal.errors)
    if len(json.dumps(script, ensure_ascii=False)) > MAX_SCRIPT_CHARS:
        return [FieldError("script", f"must have at most {MAX_SCRIPT_CHARS} characters")]
    return []


def _target_errors(agent: VoiceAgent, stream: Binding | None) -> list[FieldError]:
    """Settings that do not fit the agent's server or, without one, the built-in agent."""
    if stream is None:
        return built_in_errors({"language": agent.language, "greeting": agent.greeting})
    if agent.script is None:
        return []
    return [FieldError("script", "is for agents without stream_url: take one of the two out with null")]


def built_in_errors(values: Mapping[str, Any]) -> list[FieldError]:
    """
    Given fields that an agent without a ``stream_url`` cannot have.

    A server of the customer may speak any language and any greeting.
    """
    errors = [
        FieldError(name, "needs a stream_url") for name in _STREAM_FIELDS if values.get(name) is not None
    ]
    greeting, language = values.get("greeting"), values.get("language")
    if isinstance(greeting, str):
        errors += text_errors("greeting", greeting)
    named = LANGUAGE.fullmatch(language) if isinstance(language, str) else None
    if named is not None and named[0].partition("-")[0] not in ESPEAK_VOICES:
        spoken = ", ".join(sorted(ESPEAK_VOICES))
        errors.append(FieldError("language", f"needs a stream_url; the built-in agent speaks {spoken}"))
    return errors


def field_errors(values: Mapping[str, Any]) -> list[FieldError]:
    """Errors that some fields of an agent have whatever the others are."""
    own = {name: value for name, value in values.items() if name in _OWN_FIELDS}
    agent = replace(VoiceAgent("", "", "-", datetime.min, datetime.min), **own)
    errors = [*_own_errors(agent), *_script_errors(agent.script)]
    try:
        check_binding(
            Binding("media_stream", **{name: values[name] for name in _STREAM_FIELDS if name in values})
        )
    except BindFailed as refusal:
        # A stream lacks its URL here when that is not among the fields.
        errors += [error for error in refusal.errors if error.field.partition(".")[0] in values]
    return errors


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
    errors = built_in_errors(values)
    if errors:
        raise BindFailed(errors)
    return None
