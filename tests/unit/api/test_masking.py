"""The endpoints of masked calls before the domain: what is taken, what is refused, and under which code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.models import TEST_PREFIX
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    MOMENT,
    NOWHERE,
    NUMBER,
    NUMBER_ID,
    PLATFORM_CARRIER_SID,
    READER_KEY,
)
from tests.support.api_stage import ApiStage, asked
from tests.support.masked_records import masked_record, move
from tests.unit.api.client import Client

CALLS = "/v1/masking/calls"
A, B = "9812345678", "9876543210"
TEST_A = "9800000001"


async def test_a_call_is_taken_and_said_to_be_initiated(client: Client, services: Services) -> None:
    requests = asked(services.masking, "start_call")
    answer = await client.post(CALLS, {"party_a": A, "party_b": B, "max_duration_sec": 10})
    assert answer.status == 201
    assert answer.data == {
        "call_sid": answer.data["call_sid"],
        "status": "initiated",
        "party_a": A,
        "party_b": B,
        "masked_number": NUMBER,
    }
    assert requests == [(ACCOUNT, A, B, 10)]
    kept = await services.masking.get_call(ACCOUNT, answer.data["call_sid"])
    assert (kept.from_, kept.to) == (NUMBER, "+91" + A)
    assert (await client.post(CALLS, {"party_a": A, "party_b": B})).status == 201
    assert requests[-1] == (ACCOUNT, A, B, None)


@pytest.mark.parametrize("party_a", ["+91" + A, "91" + A, "0" + A, "98123 45678", f"tel:+91{A}"])
async def test_a_party_may_be_written_in_any_way(client: Client, services: Services, party_a: str) -> None:
    answer = await client.post(CALLS, {"party_a": party_a, "party_b": B})
    assert (answer.status, answer.data["party_a"]) == (201, A)
    assert (await services.masking.get_call(ACCOUNT, answer.data["call_sid"])).to == "+91" + A


@pytest.mark.parametrize(
    ("party_a", "party_b", "named"),
    [
        (A, A, {"party_b"}),
        (A, "+91 98123 45678", {"party_b"}),
        ("+12025550123", B, {"party_a"}),
        ("981234567", "98123456789", {"party_a", "party_b"}),
        ("8047000001", B, {"party_a"}),
        ("5812345678", B, {"party_a"}),
        ("٩٨١٢٣٤٥٦٧٨", B, {"party_a"}),
        ("", "tel:" + B + ";ext=1", {"party_a", "party_b"}),
    ],
)
async def test_numbers_that_cannot_be_joined_have_a_code_of_their_own(
    client: Client, services: Services, party_a: str, party_b: str, named: set[str]
) -> None:
    requests = asked(services.masking, "start_call")
    answer = await client.post(CALLS, {"party_a": party_a, "party_b": party_b})
    assert (answer.status, answer.code) == (400, "invalid_numbers")
    assert answer.fields.keys() == named
    assert not requests


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, {"party_a", "party_b"}),
        ({"party_a": A, "party_b": 9876543210}, {"party_b"}),
        ({"party_a": A, "party_b": B, "max_duration_sec": 9}, {"max_duration_sec"}),
        ({"party_a": A, "party_b": B, "max_duration_sec": 7201}, {"max_duration_sec"}),
        ({"party_a": A, "party_b": B, "max_duration_sec": 10.5}, {"max_duration_sec"}),
        (
            {"party_a": A, "party_b": A, "max_duration_sec": "60", "colour": "red"},
            {"party_b", "max_duration_sec", "colour"},
        ),
        ({"party_a": "x"}, {"party_a", "party_b"}),
    ],
)
async def test_every_wrong_field_is_named(client: Client, body: dict[str, Any], named: set[str]) -> None:
    answer = await client.post(CALLS, body)
    assert (answer.status, answer.code) == (400, "validation")
    assert answer.fields.keys() == named


async def deregister(stage: ApiStage) -> None:
    await stage.storage.numbers.deregister(ACCOUNT, NUMBER_ID)


@pytest.mark.parametrize(
    ("before", "status", "code"),
    [
        (ApiStage.empty_wallet, 402, "insufficient_balance"),
        (deregister, 403, "number_not_owned"),
        (ApiStage.stop_platform_carrier, 400, "validation"),
        (ApiStage.rest_platform_carrier, 503, "service_unavailable"),
    ],
)
async def test_refusals_are_spelled_in_lower_case(
    client: Client, stage: ApiStage, before: Callable[[ApiStage], Awaitable[None]], status: int, code: str
) -> None:
    await before(stage)
    answer = await client.post(CALLS, {"party_a": A, "party_b": B})
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize(
    ("party_a", "party_b", "unreached"),
    [(TEST_A, B, ["party_b"]), (B, TEST_A, ["party_a"]), (A, B, ["party_a", "party_b"])],
)
async def test_the_route_of_both_parties_is_looked_up_before_the_first_one_rings(
    client: Client, stage: ApiStage, party_a: str, party_b: str, unreached: list[str]
) -> None:
    prefixes = {"prefixes": (TEST_PREFIX,)}
    await stage.services.trunks.update_carrier(None, PLATFORM_CARRIER_SID, prefixes)
    placed = asked(stage.services.calls, "place")
    before = await stage.storage.wallet.wallet(ACCOUNT)
    answer = await client.post(CALLS, {"party_a": party_a, "party_b": party_b})
    assert (answer.status, answer.code) == (400, "validation")
    errors = answer.json()["error"]["details"]["errors"]
    assert [(error["field"], error["reason"]) for error in errors] == [
        (party, "no_route") for party in unreached
    ]
    assert not placed and await stage.storage.wallet.wallet(ACCOUNT) == before


async def test_a_call_is_shown(client: Client, stage: ApiStage) -> None:
    record = await stage.add_call(masked_record(ACCOUNT, MOMENT, caller="+91" + A, target="+91" + B))
    answer = await client.get(f"{CALLS}/{record.call_sid}")
    assert answer.status == 200
    shown = answer.data
    assert (shown["id"], shown["platform_call_sid"]) == (record.call_sid, record.call_sid)
    assert (shown["caller_number"], shown["target_number"]) == ("+91" + A, B)
    assert (shown["direction"], shown["status"]) == ("click_to_call", "initiated")
    assert [leg["party"] for leg in shown["legs"]] == ["a", "b"]


@pytest.mark.parametrize("call_sid", [NOWHERE, CALL_SID, "42", "x" * 300])
async def test_what_is_no_call_is_not_found(client: Client, call_sid: str) -> None:
    answer = await client.get(f"{CALLS}/{call_sid}")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_a_call_is_ended_once(client: Client, stage: ApiStage) -> None:
    active, ended = (masked_record(ACCOUNT, MOMENT) for _ in range(2))
    parked = stage.park(record=active)
    assert (await client.delete(f"{CALLS}/{active.call_sid}")).data["id"] == active.call_sid
    assert parked.posted == [HangupRequested("api", NORMAL_CLEARING)]
    move(ended, "completed")
    await stage.add_call(ended)
    answer = await client.delete(f"{CALLS}/{ended.call_sid}")
    assert (answer.status, answer.code) == (409, "call_ended")


async def test_a_key_for_reading_places_nothing(client: Client, services: Services) -> None:
    requests = asked(services.masking, "start_call")
    answer = await client.post(CALLS, {"party_a": A, "party_b": B}, key=READER_KEY)
    assert (answer.status, answer.code) == (403, "forbidden")
    assert not requests
