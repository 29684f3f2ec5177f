"""The endpoints of tools, before services that answer what tests say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.e164 import MAX_NUMBER_CHARS, NOT_A_NUMBER
from callcontrol.tools.aio import service
from callcontrol.tools.store import usage
from callcontrol.tools.usage import Usage, UsageFilter, UsageKey
from tests.support.api_facts import ACCOUNT, NOWHERE
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

APP_KEY, ADMIN_KEY = "vt_" + "b" * 43, "vadm_" + "c" * 43
APP = {"Authorization": f"Bearer {APP_KEY}"}
ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}
TOOLS = "/integrations/v1/tools"
MANAGED = "/integrations/admin/tools"
FIND = {"name": "find_order", "description": "Finds an order.", "url": "https://shop.example.com/find"}
CALL = {"to": "+919800000001", "message": "Your parcel is here."}


@pytest.fixture(autouse=True)
async def keys(stage: ApiStage) -> None:
    await stage.add_key(APP_KEY, "tools", ["tools"])
    await stage.add_key(ADMIN_KEY, "admin", ["admin"])


async def test_tools_are_listed_with_what_models_need(client: Client) -> None:
    answer = await client.get(TOOLS, headers=APP)
    placed = next(tool for tool in answer.data if tool["name"] == "place_call")
    assert placed["annotations"] == {
        "read_only": False,
        "destructive": False,
        "idempotent": False,
        "open_world": True,
    }
    assert placed["kind"] == "builtin" and placed["input_schema"]["required"] == ["to"]


async def test_a_tool_is_used_once_for_each_idempotency_key(client: Client, services: Services) -> None:
    uses = asked(services.tools.service, "execute")
    headers = {**APP, "Idempotency-Key": "use-1"}
    body = {"arguments": CALL}
    answers = [await client.post(f"{TOOLS}/place_call/execute", body, headers=headers) for _ in range(2)]
    first, second = (answer.data for answer in answers)
    assert first == second
    assert first.keys() == {"tool", "result", "duration_ms"} and first["tool"] == "place_call"
    assert (await services.calls.get_call(ACCOUNT, first["result"]["call_sid"])).to == CALL["to"]
    assert [(name, arguments) for _, name, arguments in uses] == [("place_call", CALL)]


async def test_a_use_without_arguments_has_none(client: Client, services: Services) -> None:
    uses = asked(services.tools.service, "execute")
    assert (await client.post(f"{TOOLS}/wallet_balance/execute", {}, headers=APP)).status == 200
    assert [(name, arguments) for _, name, arguments in uses] == [("wallet_balance", {})]


def no_such_host(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    raise OSError(f"{host} does not resolve")


async def lose_the_server(stage: ApiStage) -> None:
    """The account's own tool is on a host that is gone."""
    await stage.services.tools.registry.register(ACCOUNT, FIND)
    stage.storage.destinations._lookup = no_such_host


async def nothing(stage: ApiStage) -> None:
    """Leave everything as it is."""


@pytest.mark.parametrize(
    ("before", "limit_s", "tool", "arguments", "status", "code"),
    [
        (lose_the_server, 30.0, "find_order", {}, 502, "TOOL_FAILED"),
        (nothing, 0.0, "wallet_balance", {}, 504, "TOOL_TIMED_OUT"),
        (ApiStage.empty_wallet, 30.0, "place_call", CALL, 402, "INSUFFICIENT_BALANCE"),
    ],
    ids=["failed", "timed-out", "too-dear"],
)
async def test_failures_have_codes(
    client: Client,
    stage: ApiStage,
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[ApiStage], Awaitable[None]],
    limit_s: float,
    tool: str,
    arguments: dict[str, Any],
    status: int,
    code: str,
) -> None:
    await before(stage)
    monkeypatch.setattr(service, "_BUILTIN_TIMEOUT_S", limit_s)
    answer = await client.post(f"{TOOLS}/{tool}/execute", {"arguments": arguments}, headers=APP)
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize("body", [{"arguments": []}, {"arguments": None}, {"args": {}}], ids=str)
async def test_bodies_of_another_shape_are_refused(client: Client, services: Services, body: Any) -> None:
    uses = asked(services.tools.service, "execute")
    assert (await client.post(f"{TOOLS}/place_call/execute", body, headers=APP)).status == 400
    assert uses == []


@pytest.mark.parametrize(
    ("tool", "arguments", "fields"),
    [
        (
            "place_call",
            {"to": "x", "message": ""},
            {"to": NOT_A_NUMBER, "message": "must have at least 1 character"},
        ),
        ("send_otp", {"to": "112", "length": 99}, {"to": NOT_A_NUMBER, "length": "must be at most 8"}),
        ("place_call", {**CALL, "from": "x"}, {"from": NOT_A_NUMBER}),
        ("wallet_balance", {"to": "x"}, {"to": "is not a known argument"}),
    ],
)
async def test_numbers_that_are_none_are_named_beside_other_arguments(
    client: Client, tool: str, arguments: dict[str, Any], fields: dict[str, str]
) -> None:
    answer = await client.post(f"{TOOLS}/{tool}/execute", {"arguments": arguments}, headers=APP)
    assert (answer.status, answer.fields) == (400, {f"arguments.{name}": why for name, why in fields.items()})


