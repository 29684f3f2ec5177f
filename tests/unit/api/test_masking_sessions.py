"""The endpoints of masking sessions before the domain: what is taken, what is refused, and what is shown."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.masking.sessions import SessionFilter, SessionRequest
from tests.support.api_facts import ACCOUNT, NOWHERE, NUMBER, READER_KEY
from tests.support.api_stage import asked
from tests.unit.api.client import Client

SESSIONS, NUMBERS = "/v1/masking/sessions", "/v1/masking/numbers"
A, B = "9810000001", "9810000002"
PARTIES = {"party_a": A, "party_b": B}
MASKED, OTHER_MASKED = "+918047551001", "+918047551009"


@pytest.fixture
async def enrolled(storage: Storage) -> None:
    """The account's masked numbers."""
    for number in (MASKED, OTHER_MASKED):
        await storage.numbers.add(ACCOUNT, number)
        await storage.masking_numbers.enrol(ACCOUNT, number)


@pytest.fixture
async def session(enrolled: None, client: Client) -> str:
    """The path of a session."""
    made = await client.post(SESSIONS, {**PARTIES, "call_time_limit_sec": 60, "record": True})
    return f"{SESSIONS}/{made.data['session_id']}"


@pytest.mark.usefixtures("enrolled")
async def test_a_session_is_asked_for_in_e164_and_shown_as_it_was_asked_for(
    client: Client, storage: Storage
) -> None:
    requests = asked(storage.masking_sessions, "create")
    body = {
        **PARTIES,
        "masked_number": OTHER_MASKED,
        "expires_in_sec": 600,
        "call_time_limit_sec": 60,
        "record": False,
        "geo_match": True,
    }
    answer = await client.post(SESSIONS, body)
    assert answer.status == 201
    wanted = SessionRequest(
        party_a=f"+91{A}",
        party_b=f"+91{B}",
        masked_number=OTHER_MASKED,
        expires_in_s=600,
        call_time_limit_s=60,
        record=False,
        geo_match=True,
    )
    assert requests == [(ACCOUNT, wanted)]
    assert (answer.data["party_a"], answer.data["masked_number"]) == (A, OTHER_MASKED)
    assert answer.data["status"] == "active"


@pytest.mark.usefixtures("enrolled")
async def test_all_but_the_parties_may_be_left_out(client: Client, storage: Storage) -> None:
    requests = asked(storage.masking_sessions, "create")
    assert (await client.post(SESSIONS, PARTIES)).status == 201
    [(_, wanted)] = requests
    assert (wanted.expires_in_s, wanted.call_time_limit_s, wanted.record) == (86_400, None, None)


@pytest.mark.parametrize(
    ("body", "code", "fields"),
    [
        ({}, "validation", {"party_a", "party_b"}),
        ({**PARTIES, "party_b": A}, "invalid_numbers", {"party_b"}),
        ({**PARTIES, "party_b": f"+91 {A}"}, "invalid_numbers", {"party_b"}),
        ({**PARTIES, "party_a": "+12025550123"}, "invalid_numbers", {"party_a"}),
        ({**PARTIES, "party_a": "5810000001", "party_b": "981"}, "invalid_numbers", {"party_a", "party_b"}),
        ({**PARTIES, "party_a": 9810000001}, "validation", {"party_a"}),
        ({**PARTIES, "expires_in_sec": 59}, "validation", {"expires_in_sec"}),
        ({**PARTIES, "expires_in_sec": 31_536_001}, "validation", {"expires_in_sec"}),
        (
            {**PARTIES, "call_time_limit_sec": 9, "record": "no"},
            "validation",
            {"call_time_limit_sec", "record"},
        ),
        ({**PARTIES, "masked_number": "804755100", "x": 1}, "validation", {"masked_number", "x"}),
        ({"party_a": "1", "party_b": B, "geo_match": 1}, "validation", {"party_a", "geo_match"}),
    ],
)
async def test_every_wrong_field_is_named(
    client: Client, storage: Storage, body: dict[str, Any], code: str, fields: set[str]
) -> None:
    requests = asked(storage.masking_sessions, "create")
    answer = await client.post(SESSIONS, body)
    assert (answer.status, answer.code, set(answer.fields)) == (400, code, fields)
    assert not requests


