"""The account of a key and its keys over HTTP."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.database.tables.system import idempotency_keys
from tests.support.api_facts import (
    ACCOUNT,
    MESSAGING_KEY,
    NOWHERE,
    NUMBER,
    OTHER_ACCOUNT,
    READER_KEY,
    TOOLS_KEY,
)
from tests.support.api_stage import ApiStage
from tests.unit.api.client import Client

KEYS = "/v1/keys"
SECRET = "/v1/account/webhook-secret/rotate"
ALL_KEY = "vk_" + "a" * 43
NARROW_KEY = "vk_" + "n" * 43
_BODY = {"service": "platform", "name": "CI", "scopes": ["calls.read"]}


@pytest.fixture(autouse=True)
async def _keys(stage: ApiStage) -> None:
    await stage.add_key(ALL_KEY, "all", ["*"])
    await stage.add_key(NARROW_KEY, "all", ["calls.read", "assistant", "keys.write"])


async def made(client: Client, key: str = ALL_KEY, **changes: Any) -> dict[str, Any]:
    """A new key, as it is shown once."""
    answer = await client.post(KEYS, {**_BODY, **changes}, key=key)
    assert answer.status == 201, answer
    shown = answer.data
    assert isinstance(shown, dict)
    return shown


async def test_a_key_is_told_its_account(client: Client, stage: ApiStage) -> None:
    await stage.storage.accounts.update(ACCOUNT, {"requests_per_minute": 5000})
    shown = (await client.get("/v1/account", key=ALL_KEY)).data
    assert (shown["account_sid"], shown["name"], shown["kyc_complete"]) == (ACCOUNT, "Test", True)
    assert (shown["balance"], shown["available"], shown["currency"]) == (1000.5, 997.5, "INR")
    assert shown["limits"] == {
        "max_calls": 100,
        "max_cps": 1000,
        "requests_per_minute": 5000,
        "assistant_requests_per_minute": None,
    }
    assert (shown["key"]["id"], shown["key"]["scopes"], shown["key"]["current"]) == (
        f"key-{ALL_KEY}",
        ["*"],
        True,
    )
    assert shown["key"]["prefix"] == "vk_aaaaa" and shown["environment"] == "live"


@pytest.mark.parametrize(
    ("key", "service", "balance"),
    [(READER_KEY, "platform", 1000.5), (MESSAGING_KEY, "messaging", None), (TOOLS_KEY, "tools", None)],
)
async def test_a_key_of_any_service_is_told_and_money_is_shown_to_those_that_may_read_it(
    client: Client, key: str, service: str, balance: float | None
) -> None:
    shown = (await client.get("/v1/account", key=key)).data
    assert (shown["account_sid"], shown["key"]["service"], shown["balance"]) == (ACCOUNT, service, balance)


async def test_a_key_without_the_scopes_manages_none(client: Client) -> None:
    for answer, scope in (
        (await client.get(KEYS, key=READER_KEY), "keys.read"),
        (await client.post(KEYS, _BODY, key=READER_KEY), "keys.write"),
        (await client.delete(f"{KEYS}/{NOWHERE}", key=TOOLS_KEY), "keys.write"),
        (await client.get(KEYS, key=NARROW_KEY), "keys.read"),
        (await client.post(SECRET, {}, key=READER_KEY), "webhooks.write"),
    ):
        assert (answer.status, answer.code) == (403, "FORBIDDEN")
        assert scope in answer.json()["error"]["message"]


async def test_a_key_is_made_listed_and_revoked_at_once(client: Client) -> None:
    key = await made(client)
    assert (await client.get("/v1/calls", key=key["key"])).status == 200
    listed = await client.get(f"{KEYS}?per_page=1", key=ALL_KEY)
    assert listed.data == [{name: value for name, value in key.items() if name != "key"}], "newest first"
    assert listed.json()["meta"]["total"] == 7, "with those of the account, and without the revoked one"
    assert key["key"].encode() not in listed.body
    for _ in range(2):
        assert (await client.delete(f"{KEYS}/{key['id']}", key=ALL_KEY)).status == 204
    assert (await client.get("/v1/calls", key=key["key"])).status == 401
    shown = (await client.get(KEYS, key=ALL_KEY)).data
    assert key["id"] not in [item["id"] for item in shown]


async def test_a_key_that_replaces_itself(client: Client) -> None:
    first = await made(client, scopes=["calls.read", "keys.write"])
    answer = await client.post(f"{KEYS}/{first['id']}/rotate", {"overlap_seconds": 60}, key=first["key"])
    second = answer.data
    assert (answer.status, second["scopes"], second["name"]) == (201, first["scopes"], "CI")
    assert (second["replaces"]["id"], second["replaces"]["current"]) == (first["id"], True)
    for key in (first["key"], second["key"]):
        assert (await client.get("/v1/calls", key=key)).status == 200
    path = f"{KEYS}/{second['id']}/rotate"
    third = (await client.post(path, {"overlap_seconds": 0}, key=second["key"])).data
    assert (await client.get("/v1/calls", key=second["key"])).status == 401
    assert (await client.get("/v1/calls", key=third["key"])).status == 200
    # A key may end itself.
    assert (await client.delete(f"{KEYS}/{third['id']}", key=third["key"])).status == 204
    assert (await client.get("/v1/calls", key=third["key"])).status == 401


async def test_a_key_gives_ends_and_replaces_nothing_beyond_its_own_rights(client: Client) -> None:
    more = await made(client, scopes=["calls.read", "calls.write"])
    other = await made(client, service="messaging", scopes=["messages.send"])
    for key in (more, other):
        for answer in (
            await client.post(f"{KEYS}/{key['id']}/rotate", {}, key=NARROW_KEY),
            await client.delete(f"{KEYS}/{key['id']}", key=NARROW_KEY),
            await client.post(
                KEYS, {**_BODY, "service": key["service"], "scopes": key["scopes"]}, key=NARROW_KEY
            ),
        ):
            assert (answer.status, answer.code) == (403, "FORBIDDEN")
            assert key["scopes"][-1] in answer.json()["error"]["message"]
    answer = await client.post(KEYS, {"service": "platform", "name": "defaults"}, key=NARROW_KEY)
    assert answer.status == 403, "the scopes of a key that names none are checked as well"
    assert (await client.get("/v1/calls", key=more["key"])).status == 200
    await made(client, NARROW_KEY)
    await made(client, NARROW_KEY, service="assistant", scopes=["assistant"])


async def test_a_key_of_tools_names_tools_that_there_are(client: Client) -> None:
    body = {"service": "tools", "name": "desk", "scopes": ["tool:place_call", "tool:no_such_tool"]}
    refused = await client.post(KEYS, body, key=ALL_KEY)
    assert (refused.status, refused.fields) == (
        400,
        {"scopes": "tool:no_such_tool: the account has no such tool"},
    )
    assert (await client.post(KEYS, body, key=NARROW_KEY)).status == 403
    assert (await made(client, service="tools", scopes=["tool:place_call"]))["scopes"] == [
        "tools",
        "tool:place_call",
    ]


async def test_a_key_of_the_sandbox_is_the_assistants(client: Client) -> None:
    key = await made(client, service="assistant", scopes=["assistant"], environment="sandbox")
    assert key["environment"] == "sandbox"
    assert (await client.get("/v1/account", key=key["key"])).data["environment"] == "sandbox"
    refused = await client.post(KEYS, {**_BODY, "environment": "sandbox"}, key=ALL_KEY)
    assert (refused.status, set(refused.fields)) == (400, {"environment"})


async def test_a_scope_and_an_environment_are_named_beside_a_field_of_a_wrong_form(client: Client) -> None:
    body = {"service": "messaging", "name": "", "scopes": ["calls.read"], "environment": "sandbox"}
    refused = await client.post(KEYS, body, key=ALL_KEY)
    assert (refused.status, set(refused.fields)) == (400, {"name", "scopes", "environment"})
    refused = await client.post(KEYS, {**body, "service": "x"}, key=ALL_KEY)
    assert set(refused.fields) == {"service", "name"}


async def test_keys_of_other_accounts_do_not_exist(client: Client, stage: ApiStage) -> None:
    record, _ = await stage.storage.keys.issue(OTHER_ACCOUNT, "platform")
    for answer in (
        await client.post(f"{KEYS}/{record.key_id}/rotate", {}, key=ALL_KEY),
        await client.delete(f"{KEYS}/{record.key_id}", key=ALL_KEY),
    ):
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


async def test_a_repeated_request_shows_the_key_again_and_the_row_does_not(
    client: Client, stage: ApiStage
) -> None:
    headers = {"Idempotency-Key": "key-1"}
    first = await client.post(KEYS, _BODY, key=ALL_KEY, headers=headers)
    again = await client.post(KEYS, _BODY, key=ALL_KEY, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true" and again.body == first.body
    rows = await stage.storage.database.read(
        lambda connection: connection.execute(sa.select(idempotency_keys.c.body)).scalars().all()
    )
    assert len(rows) == 1 and bytes(rows[0]).startswith(b"sealed:")
    assert first.data["key"].encode() not in bytes(rows[0])
    # Another key of the account, which may ask the same, is not shown what this one made.
    refused = await client.post(KEYS, _BODY, key=NARROW_KEY, headers=headers)
    assert (refused.status, refused.code) == (409, "IDEMPOTENCY_CONFLICT")


async def test_the_webhook_secret_is_rotated_and_shown_once(client: Client, stage: ApiStage) -> None:
    first = (await client.post(SECRET, {"overlap_seconds": 0}, key=ALL_KEY)).data
    assert first["former_secret_until"] is None
    answer = await client.post(SECRET, {"overlap_seconds": 60}, key=ALL_KEY)
    secret = answer.data["webhook_secret"]
    assert answer.status == 200 and secret.startswith("whsec_") and answer.data["former_secret_until"]
    kept = await stage.storage.accounts.get(ACCOUNT)
    both = (secret, first["webhook_secret"])
    assert (kept.webhook_secret, kept.former_webhook_secret) == both
    assert stage.storage.secrets_of(ACCOUNT) == both, "known at once"
    assert secret.encode() not in (await client.get("/v1/account", key=ALL_KEY)).body
    refused = await client.post(SECRET, {"overlap_seconds": -1}, key=ALL_KEY)
    assert (refused.status, set(refused.fields)) == (400, {"overlap_seconds"})


async def test_a_rotation_that_chooses_nothing_needs_no_body(client: Client) -> None:
    answer = await client.post(SECRET, key=ALL_KEY)
    assert (answer.status, answer.data["webhook_secret"][:6]) == (200, "whsec_")


async def test_changes_are_logged_by_identifiers(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="callcontrol.accounts")
    first = await made(client)
    second = (await client.post(f"{KEYS}/{first['id']}/rotate", {}, key=ALL_KEY)).data
    await client.delete(f"{KEYS}/{second['id']}", key=ALL_KEY)
    secret = (await client.post(SECRET, {}, key=ALL_KEY)).data["webhook_secret"]
    lines = [record for record in caplog.records if record.name.startswith("callcontrol.accounts")]
    by = f"key-{ALL_KEY}"
    texts = [record.getMessage() for record in lines]
    assert [by in text for text in texts] == [True] * 4
    assert first["id"] in texts[0] and first["id"] in texts[1] and second["id"] in texts[1]
    assert "revoked" in texts[2] and second["id"] in texts[2]
    assert [record.__dict__["account_sid"] for record in lines] == [ACCOUNT] * 4
    for shown in (first["key"], second["key"], secret):
        assert shown not in caplog.text


async def test_a_key_of_all_services_is_taken_however_a_service_takes_keys(client: Client) -> None:
    plain = await client.get("/api/v1/contacts", key=None, headers={"X-API-Key": ALL_KEY})
    assert plain.status == 200
    basic = base64.b64encode(f"{ACCOUNT}:{ALL_KEY}".encode()).decode()
    path = f"/2010-04-01/Accounts/{ACCOUNT}/Calls/{NOWHERE}.json"
    answer = await client.get(path, key=None, headers={"Authorization": f"Basic {basic}"})
    assert answer.status == 404
    for path in ("/v1/webhooks/subscriptions", "/api/v1/agents", "/integrations/v1/tools"):
        assert (await client.get(path, key=ALL_KEY)).status == 200, path
    call = {"from": NUMBER, "to": "+919800000001", "verbs": [{"verb": "hangup"}]}
    assert (await client.post("/v1/calls", call, key=ALL_KEY)).status == 201
    assert (await client.post("/v1/calls", call, key=NARROW_KEY)).status == 403, "a scope is needed as ever"


async def test_requests_to_the_assistant_count_by_account_whatever_the_key(client: Client) -> None:
    policy = (await client.get("/api/v1/agents", key=ALL_KEY)).headers["RateLimit-Policy"]
    assert policy == '"account";q=100;w=60'
    policy = (await client.get("/v1/calls", key=ALL_KEY)).headers["RateLimit-Policy"]
    assert policy == '"key";q=20;w=60'