async def test_a_secret_is_shown_once_and_headers_never(client: Client) -> None:
    made = await client.post(MANAGED, {**FIND, "headers": {"X-Key": "k3y"}}, headers=ADMIN)
    assert (made.status, made.data["headers"]) == (201, ["X-Key"])
    assert made.data["secret"].startswith("whsec_") and b"k3y" not in made.body
    for answer in (
        await client.get(f"{MANAGED}/find_order", headers=ADMIN),
        await client.post(f"{MANAGED}/find_order", {"timeout_sec": 3}, headers=ADMIN),
        await client.post(f"{MANAGED}/find_order/disable", None, headers=ADMIN),
    ):
        assert answer.status == 200 and "secret" not in answer.data and b"k3y" not in answer.body
    assert (answer.data["timeout_sec"], answer.data["is_enabled"]) == (3, False)
    assert (await client.post(f"{MANAGED}/find_order/delete", None, headers=ADMIN)).status == 204
    assert (await client.get(f"{MANAGED}/find_order", headers=ADMIN)).status == 404


async def test_nothing_but_an_output_schema_can_be_taken_away(client: Client) -> None:
    await client.post(MANAGED, {**FIND, "output_schema": {"type": "object"}}, headers=ADMIN)
    refused = await client.post(f"{MANAGED}/find_order", {"url": None, "headers": None}, headers=ADMIN)
    assert (refused.status, set(refused.fields)) == (400, {"url", "headers"})
    changed = await client.post(f"{MANAGED}/find_order", {"output_schema": None}, headers=ADMIN)
    assert changed.data["output_schema"] is None


async def test_a_tool_keeps_its_name(client: Client) -> None:
    await client.post(MANAGED, FIND, headers=ADMIN)
    refused = await client.post(f"{MANAGED}/find_order", {"name": "other"}, headers=ADMIN)
    assert refused.status == 400 and refused.fields["name"].startswith("cannot be changed; register")


async def test_numbers_are_taken_in_any_writing(client: Client) -> None:
    writing = "tel:" + "-".join(" 9800000001") + "; phone-context=+91".replace(" ", "")
    assert 32 < len(writing) <= MAX_NUMBER_CHARS
    body = {"arguments": {**CALL, "to": writing}}
    answer = await client.post(f"{TOOLS}/place_call/execute", body, headers=APP)
    assert (answer.status, answer.data["result"]["to"]) == (200, "+919800000001")


async def test_app_keys_show_what_they_open(client: Client) -> None:
    path = "/integrations/admin/keys"
    made = await client.post(path, {"name": "desk", "tools": ["hang_up", "call_status"]}, headers=ADMIN)
    assert made.status == 201 and made.data["key"].startswith("vt_")
    every = (await client.get(path, headers=ADMIN)).data
    (listed,) = [item for item in every if item["name"] == "desk"]
    assert listed["tools"] == ["call_status", "hang_up"] and "key" not in listed


async def test_usage_is_that_of_the_days_asked_for(client: Client, stage: ApiStage) -> None:
    used = {UsageKey(ACCOUNT, "2026-01-31", "place_call", NOWHERE): Usage(3, 1, 100, 90)}
    await stage.write(partial(usage.add, counted=used))
    queries = asked(stage.services.tools.usage, "of_account")
    query = "start_date=2026-01-01&end_date=2026-01-31&tool=place_call"
    answer = await client.get(f"/integrations/admin/usage?{query}", headers=ADMIN)
    assert queries == [(ACCOUNT, UsageFilter("2026-01-01", "2026-01-31", "place_call"))]
    assert (answer.data["calls"], answer.data["errors"]) == (3, 1)
    assert answer.data["rows"][0]["mean_ms"] == 33
    assert (await client.get("/integrations/admin/usage?start_date=soon", headers=ADMIN)).status == 400


async def test_each_key_opens_its_own_part_alone(client: Client) -> None:
    for path, wrong in ((TOOLS, ADMIN), (MANAGED, APP), (MANAGED, None), (TOOLS, None)):
        assert (await client.get(path, headers=wrong)).status == 403


@pytest.mark.parametrize("path", ["/integrations", "/integrations/", "/integrations/health"])
async def test_what_the_service_says_of_itself_needs_no_key(client: Client, path: str) -> None:
    answer = await client.get(path, key=None)
    assert answer.status == 200
    if not path.endswith("health"):
        assert answer.json().keys() == {"docs", "endpoints", "service", "version"}
