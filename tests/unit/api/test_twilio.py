"""Requests of Twilio's clients, and the answers they read: Basic, forms, bare answers, errors."""

from __future__ import annotations

import base64

import pytest

from api.http.auth import bearer_of_basic, uuid_of_account
from api.http.body import parse_form
from api.http.errors import ApiError, ErrorStyle, status_of, to_api_error
from api.schemas.twilio_api.conferences import TwilioParticipantQuery
from callcontrol.errors import (
    NO_ROUTE,
    OPTED_OUT,
    CallEnded,
    Conflict,
    DomainError,
    FieldError,
    Forbidden,
    NumberNotOwned,
    RateLimited,
    Unauthorized,
    ValidationFailed,
    WrongCallState,
)

ACCOUNT = "a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_a_form_is_read() -> None:
    assert parse_form(b"Status=completed&Reason=a+b%20%C3%A9&Empty=") == {
        "Status": "completed",
        "Reason": "a b é",
        "Empty": "",
    }


def test_a_field_that_may_be_repeated_is_a_list() -> None:
    assert parse_form(b"E=a&To=1&E=b", {"E"}) == {"To": "1", "E": ["a", "b"]}
    assert parse_form(b"E=a", {"E"}) == {"E": ["a"]}
    with pytest.raises(ValidationFailed) as refused:
        parse_form(b"E=a&To=1&E=b&To=1", {"E"})
    assert [error.field for error in refused.value.errors] == ["To"]


@pytest.mark.parametrize(
    "data",
    [b"Status", b"\xff=1", b"a=%ff", b"a=%00", b"&", b"&".join([b"a=1"] * 2), b"&".join([b"%d=1"] * 101)],
)
def test_what_is_no_form_is_refused(data: bytes) -> None:
    with pytest.raises(ValidationFailed):
        parse_form(data)


def test_links_of_a_page_write_flags_as_a_query_does() -> None:
    query = TwilioParticipantQuery(Muted=False, Hold=True, PageSize=1)
    links = query.links("/Participants.json", has_next=True)
    assert links["next_page_uri"] == "/Participants.json?Muted=false&Hold=true&PageSize=1&Page=1"


def test_basic_credentials_become_the_key() -> None:
    assert bearer_of_basic([basic(f"{ACCOUNT}:vp_key")], ACCOUNT) == ["Bearer vp_key"]
    assert bearer_of_basic([basic(f"{ACCOUNT.upper()}:vp_a:b")], ACCOUNT) == ["Bearer vp_a:b"]
    assert bearer_of_basic(["Bearer vp_key"], ACCOUNT) == ["Bearer vp_key"]
    assert bearer_of_basic([], ACCOUNT) == []


THEIRS = "AC" + ACCOUNT.replace("-", "")


@pytest.mark.parametrize("user", [ACCOUNT, THEIRS, THEIRS.upper()])
@pytest.mark.parametrize("path", [ACCOUNT, ACCOUNT.upper(), THEIRS])
def test_an_account_may_be_written_as_theirs(user: str, path: str) -> None:
    assert bearer_of_basic([basic(f"{user}:vp_key")], path) == ["Bearer vp_key"]


@pytest.mark.parametrize("name", ["AC", f"{THEIRS}0", f"AC{ACCOUNT}", THEIRS.replace("AC", "AD"), THEIRS[2:]])
def test_what_is_not_quite_in_their_form_is_another_account(name: str) -> None:
    assert uuid_of_account(name) == name.lower()
    with pytest.raises(Unauthorized):
        bearer_of_basic([basic(f"{name}:vp_key")], ACCOUNT)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ValidationFailed.of("To", "is required"), 400, 21211),
        (ValidationFailed.of("To", "has no route", NO_ROUTE), 400, 21214),
        (ValidationFailed.of("To", "has opted out", OPTED_OUT), 400, 21610),
        (ValidationFailed([FieldError("From", "a"), FieldError("From", "b")]), 400, 21212),
        (ValidationFailed([FieldError("From", "a"), FieldError("To", "b")]), 400, 20001),
        (ValidationFailed.of("Url", "x"), 400, 21205),
        (ValidationFailed.of("MediaUrl", "x"), 400, 21620),
        (ValidationFailed.of("Timeout", "x"), 400, 20001),
        (ValidationFailed([]), 400, 20001),
        (NumberNotOwned("x"), 403, 21210),
        (WrongCallState("x"), 409, 21220),
        (Conflict("x"), 409, 20409),
        (CallEnded("x"), 404, 20404),
    ],
)
def test_a_single_cause_has_a_code_of_its_own(error: DomainError, status: int, code: int) -> None:
    body = to_api_error(error, ErrorStyle.TWILIO).body()
    assert (body["status"], body["code"]) == (status, code)
    assert body["more_info"].endswith(f"/{code}")


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !", basic("other:vp_key"), basic("vp_key"), "Basic w7/DvyA="]
)
def test_other_credentials_are_refused(header: str) -> None:
    with pytest.raises(Unauthorized):
        bearer_of_basic([header], ACCOUNT)


def test_their_errors() -> None:
    assert status_of(CallEnded, ErrorStyle.TWILIO) == (404, "20404")
    assert status_of(Forbidden, ErrorStyle.TWILIO) == (403, "20403")
    ended = to_api_error(CallEnded("It has ended."), ErrorStyle.TWILIO)
    assert (ended.status, ended.body()) == (
        404,
        {
            "code": 20404,
            "message": "It has ended.",
            "more_info": "https://www.twilio.com/docs/errors/20404",
            "status": 404,
        },
    )
    wrong = to_api_error(ValidationFailed.of("Status", "is required"), ErrorStyle.TWILIO).body()
    assert wrong["code"] == 20001 and wrong["details"]["errors"][0]["field"] == "Status"
    unknown = to_api_error(Unauthorized("Who?"), ErrorStyle.TWILIO)
    assert unknown.body()["code"] == 20003
    assert unknown.headers["WWW-Authenticate"] == 'Bearer realm="trunkline", Basic realm="trunkline"'
    busy = to_api_error(RateLimited("Wait.", retry_after_s=3), ErrorStyle.TWILIO)
    assert (busy.body()["code"], busy.headers["Retry-After"]) == (20429, "3")
    assert ApiError(405, "METHOD_NOT_ALLOWED", "No.", style=ErrorStyle.TWILIO).body()["code"] == 20004
