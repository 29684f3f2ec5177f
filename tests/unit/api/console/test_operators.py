"""Operators of the console: all accounts to see, one to act in, and every change recorded."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from api.console.visit import form_token
from callcontrol.errors import NodeUnreachable
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, OTHER_ACCOUNT, OTHER_CALL_SID
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_client, cookie_of, follow_link, sign_in
from tests.unit.api.client import Client

LIVE, CALLS = "/console/live", "/console/calls"


@pytest.fixture
async def operator(web: Client, stage: ApiStage) -> Person:
    """An operator who has just signed in by a link."""
    link = await stage.storage.operators.make_link("asha@desk")
    answer = await follow_link(web, link)
    assert answer.status == 200, answer.body.decode()
    assert (await follow_link(web, link)).status == 401
    return Person(web, cookie_of(answer))


async def choose(operator: Person, account_sid: str, **fields: str) -> Any:
    given = {"account": account_sid, "csrf": await operator.token(), **fields}
    answer = await operator.post("/console/accounts/choose", given)
    assert answer.status == 303, answer.body.decode()
    operator.chosen = account_sid
    return answer.headers["Location"]


async def listed(operator: Person) -> set[str]:
    page = (await operator.get(CALLS)).body.decode()
    return {sid for sid in (CALL_SID, ENDED_SID, OTHER_CALL_SID) if sid in page}


async def test_all_accounts_are_seen_and_none_is_changed(operator: Person, stage: ApiStage) -> None:
    assert (await operator.get("/console")).headers["Location"] == LIVE
    parked = stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    live = (await operator.get(f"{LIVE}/calls")).json()
    names = {call["call_sid"]: call["account"] for call in live["calls"]}
    assert names[CALL_SID] == (await stage.storage.accounts.get(ACCOUNT)).name
    assert OTHER_CALL_SID in names and live["total"] == len(names)
    for call_sid in (CALL_SID, OTHER_CALL_SID):
        page = await operator.get(f"{CALLS}/{call_sid}")
        assert page.status == 200 and "/hangup" not in page.body.decode()
        assert (await operator.get(f"{CALLS}/{call_sid}/timeline")).json()["webhooks"] == []
        refused = await operator.post(f"{CALLS}/{call_sid}/hangup")
        assert refused.status == 403 and "choose it first" in refused.body.decode()
    assert parked.posted == []
    assert await stage.storage.operators.actions(5) == []


@pytest.mark.parametrize("page", ["numbers", "wallet", "webhooks", "masking", "trunks", "first", "messages"])
async def test_a_page_of_one_account_asks_to_choose_it(operator: Person, page: str) -> None:
    refused = await operator.get(f"/console/{page}")
    assert refused.status == 403 and "choose it first" in refused.body.decode()
    await choose(operator, ACCOUNT)
    assert (await operator.get(f"/console/{page}")).status == 200


async def test_in_an_account_its_calls_are_seen_and_changed_and_that_is_recorded(
    operator: Person, stage: ApiStage
) -> None:
    parked = stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    assert await choose(operator, ACCOUNT, call=CALL_SID) == f"{CALLS}/{CALL_SID}"
    assert OTHER_CALL_SID not in await listed(operator)
    assert (await operator.get(f"{CALLS}/{OTHER_CALL_SID}")).status == 404
    assert (await operator.post(f"{CALLS}/{CALL_SID}/hangup")).status == 303
    assert len(parked.posted) == 1
    (action,) = await stage.storage.operators.actions(5)
    assert (action.operator, action.account_sid, action.path) == (
        *("asha@desk", ACCOUNT),
        f"{CALLS}/{CALL_SID}/hangup",
    )
    page = (await operator.get("/console/server")).body.decode()
    assert action.path in page and "asha@desk" in page
    assert await choose(operator, "") == "/console/accounts?done=left"
    assert OTHER_CALL_SID in {
        call["call_sid"] for call in (await operator.get(f"{LIVE}/calls")).json()["calls"]
    }


@pytest.mark.parametrize(("status", "kept"), [(303, 0), (404, 0), (503, 1)])
async def test_a_form_that_another_node_carries_out_is_recorded_there(
    stage: ApiStage, monkeypatch: pytest.MonkeyPatch, status: int, kept: int
) -> None:
    recorded: list[int] = []

    class Other:
        async def answer(self, *_: Any) -> web.Response:
            recorded.append(len(await stage.storage.operators.actions(5)))
            return web.Response(status=status)

    async def hangup_call(*_: Any) -> None:
        raise NodeUnreachable("b", "The call is")

    monkeypatch.setattr(stage.services.calls, "hangup_call", hangup_call)
    async with console_client(stage, forwarder=Other()) as client:
        link = await stage.storage.operators.make_link("asha@desk")
        operator = Person(client, cookie_of(await follow_link(client, link)))
        await choose(operator, ACCOUNT)
        assert (await operator.post(f"{CALLS}/{CALL_SID}/hangup")).status == status
    # Also here while its outcome is unknown.
    assert recorded == [1]
    assert len(await stage.storage.operators.actions(5)) == kept


async def test_an_account_that_is_disabled_is_seen_and_not_used(operator: Person, stage: ApiStage) -> None:
    stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    await choose(operator, ACCOUNT)
    await stage.storage.accounts.update(ACCOUNT, {"is_active": False})
    await stage.storage.directory.refresh()
    assert (await operator.get(f"{CALLS}/{CALL_SID}")).status == 200
    for path in (f"{CALLS}/{CALL_SID}/hangup", "/console/first"):
        assert (await operator.post(path)).status == 403


async def test_a_form_of_a_page_from_before_another_choice_is_refused(
    operator: Person, stage: ApiStage
) -> None:
    parked = stage.park(record=await stage.storage.calls.get(ACCOUNT, CALL_SID))
    await choose(operator, ACCOUNT)
    former = form_token(operator.cookie, ACCOUNT)
    await choose(operator, OTHER_ACCOUNT)
    refused = await operator.post("/console/numbers/buy", {"csrf": former})
    assert refused.status == 403 and "load the page again" in refused.body.decode()
    assert parked.posted == []


async def test_leaving_and_signing_out_are_possible_from_any_page_and_not_recorded(
    operator: Person, stage: ApiStage
) -> None:
    everywhere = await operator.token()
    await choose(operator, ACCOUNT)
    assert await operator.token() == everywhere != form_token(operator.cookie, ACCOUNT)
    await choose(operator, OTHER_ACCOUNT, csrf=everywhere)
    assert (await operator.post("/console/sign-out", {"csrf": everywhere})).status == 303
    assert (await operator.get(LIVE)).status == 303
    assert await stage.storage.operators.actions(5) == []


async def test_pages_of_a_key_are_not_for_operators_and_theirs_not_for_keys(
    operator: Person, web: Client
) -> None:
    await choose(operator, ACCOUNT)
    for page in ("keys", "phone"):
        refused = await operator.get(f"/console/{page}")
        assert refused.status == 403 and "about an API key" in refused.body.decode()
    customer = await sign_in(web)
    assert (await customer.get("/console/accounts")).status == 403
    assert (await customer.post("/console/accounts/choose", {"account": OTHER_ACCOUNT})).status == 403
    assert "/console/accounts" not in (await customer.get(CALLS)).body.decode()


async def test_an_account_is_found_by_its_name_and_must_exist(operator: Person) -> None:
    page = (await operator.get("/console/accounts")).body.decode()
    assert ACCOUNT in page and OTHER_ACCOUNT in page
    page = (await operator.get(f"/console/accounts?text={OTHER_ACCOUNT[:8]}")).body.decode()
    assert ACCOUNT not in page and OTHER_ACCOUNT in page
    missing = await operator.post("/console/accounts/choose", {"account": "<script>"})
    assert missing.status == 404 and "<script>" not in missing.body.decode().partition("<main")[2]


async def test_searches_and_cursors_reach_the_calls_of_all(operator: Person) -> None:
    found = (await operator.get(f"{CALLS}?start=2020-01-01")).body.decode()
    assert all(sid in found for sid in (CALL_SID, ENDED_SID, OTHER_CALL_SID))
    none = (await operator.get(f"{CALLS}?start=2020-01-01&end=2020-01-02")).body.decode()
    assert not any(sid in none for sid in (CALL_SID, ENDED_SID, OTHER_CALL_SID))
    assert (await operator.get(f"{CALLS}?start=x")).status == 400


async def test_signing_out_and_the_command_line_end_sessions(
    operator: Person, web: Client, stage: ApiStage
) -> None:
    assert (await operator.post("/console/sign-out")).status == 303
    assert (await operator.get(LIVE)).headers["Location"].startswith("/console/sign-in")
    link = await stage.storage.operators.make_link("asha@desk")
    signed = await follow_link(web, link)
    other = Person(web, cookie_of(signed))
    assert (await other.get(LIVE)).status == 200
    await stage.storage.operators.make_link("asha@desk")
    assert await stage.storage.operators.end("asha@desk") == 2
    assert (await other.get(LIVE)).status == 303
