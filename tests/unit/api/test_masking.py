"""The endpoints of masked calls before the domain: what is taken, what is refused, and under which code."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.errors import DomainError, InsufficientBalance, NumberNotOwned, ServiceUnavailable
from callcontrol.masking.request import MaskedCallRequest
from tests.unit.api.client import Client
from tests.unit.api.fakes import CALL_SID, ENDED_SID, NOWHERE, READER_KEY, Fakes

CALLS = "/v1/masking/calls"
A, B = "9812345678", "9876543210"


async def test_a_call_is_taken_and_said_to_be_initiated(client: Client, fakes: Fakes) -> None:
    answer = await client.post(CALLS, {"party_a": A, "party_b": B, "max_duration_sec": 10})
    assert answer.status == 201
    assert answer.data == {
        "call_sid": CALL_SID,
        "status": "initiated",
        "party_a": A,
        "party_b": B,
        "masked_number": "+918047000001",
    }
    assert fakes.masking.asked == [MaskedCallRequest(A, B, 10)]
    assert (await client.post(CALLS, {"party_a": A, "party_b": B})).status == 201
    assert fakes.masking.asked[-1].max_duration_s is None


@pytest.mark.parametrize(
    ("party_a", "party_b", "named"),
    [
        (A, A, {"party_b"}),
        ("+919812345678", B, {"party_a"}),
        ("09812345678", B, {"party_a"}),
        ("981234567", "98123456789", {"party_a", "party_b"}),
        ("8047000001", B, {"party_a"}),
        ("5812345678", B, {"party_a"}),
        ("٩٨١٢٣٤٥٦٧٨", B, {"party_a"}),
        ("", " " + B, {"party_a", "party_b"}),
    ],
)
async def test_numbers_that_cannot_be_joined_have_a_code_of_their_own(
    client: Client, fakes: Fakes, party_a: str, party_b: str, named: set[str]
) -> None:
    answer = await client.post(CALLS, {"party_a": party_a, "party_b": party_b})
    assert (answer.status, answer.code) == (400, "invalid_numbers")
    assert answer.fields.keys() == named
    assert not fakes.masking.asked


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


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (InsufficientBalance("Top up."), 402, "insufficient_balance"),
        (NumberNotOwned("Register a number."), 403, "number_not_owned"),
        (ServiceUnavailable("Full."), 503, "service_unavailable"),
    ],
)
async def test_refusals_are_spelled_in_lower_case(
    client: Client, fakes: Fakes, failure: DomainError, status: int, code: str
) -> None:
    fakes.masking.failure = failure
    answer = await client.post(CALLS, {"party_a": A, "party_b": B})
    assert (answer.status, answer.code) == (status, code)


async def test_a_call_is_shown(client: Client) -> None:
    answer = await client.get(f"{CALLS}/{CALL_SID}")
    assert answer.status == 200
    shown = answer.data
    assert (shown["id"], shown["platform_call_sid"]) == (CALL_SID, CALL_SID)
    assert (shown["caller_number"], shown["target_number"]) == ("+919812345678", B)
    assert (shown["direction"], shown["status"]) == ("click_to_call", "initiated")
    assert [leg["party"] for leg in shown["legs"]] == ["a", "b"]


@pytest.mark.parametrize("call_sid", [NOWHERE, "42", "x" * 300])
async def test_what_is_no_call_is_not_found(client: Client, call_sid: str) -> None:
    answer = await client.get(f"{CALLS}/{call_sid}")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_a_call_is_ended_once(client: Client) -> None:
    assert (await client.delete(f"{CALLS}/{CALL_SID}")).data["id"] == CALL_SID
    answer = await client.delete(f"{CALLS}/{ENDED_SID}")
    assert (answer.status, answer.code) == (409, "call_ended")


async def test_a_key_for_reading_places_nothing(client: Client, fakes: Fakes) -> None:
    answer = await client.post(CALLS, {"party_a": A, "party_b": B}, key=READER_KEY)
    assert (answer.status, answer.code) == (403, "forbidden")
    assert not fakes.masking.asked
