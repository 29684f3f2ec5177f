"""The session of the console at the one part of the API that takes it: messaging's webhook endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from api.http.app import create_app
from api.http.session import API_PATH, COOKIE
from api.process.metrics import Metrics
from api.routes import ENDPOINTS
from tests.support.api_facts import ACCOUNT, KEY, OTHER_ACCOUNT, READER_KEY
from tests.support.api_stage import URL, ApiStage
from tests.support.console_stage import OURS, console_client, cookie_of, send_form, sign_in
from tests.unit.api.client import Answer, Client, client_for

BODY = {"url": "https://app.example.com/messaging", "events": ["message.sent"]}
EVERY, READER, SENDER = "vk_" + "e" * 43, "vm_" + "r" * 43, "vm_" + "s" * 43


@pytest.fixture(autouse=True)
async def _keys(stage: ApiStage) -> None:
    await stage.add_key(EVERY, "all", ["webhooks.read", "webhooks.write"])
    await stage.add_key(READER, "messaging", ["webhooks.read"])
    await stage.add_key(SENDER, "messaging", ["messages.send"])


async def ask(
    web: Client,
    cookie: str,
    method: str = "GET",
    path: str = API_PATH,
    body: Any = None,
    headers: Mapping[str, str] = OURS,
    key: str | None = None,
) -> Answer:
    """Send a request with the cookie of a session."""
    lines = {"Cookie": f"{COOKIE}={cookie}", **headers}
    return await web.request(method, path, json_body=body, headers=lines, key=key, peer="10.0.0.7")


def test_the_cookie_reaches_all_that_take_it() -> None:
    taking = [endpoint for endpoint in ENDPOINTS if endpoint.sessions]
    assert len(taking) == 9
    assert all(f"{endpoint.path}/".startswith(f"{API_PATH}/") for endpoint in taking)


async def test_the_document_has_the_cookie_where_it_is_taken(web: Client) -> None:
    document = (await web.get("/openapi.json", key=None)).json()
    scheme = document["components"]["securitySchemes"]["console_session"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "cookie", COOKIE)
    taking = {
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if {"console_session": []} in operation.get("security", [])
    }
    assert taking == {endpoint.path for endpoint in ENDPOINTS if endpoint.sessions}


async def test_a_browser_gets_the_cookie_for_both_parts(web: Client) -> None:
    answer = await send_form(web, "/console/sign-in", {"key": KEY}, OURS)
    cookies = [line.split("; ") for line in answer.headers.getall("Set-Cookie")]
    assert {line[0] for line in cookies} == {f"{COOKIE}={cookie_of(answer)}"}
    rest = {"HttpOnly", "SameSite=Strict", "Max-Age=43200"}
    assert [set(line[1:]) - rest for line in cookies] == [{"Path=/console"}, {f"Path={API_PATH}"}]


async def test_without_the_console_no_session_is_taken(web: Client, client: Client) -> None:
    cookie = (await sign_in(web, EVERY)).cookie
    assert (await ask(web, cookie)).status == 200
    assert (await ask(client, cookie)).status == 401


async def test_endpoints_are_managed_by_a_session(web: Client) -> None:
    cookie = (await sign_in(web, EVERY)).cookie
    made = await ask(web, cookie, "POST", body=BODY)
    assert made.status == 201 and made.data["secret"].startswith("whsec_")
    one = f"{API_PATH}/{made.data['id']}"
    # Looking needs no page of ours: the browser alone sends the cookie, and shows the response to nobody.
    assert [it["id"] for it in (await ask(web, cookie, headers={})).data] == [made.data["id"]]
    changed = await ask(web, cookie, "PATCH", one, {"isActive": False})
    assert changed.status == 200 and changed.data["isActive"] is False
    assert (await ask(web, cookie, path=f"{one}/deliveries")).status == 200
    assert (await ask(web, cookie, "DELETE", one)).status == 200
    assert (await ask(web, cookie, path=one)).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "http://["},
        {**OURS, "Sec-Fetch-Site": "cross-site"},
        {**OURS, "Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_change_must_come_from_a_page_of_ours(web: Client, headers: Mapping[str, str]) -> None:
    cookie = (await sign_in(web, EVERY)).cookie
    refused = await ask(web, cookie, "POST", body=BODY, headers=headers)
    assert (refused.status, refused.json()["code"]) == (403, "FORBIDDEN")
    assert "Sec-Fetch-Site: same-origin" in refused.json()["message"]
    assert (await ask(web, cookie)).data == []


async def test_a_session_has_the_rights_of_its_key(web: Client) -> None:
    reader = (await sign_in(web, READER)).cookie
    assert (await ask(web, reader)).status == 200
    assert (await ask(web, reader, "POST", body=BODY)).json()["code"] == "FORBIDDEN"
    for other in (READER_KEY, SENDER):  # of the platform; without the scope
        assert (await ask(web, (await sign_in(web, other)).cookie)).status == 403


async def test_a_session_that_has_ended_opens_nothing(web: Client) -> None:
    person = await sign_in(web, EVERY)
    await person.post("/console/sign-out")
    for cookie in (person.cookie, "", "x" * 43, "operator_" + "x" * 43):
        refused = await ask(web, cookie)
        assert (refused.status, refused.json()["code"]) == (401, "UNAUTHORIZED"), cookie


async def test_a_key_beside_the_cookie_decides(web: Client) -> None:
    cookie = (await sign_in(web, EVERY)).cookie
    assert (await ask(web, cookie, "POST", body=BODY, key=READER)).status == 403
    assert (await ask(web, cookie, key="vm_wrong")).status == 401
    assert (await ask(web, cookie, headers={"X-API-Key": "vm_wrong"})).status == 401
    # A key makes no request of another site.
    assert (await ask(web, cookie, "POST", body=BODY, key=EVERY, headers={})).status == 201


async def test_other_endpoints_take_no_session(web: Client) -> None:
    cookie = (await sign_in(web, EVERY)).cookie
    for path in ("/api/v1/contacts", "/v1/webhooks/subscriptions", "/v1/calls"):
        assert (await ask(web, cookie, path=path)).status == 401


async def test_an_operator_acts_in_the_chosen_account_on_record(web: Client, stage: ApiStage) -> None:
    operators = stage.storage.operators
    token = await operators.redeem(await operators.make_link("asha@desk"))
    refused = await ask(web, token)
    assert refused.status == 403 and "choose it" in refused.json()["message"]
    assert (await ask(web, token, "POST", body=BODY)).status == 403
    await operators.choose(token, ACCOUNT)
    assert (await ask(web, token, "POST", body=BODY)).status == 201
    (action,) = await operators.actions(5)
    assert (action.operator, action.account_sid, action.path) == ("asha@desk", ACCOUNT, API_PATH)
    assert len((await ask(web, token)).data) == 1
    await operators.choose(token, OTHER_ACCOUNT)
    assert (await ask(web, token)).data == []


async def test_without_the_console_no_session_is_accepted(stage: ApiStage) -> None:
    token = await stage.storage.console_sessions.open(EVERY)
    app = create_app(
        stage.services, mcp=stage.mcp, lifecycle=stage.lifecycle, metrics=Metrics(), public_url=URL
    )
    async with client_for(app) as client:
        assert (await ask(client, token)).status == 401
        assert (await ask(client, token, "POST", body=BODY)).status == 401
        assert (await ask(client, token, key=EVERY)).status == 200
    async with console_client(stage) as web:
        assert (await ask(web, token)).status == 200
