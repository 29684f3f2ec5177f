"""Checks between the fields of a call request that define its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.schemas.streams import StreamFields
from callcontrol.errors import FieldError

__all__ = ["stray_stream_fields", "ways_to_go"]


def ways_to_go(given: Mapping[str, Any], *ways: str) -> list[FieldError]:
    """Require exactly one of the fields that define the call's target, or an application."""
    said = [name for name in ways if given.get(name) is not None]
    errors = [FieldError(name, f"cannot be combined with {said[0]}") for name in said[1:]]
    if not said and given.get("app_sid") is None:
        message = f"is required, unless {_either(*ways[1:], 'app_sid')} says what to do with the call"
        errors.append(FieldError(ways[0], message))
    if given.get("webhook_method") is not None and given.get("webhook_url") is None:
        errors.append(FieldError("webhook_method", "needs a webhook_url"))
    return errors


def stray_stream_fields(given: Mapping[str, Any]) -> list[FieldError]:
    """
    Refuse stream fields of a call without a stream: accepted, they would silently have no effect.

    An agent defines its own stream; a call may only add parameters. The stream of an application is unknown
    here, so its fields are not checked.
    """
    others = [name for name in ("webhook_url", "agent_id", "verbs") if given.get(name) is not None]
    if given.get("stream_url") is not None or not others:
        return []
    return [
        FieldError(name, f"needs a stream_url; it cannot be combined with {others[0]}")
        for name in StreamFields.model_fields
        if given.get(name) is not None and not (others[0] == "agent_id" and name == "custom_parameters")
    ]


def _either(*names: str) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]])