async def test_a_change_touches_what_it_names_and_null_takes_away(
    client: Client, storage: Storage, session: str
) -> None:
    changed = await client.request("PATCH", session, json_body={"call_time_limit_sec": None})
    assert (changed.data["call_time_limit_sec"], changed.data["record"]) == (None, True)
    assert (
        changed.data["expires_at"]
        != (await client.request("PATCH", session, json_body={"expires_in_sec": 60})).data["expires_at"]
    )
    after = await storage.masking_sessions.get(ACCOUNT, session.removeprefix(f"{SESSIONS}/"))
    assert (after.call_time_limit_s, after.record) == (None, True)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"body"}),
        ({"expires_in_sec": None}, {"expires_in_sec"}),
        ({"party_a": A}, {"party_a"}),
        ({"call_time_limit_sec": 7201}, {"call_time_limit_sec"}),
    ],
)
async def test_changes_that_are_refused(
    client: Client, session: str, body: dict[str, Any], fields: set[str]
) -> None:
    answer = await client.request("PATCH", session, json_body=body)
    assert (answer.status, answer.code, set(answer.fields)) == (400, "validation", fields)


async def test_the_parties_of_a_session_stay(client: Client, session: str) -> None:
    names = ("party_a", "party_b", "masked_number", "geo_match")
    answer = await client.request(
        "PATCH", session, json_body={**PARTIES, "masked_number": MASKED, "geo_match": True}
    )
    message = "cannot be changed; close the session, and create another one"
    assert answer.fields == dict.fromkeys(names, message)


@pytest.mark.usefixtures("session")
async def test_filters_of_a_list(client: Client, storage: Storage) -> None:
    lists = asked(storage.masking_sessions, "list")
    for party in (A, f"+91{A}", f"%2B91{A}", f"91{A}", f"0{A}"):
        path = f"{SESSIONS}?status=active&party={party}&masked_number=080-47551001"
        answer = await client.get(path)
        assert (answer.status, len(answer.data)) == (200, 1)
    wanted = SessionFilter(status="active", party=f"+91{A}", masked_number=MASKED)
    assert lists == [(ACCOUNT, wanted, 1, 20)] * 5


async def test_sessions_that_are_not_there_and_keys_that_may_not(client: Client) -> None:
    for method in ("GET", "DELETE"):
        answer = await client.request(method, f"{SESSIONS}/{NOWHERE}")
        assert (answer.status, answer.code) == (404, "not_found")
    refused = await client.post(SESSIONS, PARTIES, key=READER_KEY)
    assert (refused.status, refused.code) == (403, "forbidden")


@pytest.mark.usefixtures("session")
async def test_numbers(client: Client) -> None:
    wrong = await client.post(NUMBERS, {"number": NUMBER, "language": "kn-X"})
    assert wrong.fields == {"language": "must be a language such as en-IN or hi"}
    added = await client.post(NUMBERS, {"number": NUMBER.removeprefix("+"), "language": "ta-IN"})
    assert (added.status, added.data["language"]) == (201, "ta")
    shown = (await client.get(NUMBERS)).data
    assert {item["number"]: item["language"] for item in shown} == {
        MASKED: "en",
        OTHER_MASKED: "en",
        NUMBER: "ta",
    }
    (with_session,) = [item["phone_number_id"] for item in shown if item["number"] == MASKED]
    refused = await client.request("DELETE", f"{NUMBERS}/{with_session}")
    assert (refused.status, refused.code) == (409, "conflict")
    assert (await client.request("DELETE", f"{NUMBERS}/{with_session}?force=true")).status == 204
    assert (await client.request("DELETE", f"{NUMBERS}/{NOWHERE}")).status == 404
