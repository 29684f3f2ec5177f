"""The endpoints of voice agents, before real services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from callcontrol.models import Principal
from tests.unit.api.client import Client
from tests.unit.api.fakes import ACCOUNT, AGENT_ID, NOWHERE, OTHER_AGENT_ID, Fakes

PATH = "/api/v1/agents"
ASSISTANT_KEY = "va_" + "b" * 43
HEADERS = {"Authorization": f"Bearer {ASSISTANT_KEY}"}


@pytest.fixture(autouse=True)
async def key(fakes: Fakes) -> AsyncIterator[None]:
    fakes.keys.principals[ASSISTANT_KEY] = Principal(ACCOUNT, "key-a", "assistant", frozenset({"assistant"}))
    yield


async def test_an_agent_is_created_and_shown_without_its_secret(client: Client, fakes: Fakes) -> None:
    body = {
        "name": "Asha",
        "language": "hi-IN",
        "voice": "asha",
        "greeting": "Namaste",
        "instructions": "Be brief.",
        "stream_url": "wss://agents.example/asha",
        "sample_rate": 16000,
        "custom_parameters": {"desk": "1"},
        "stream_auth": {"type": "bearer", "token": "t0p-s3cret"},
    }
    answer = await client.post(PATH, body, headers=HEADERS)
    assert answer.status == 201
    shown = {name: value for name, value in body.items() if name != "stream_auth"}
    added = {"id", "workspace_id", "script", "stream_protocol", "encoding", "created_at", "updated_at"}
    assert shown.items() <= answer.data.items()
    assert set(answer.data) == {*shown, *added}
    assert b"s3cret" not in answer.body
    assert fakes.agents.values[0]["stream_auth"] == {"type": "bearer", "token": "t0p-s3cret"}


async def test_an_agent_without_a_server_is_one_too(client: Client) -> None:
    answer = await client.post(PATH, {"name": "Asha"}, headers=HEADERS)
    assert (answer.status, answer.data["language"], answer.data["stream_url"]) == (201, "en-IN", None)


async def test_every_wrong_field_is_named(client: Client) -> None:
    answer = await client.post(PATH, {"voice": 7, "colour": "red"}, headers=HEADERS)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert set(answer.fields) == {"name", "voice", "colour"}
    answer = await client.post(PATH, {"name": "x", "language": "Hindi", "sample_rate": 8000}, headers=HEADERS)
    assert set(answer.fields) == {"language", "sample_rate"}


async def test_agents_are_listed_found_changed_and_deleted(client: Client, fakes: Fakes) -> None:
    listed = await client.get(f"{PATH}?per_page=5", headers=HEADERS)
    assert [agent["id"] for agent in listed.data] == [AGENT_ID]
    assert listed.json()["meta"]["per_page"] == 5
    assert (await client.get(f"{PATH}/{AGENT_ID}", headers=HEADERS)).data["name"] == "Asha"
    body = {"voice": "ravi", "greeting": None, "stream_auth": {"type": "bearer", "token": "t"}}
    changed = await client.patch(f"{PATH}/{AGENT_ID}", body, headers=HEADERS)
    assert (changed.status, changed.data["voice"]) == (200, "ravi")
    assert fakes.agents.values == [body], "what is left out is not changed"
    assert (await client.delete(f"{PATH}/{AGENT_ID}", headers=HEADERS)).status == 204


@pytest.mark.parametrize(
    ("agent_id", "status", "code"),
    [(NOWHERE, 404, "NOT_FOUND"), ("asha", 404, "NOT_FOUND"), (OTHER_AGENT_ID, 403, "FORBIDDEN")],
)
async def test_what_is_not_the_accounts_is_refused(
    client: Client, agent_id: str, status: int, code: str
) -> None:
    requests: tuple[tuple[str, Any], ...] = (("GET", None), ("PATCH", {"voice": "x"}), ("DELETE", None))
    for method, body in requests:
        answer = await client.request(method, f"{PATH}/{agent_id}", json_body=body, headers=HEADERS)
        assert (answer.status, answer.code) == (status, code), method


async def test_keys_of_the_platform_do_not_open_the_assistant(client: Client) -> None:
    assert (await client.get(PATH)).status == 403
    assert (await client.get(PATH, headers={"Authorization": "Bearer va_none"})).status == 401
