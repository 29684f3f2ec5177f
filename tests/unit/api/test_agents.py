"""The endpoints of voice agents."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from tests.support.api_facts import ACCOUNT, NOWHERE, OTHER_ACCOUNT
from tests.support.api_stage import ApiStage
from tests.unit.api.client import Client

PATH = "/api/v1/agents"
ASSISTANT_KEY = "va_" + "b" * 43
HEADERS = {"Authorization": f"Bearer {ASSISTANT_KEY}"}


@pytest.fixture(autouse=True)
async def key(stage: ApiStage) -> None:
    await stage.add_key(ASSISTANT_KEY, "assistant", ["assistant"])


async def test_an_agent_is_created_and_shown_without_its_secret(client: Client, storage: Storage) -> None:
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
    kept = await storage.agents.get(ACCOUNT, answer.data["id"])
    assert kept.stream is not None and kept.stream.stream_auth == body["stream_auth"]


async def test_an_agent_without_a_server_is_one_too(client: Client) -> None:
    answer = await client.post(PATH, {"name": "Asha"}, headers=HEADERS)
    assert (answer.status, answer.data["language"], answer.data["stream_url"]) == (201, "en-IN", None)


async def test_every_wrong_field_is_named(client: Client) -> None:
    answer = await client.post(PATH, {"voice": 7, "colour": "red"}, headers=HEADERS)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert set(answer.fields) == {"name", "voice", "colour"}
    answer = await client.post(PATH, {"name": "x", "language": "Hindi", "sample_rate": 8000}, headers=HEADERS)
    assert set(answer.fields) == {"language", "sample_rate"}


@pytest.mark.parametrize(
    "body",
    [
        {"voice": "x" * 129, "workspace_id": "x", "stream_url": "http://x", "sample_rate": 9},
        {"voice": "x" * 129, "language": "fr", "sample_rate": 8000, "greeting": "{{name"},
        {"language": "fr", "workspace_id": "x"},
        {"instructions": 7, "script": {"nodes": {"start": {"say": "Hi", "next": "there"}}}},
        {"stream_url": 7, "workspace_id": "x"},
    ],
)
async def test_wrong_fields_of_every_kind_are_named_at_once(client: Client, body: dict[str, Any]) -> None:
    answer = await client.post(PATH, {"name": "Asha", **body}, headers=HEADERS)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert {field.split(".")[0] for field in answer.fields} == set(body)


async def test_a_stream_setting_may_be_changed_by_itself(client: Client, storage: Storage) -> None:
    agent = await storage.agents.create(ACCOUNT, {"name": "Asha", "stream_url": "wss://a.example/"})
    body = {"language": "fr", "sample_rate": 16000}
    changed = await client.patch(f"{PATH}/{agent.agent_id}", body, headers=HEADERS)
    assert (changed.status, changed.data["sample_rate"]) == (200, 16000)
    answer = await client.patch(f"{PATH}/{agent.agent_id}", {**body, "voice": 7}, headers=HEADERS)
    assert set(answer.fields) == {"voice"}


async def test_agents_are_listed_found_changed_and_deleted(client: Client, storage: Storage) -> None:
    values = {"name": "Asha", "voice": "asha", "greeting": "Namaste", "stream_url": "wss://a.example/"}
    agent_id = (await storage.agents.create(ACCOUNT, values)).agent_id
    listed = await client.get(f"{PATH}?per_page=5", headers=HEADERS)
    assert [agent["id"] for agent in listed.data] == [agent_id]
    assert listed.json()["meta"]["per_page"] == 5
    assert (await client.get(f"{PATH}/{agent_id}", headers=HEADERS)).data["name"] == "Asha"
    body = {"voice": "ravi", "greeting": None, "stream_auth": {"type": "bearer", "token": "t"}}
    changed = await client.patch(f"{PATH}/{agent_id}", body, headers=HEADERS)
    assert (changed.status, changed.data["voice"]) == (200, "ravi")
    assert (changed.data["greeting"], changed.data["name"]) == (None, "Asha"), "omitted fields stay"
    kept = await storage.agents.get(ACCOUNT, agent_id)
    assert kept.stream is not None and kept.stream.stream_auth == body["stream_auth"]
    assert (await client.delete(f"{PATH}/{agent_id}", headers=HEADERS)).status == 204


async def test_what_is_not_the_accounts_is_refused(client: Client, storage: Storage) -> None:
    others = await storage.agents.create(OTHER_ACCOUNT, {"name": "Ravi"})
    requests: tuple[tuple[str, Any], ...] = (("GET", None), ("PATCH", {"voice": "x"}), ("DELETE", None))
    for method, body in requests:
        for agent_id, refusal in (
            (NOWHERE, (404, "NOT_FOUND")),
            ("asha", (404, "NOT_FOUND")),
            (others.agent_id, (403, "FORBIDDEN")),
        ):
            answer = await client.request(method, f"{PATH}/{agent_id}", json_body=body, headers=HEADERS)
            assert (answer.status, answer.code) == refusal, (method, agent_id)


async def test_keys_of_the_platform_do_not_open_the_assistant(client: Client) -> None:
    assert (await client.get(PATH)).status == 403
    assert (await client.get(PATH, headers={"Authorization": "Bearer va_none"})).status == 401
