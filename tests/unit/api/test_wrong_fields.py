"""One refusal names every wrong field, whichever check finds it."""

from __future__ import annotations

import pytest

from callcontrol.accounts.keys import SCOPES
from tests.support.api_facts import KEY, NUMBER, NUMBER_ID
from tests.support.api_stage import ApiStage
from tests.support.api_webhooks import SUBSCRIPTION_ID
from tests.unit.api.client import Client

ASSISTANT_KEY, ADMIN_KEY = "va_" + "a" * 43, "vadm_" + "c" * 43


@pytest.fixture(autouse=True)
async def keys(stage: ApiStage) -> None:
    await stage.add_key(ASSISTANT_KEY, "assistant", SCOPES["assistant"])
    await stage.add_key(ADMIN_KEY, "admin", ["admin"])


@pytest.mark.parametrize(
    ("path", "key", "fields"),
    [
        ("/v1/calls?status=x&start_date=q&cursor=z", KEY, {"status", "start_date", "cursor"}),
        ("/v1/calls?cursor=z&end_date=q", KEY, {"cursor", "end_date"}),
        ("/v1/calls?direction=x&start_date=2026-02-01&end_date=2026-01-01", KEY, {"direction", "end_date"}),
        ("/v1/masking/call-logs?status=x&start_date=q", KEY, {"status", "start_date"}),
        ("/v1/wallet/ledger?page=0&start_date=z&kind=zzz", KEY, {"page", "start_date", "kind"}),
        ("/v1/voice-otp/calls?status=x&end_date=z", KEY, {"status", "end_date"}),
        ("/v1/trunk-portal/call-logs?start=x&end_date=y&page=0", KEY, {"start", "end_date", "page"}),
        ("/v1/trunk-portal/call-logs?start=x&start_date=y", KEY, {"start", "start_date"}),
        ("/v1/trunk-portal/call-logs?days=3&start=2026-01-01&page=0", KEY, {"days", "page"}),
        ("/api/v1/calls?status=x&start_date=q", ASSISTANT_KEY, {"status", "start_date"}),
        ("/api/v1/analytics?agent_id=x&start_date=2020-01-01", ASSISTANT_KEY, {"agent_id", "start_date"}),
        ("/integrations/admin/usage?start_date=x&key_id=y", ADMIN_KEY, {"start_date", "key_id"}),
    ],
)
async def test_filters(client: Client, path: str, key: str, fields: set[str]) -> None:
    answer = await client.get(path, key=key)
    assert (answer.status, set(answer.fields)) == (400, fields)


async def test_a_replay(client: Client) -> None:
    path = f"/v1/webhooks/subscriptions/{SUBSCRIPTION_ID}/deliveries/replay"
    answer = await client.post(path, {"status": "x", "since": 7, "until": "z"})
    assert answer.status == 400
    assert all(f"{name}: " in answer.json()["error"] for name in ("status", "since", "until"))


async def test_the_url_of_a_subscription_beside_another_field(client: Client) -> None:
    body = {"url": "ftp://shop.example/", "event_types": ["call.found"]}
    error = (await client.post("/v1/webhooks/subscriptions", body)).json()["error"]
    assert "https://; a server for development takes http:// with TRUNKLINE_ALLOW_PRIVATE" in error


async def test_an_agent_that_is_none(client: Client) -> None:
    body = {"target": "voice_agent", "agent_id": "x"}
    answer = await client.put(f"/v1/phone-numbers/{NUMBER_ID}/inbound", body)
    assert answer.fields == {"agent_id": "must be a UUID", "workspace_id": "is required: a UUID"}


async def test_verbs(client: Client) -> None:
    dialled = {"target": [{"type": "phone", "number": "+919800000001"}], "timeout": 1}
    verbs = [{"verb": "say", "text": "a", "language": "fr"}, {"verb": "sing"}, {"verb": "dial", **dialled}]
    gather = {"verb": "gather", "prompts": [{"verb": "say", "text": "a", "language": "tlh"}]}
    body = {"from": NUMBER, "to": "+919800000001", "verbs": [*verbs, gather]}
    answer = await client.post("/v1/calls", body)
    assert answer.status == 400
    assert set(answer.fields) == {
        "verbs[0].language",
        "verbs[1].verb",
        "verbs[2].timeout",
        "verbs[3].prompts[0].language",
    }


async def test_a_stream_in_verbs(client: Client) -> None:
    stream = {"verb": "stream", "url": "wss://bot.example.com/", "stream_protocol": "x", "stream_track": "y"}
    body = {"from": NUMBER, "to": "+919800000001", "verbs": [stream]}
    answer = await client.post("/v1/calls", body)
    assert set(answer.fields) == {"verbs[0].stream_protocol", "verbs[0].stream_track"}


@pytest.mark.parametrize("retries", [11, 1])
async def test_a_binding(client: Client, retries: int) -> None:
    wrong = {"stream_protocol": "x", "encoding": "y", "sample_rate": 7, "stream_track": "z"}
    body = {"target": "media_stream", "stream_url": "http://bot.example.com/", **wrong}
    answer = await client.put(
        f"/v1/phone-numbers/{NUMBER_ID}/inbound", {**body, "stream_max_retries": retries}
    )
    named = {"stream_url", *wrong} | ({"stream_max_retries"} if retries > 10 else set())
    assert (answer.status, answer.code, set(answer.fields)) == (400, "bind_failed", named)


@pytest.mark.parametrize("beside", [{"annotations": {"zz": 1}}, {"title": ""}], ids=str)
async def test_a_tool(client: Client, beside: dict[str, object]) -> None:
    body = {
        **{"name": "a b", "description": "", "url": "ftp://x", "secret": " ", "headers": {"Host": "x"}},
        **{"input_schema": {"type": "array"}, "output_schema": {"type": 7}, **beside},
    }
    made = await client.post("/integrations/admin/tools", body, key=ADMIN_KEY)
    assert (made.status, {field.partition(".")[0] for field in made.fields}) == (400, set(body))
    del body["name"]
    changed = await client.post("/integrations/admin/tools/find_order", body, key=ADMIN_KEY)
    assert (changed.status, {field.partition(".")[0] for field in changed.fields}) == (400, set(body))
