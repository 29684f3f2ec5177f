"""Handling of an INVITE: its account, and its plan."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.charges import Rates
from callcontrol.calls.inbound import Arrival, Invitation, receive
from callcontrol.calls.plan import Dial, Ring, Stream
from callcontrol.masking.steps.route_by_caller import RouteByCaller
from callcontrol.models import Binding
from callcontrol.models.parties import PhoneTarget
from sip import Headers, NameAddr, SipUri
from tests.support.domain import (
    ACCOUNT_SID,
    CALLEE,
    OTHER_SID,
    OWN_NUMBER,
    MemoryDirectory,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)


def directory(binding: Binding | None = None, **number: Any) -> MemoryDirectory:
    made = MemoryDirectory()
    made.put(
        numbers=[make_number(binding=binding, **number)], carriers=[make_carrier()], gateways=[make_gateway()]
    )
    return made


def arrive(routes: MemoryDirectory, **invitation: Any) -> Arrival | int:
    return receive(
        make_invitation(**invitation), routes, PRODUCTS, allowed_countries={"IN"}, time_limit_s=14_400.0
    )


def make_invitation(
    source: tuple[str, int] = ("127.0.0.1", 5080),
    request_user: str = OWN_NUMBER,
    to_user: str = OWN_NUMBER,
    from_user: str = "9811111111",
    headers: Sequence[tuple[str, str]] = (),
) -> Invitation:
    return Invitation(
        source=source,
        request_uri=_uri(request_user),
        to=NameAddr(None, _uri(to_user)),
        from_=NameAddr(None, _uri(from_user)),
        headers=Headers(headers),
    )


def _uri(user: str) -> SipUri:
    return SipUri("sip", user=user or None, host="127.0.0.1")


def arrival(routes: MemoryDirectory, **invitation: Any) -> Arrival:
    made = arrive(routes, **invitation)
    assert isinstance(made, Arrival)
    return made


def test_a_forwarded_number() -> None:
    binding = Binding("forward", forward_to=CALLEE, timeout_s=20, record=True)
    made = arrival(directory(binding))
    assert made.plan is not None and made.plan.record
    (step,) = made.plan.steps
    assert isinstance(step, Dial)
    assert step.party.target == PhoneTarget(CALLEE)
    assert (step.party.caller_id, step.party.passthrough, step.party.ring_timeout_s) == (
        "+919811111111",
        True,
        20.0,
    )
    assert made.account.account_sid == ACCOUNT_SID


@pytest.mark.parametrize(
    ("fields", "language"),
    [
        ({}, None),
        ({"transcribe": False, "transcription_language": "hi-IN"}, None),
        ({"transcribe": True}, "en-IN"),
        ({"transcribe": True, "transcription_language": "hi-IN"}, "hi-IN"),
    ],
)
@pytest.mark.parametrize(
    "target",
    [{"target": "forward", "forward_to": CALLEE}, {"target": "webhook", "webhook_url": "https://x/"}],
)
def test_a_number_whose_calls_are_transcribed(
    target: dict[str, Any], fields: dict[str, Any], language: str | None
) -> None:
    made = arrival(directory(Binding(**target, **fields)))
    assert made.plan is not None and made.plan.transcribe == language


def test_a_forwarded_number_that_shows_its_own() -> None:
    made = arrival(directory(Binding("forward", forward_to="9876543210", caller_id=OWN_NUMBER)))
    assert made.plan is not None
    (step,) = made.plan.steps
    assert isinstance(step, Dial)
    assert (step.party.caller_id, step.party.passthrough) == (OWN_NUMBER, False)


def test_a_streamed_number() -> None:
    made = arrival(directory(Binding("media_stream", stream_url="wss://agent.example/", sample_rate=16000)))
    assert made.plan is not None
    (step,) = made.plan.steps
    assert isinstance(step, Stream) and step.choice.sample_rate == 16000


def test_a_number_that_is_there_to_be_missed() -> None:
    made = arrival(directory(Binding("missed_call", timeout_s=15)))
    assert made.plan is not None and made.plan.steps == (Ring(15.0),)
    assert made.plan.reserve_paise(Rates()) == 0, "it costs nothing, so nothing need be there"


@pytest.mark.parametrize(
    ("request_user", "to_user"),
    [("918047491899", "x"), ("8047491899", "x"), ("line-4", "+918047491899")],
)
def test_the_number_is_found_however_the_carrier_writes_it(request_user: str, to_user: str) -> None:
    binding = Binding("forward", forward_to=CALLEE)
    assert arrival(directory(binding), request_user=request_user, to_user=to_user).plan is not None


@pytest.mark.parametrize(
    ("binding", "status", "cause"),
    [
        (None, "no-answer", "NO_ANSWER"),
        (Binding("voice_agent", agent_id="nobody"), "failed", "NORMAL_TEMPORARY_FAILURE"),
        (Binding("media_stream", stream_url="nonsense"), "failed", "NORMAL_TEMPORARY_FAILURE"),
        (Binding("forward", forward_to="+12025550123"), "failed", "CALL_REJECTED"),
        (Binding("forward", forward_to="nonsense"), "failed", "CALL_REJECTED"),
    ],
)
def test_numbers_whose_calls_cannot_be_taken(binding: Binding | None, status: str, cause: str) -> None:
    made = arrival(directory(binding))
    assert made.plan is None and made.refusal is not None
    assert (made.refusal.status.value, made.refusal.cause.name, made.refusal.sip_status) == (
        status,
        cause,
        480,
    )


def test_who_is_refused_without_a_record() -> None:
    routes = directory(Binding("forward", forward_to=CALLEE))
    assert arrive(routes, source=("127.0.0.2", 5080)) == 403
    assert arrive(routes, request_user="+918047491800", to_user="+918047491800") == 404
    assert arrive(routes, request_user="", to_user="") == 404
    routes.put(accounts=[make_account(is_active=False)])
    assert arrive(routes) == 404
    assert arrive(directory(status="suspended")) == 404


def test_another_accounts_carrier_has_no_business_with_our_number() -> None:
    routes = directory(Binding("forward", forward_to=CALLEE))
    routes.put(accounts=[make_account(OTHER_SID)], carriers=[make_carrier(account_sid=OTHER_SID)])
    assert arrive(routes) == 404


def test_an_account_with_the_same_address_takes_no_calls_away() -> None:
    routes = directory(Binding("forward", forward_to=CALLEE))
    theirs = replace(make_carrier(account_sid=OTHER_SID), carrier_sid="theirs")
    routes.put(
        accounts=[make_account(OTHER_SID)],
        carriers=[theirs],
        gateways=[replace(make_gateway(), gateway_sid="theirs", carrier_sid="theirs", priority=0)],
    )
    assert arrival(routes).carrier.account_sid is None


@pytest.mark.parametrize(
    ("user", "caller"),
    [
        ("anonymous", "anonymous"),
        ("", "anonymous"),
        ("x" * 100, "x" * 64),
        ("1001", "1001"),
    ],
)
def test_callers_that_are_no_number(user: str, caller: str) -> None:
    assert arrival(directory(Binding("forward", forward_to=CALLEE)), from_user=user).caller.shown == caller


def test_how_another_accounts_carrier_writes_numbers_takes_no_calls_away() -> None:
    """
    It names the address of a carrier of ours as its own, and a technical prefix.

    Without that prefix the number called is one of the other account's.
    """
    routes = directory()
    routes.put(
        accounts=[make_account(OTHER_SID)],
        numbers=[make_number("+18047491899", account_sid=OTHER_SID)],
        carriers=[make_carrier("theirs", OTHER_SID, tech_prefix="9", e164_leading_plus=False)],
        gateways=[make_gateway("a-gateway", carrier_sid="theirs")],
    )
    for origin_first in (5080, 9999):
        made = arrival(
            routes, source=("127.0.0.1", origin_first), request_user="918047491899", to_user="918047491899"
        )
        assert (made.account.account_sid, made.to) == (ACCOUNT_SID, OWN_NUMBER)


def test_a_number_enrolled_for_masking_goes_by_its_caller() -> None:
    made = arrival(directory(Binding("masking", language="ta")))
    assert made.plan is not None
    assert made.plan.steps == (RouteByCaller("+919811111111", OWN_NUMBER, "ta"),)
    facts = made.details
    assert facts is not None
    assert (facts["direction"], facts["caller_number"]) == ("inbound", "+919811111111")
    assert (facts["masked_number"], facts["target_number"]) == (OWN_NUMBER, None)


def test_a_masked_call_of_a_caller_who_shows_no_number() -> None:
    made = arrival(directory(Binding("masking")), headers=[("Privacy", "id")])
    assert made.plan is not None
    assert made.plan.steps == (RouteByCaller(None, OWN_NUMBER, "en"),)
    facts = made.details
    assert facts is not None and facts["caller_number"] == "anonymous"


def test_other_calls_are_no_masked_ones() -> None:
    assert arrival(directory(Binding("forward", forward_to=CALLEE))).details is None
    assert arrival(directory()).details is None
