"""Stored keys of vendors of speech models; the specification has no endpoint for them."""

from __future__ import annotations

from itertools import count

from callcontrol.model_keys import aio
from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, limited
from tests.contract.stage import Answer, Stage

_KEYS = "/v1/model-keys"
_SECRET = "sk-proj-secret"
_NUMBERS = count(1)


async def _name(_: Stage) -> str:
    return f"key-{next(_NUMBERS)}"


async def _stored(stage: Stage) -> str:
    """The id of a fresh key."""
    body = {"name": await _name(stage), "provider": "openai", "api_key": _SECRET}
    made = await stage.data("POST", _KEYS, body=body)
    return str(made["key_id"])


async def _is_made(_: Stage, answer: Answer) -> None:
    assert set(answer.data) == {"key_id", "name", "provider", "created_at"}
    assert _SECRET.encode() not in answer.raw


async def _is_its_own(stage: Stage, answer: Answer) -> None:
    listed = await stage.data("GET", _KEYS)
    assert answer.data["key_id"] not in [key["key_id"] for key in listed]


async def _is_listed(_: Stage, answer: Answer) -> None:
    assert answer.data and _SECRET.encode() not in answer.raw


async def _lists_none(_: Stage, answer: Answer) -> None:
    assert answer.data == []


async def _taken(stage: Stage) -> str:
    """The name of a key that there is."""
    body = {"name": await _name(stage), "provider": "gemini", "api_key": _SECRET}
    return str((await stage.data("POST", _KEYS, body=body))["name"])


CASES = (
    *row(
        f"POST {_KEYS}",
        ok(201, body={"name": _name, "provider": "openai", "api_key": _SECRET}, then=_is_made),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"name": "my key", "provider": "acme", "colour": "red"},
            fields=("name", "provider", "api_key", "colour"),
        ),
        refused(409, "CONFLICT", body={"name": _taken, "provider": "openai", "api_key": _SECRET}),
        refused(
            409,
            "CONFLICT",
            name="too many",
            body={"name": _name, "provider": "openai", "api_key": _SECRET},
            during=limited(aio, "MAX_MODEL_KEYS"),
        ),
        unseen(201, body={"name": _name, "provider": "openai", "api_key": _SECRET}, then=_is_its_own),
    ),
    *row(
        f"GET {_KEYS}",
        ok(before=(_stored,), then=_is_listed),
        unseen(by="buyer", before=(_stored,), then=_lists_none),
    ),
    *row(
        f"DELETE {_KEYS}/{{key_id}}",
        ok(204, path={"key_id": _stored}),
        foreign(403, "FORBIDDEN", path={"key_id": _stored}),
        refused(404, "NOT_FOUND", path={"key_id": NOWHERE}),
    ),
)
