"""Applications: which make sense, where they send calls, and what placed calls take from them."""

from datetime import timedelta
from typing import Any

import pytest

from callcontrol.applications.application import changed_application, new_application
from callcontrol.applications.call_defaults import applied
from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.inbound import Arrival, Invitation, receive
from callcontrol.calls.plan import Dial, RequestInstructions, Stream
from callcontrol.calls.requests import CreateCall, StreamRequest
from callcontrol.directory.directory import Changes
from callcontrol.errors import ValidationFailed
from callcontrol.instructions.call_plan import plan_of
from callcontrol.instructions.verbs import VerbRules
from callcontrol.models import Application, Binding
from sip import NameAddr, SipUri
from tests.support.domain import (
    ACCOUNT_SID,
    CALLEE,
    NOW,
    OTHER_SID,
    OWN_NUMBER,
    MemoryDirectory,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)

STREAM = {"name": "Bot", "target": "media_stream", "stream_url": "wss://agent.example/"}
FORWARD = {"name": "Desk", "target": "forward", "forward_to": CALLEE, "timeout_s": 20}
LATER = NOW + timedelta(hours=1)


def make(values: dict[str, Any], app_sid: str = "app-1", account_sid: str = ACCOUNT_SID) -> Application:
    return new_application(app_sid, account_sid, values, NOW)


def wrong_fields(values: dict[str, Any], former: Application | None = None) -> list[str]:
    with pytest.raises(ValidationFailed) as caught:
        make(values) if former is None else changed_application(former, values, LATER)
    return sorted(error.field for error in caught.value.errors)


def test_an_application_has_the_defaults_of_its_target_written_out() -> None:
    made = make({**STREAM, "record_all_calls": True})
    assert (made.binding.sample_rate, made.binding.stream_protocol) == (8000, "exotel")
    assert made.binding.record is None
    assert made.call_binding.record is True
    assert make(FORWARD).call_binding.record is None
    assert make(FORWARD).binding.caller_id == "passthrough"


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({}, ["name", "target"]),
        ({**STREAM, "name": "  "}, ["name"]),
        ({**STREAM, "name": "x" * 129, "stream_url": "http://x/"}, ["name", "stream_url"]),
        ({**STREAM, "forward_to": CALLEE, "colour": "red"}, ["colour", "forward_to"]),
        ({**STREAM, "target": "nowhere"}, ["target"]),
        ({**FORWARD, "forward_to": "12", "timeout_s": 1}, ["forward_to", "timeout"]),
        ({**STREAM, "record": True}, ["record"]),
    ],
)
def test_what_is_no_application(values: dict[str, Any], fields: list[str]) -> None:
    assert wrong_fields(values) == fields


def test_fields_that_are_given_change_and_a_new_target_leaves_the_former_behind() -> None:
    first = make({**STREAM, "sample_rate": 16000, "status_webhook_url": "https://x.example/"})
    renamed = changed_application(first, {"name": "Robot", "sample_rate": 8000}, LATER)
    assert (renamed.name, renamed.binding.sample_rate, renamed.updated_at) == ("Robot", 8000, LATER)
    assert renamed.binding.stream_url == first.binding.stream_url
    moved = changed_application(first, {"target": "forward", "forward_to": CALLEE}, LATER)
    assert (moved.binding.target, moved.binding.stream_url, moved.binding.sample_rate) == (
        "forward",
        None,
        None,
    )
    assert moved.binding.status_webhook_url == "https://x.example/"
    quiet = changed_application(moved, {"status_webhook_url": None, "record_all_calls": True}, LATER)
    assert quiet.binding.status_webhook_url is None and quiet.record_all_calls
    heard = changed_application(first, {"transcribe": True, "transcription_language": "hi-IN"}, LATER)
    elsewhere = changed_application(heard, {"target": "forward", "forward_to": CALLEE}, LATER)
    assert (elsewhere.binding.transcribe, elsewhere.binding.transcription_language) == (True, "hi-IN")
    assert wrong_fields({"target": "forward"}, first) == ["forward_to"]
    assert wrong_fields({"forward_to": CALLEE, "app_sid": "mine"}, first) == ["app_sid", "forward_to"]


def town(*applications: Application, carrier_app: str | None = None, **number: Any) -> MemoryDirectory:
    routes = MemoryDirectory()
    routes.put(
        accounts=[make_account(), make_account(OTHER_SID)],
        carriers=[make_carrier(account_sid=ACCOUNT_SID, app_sid=carrier_app)],
        gateways=[make_gateway()],
        numbers=[make_number(carrier_sid="carrier-1", **number)],
    )
    routes.apply(Changes(routes.revision + 1, applications=[(item, True) for item in applications]))
    return routes


def test_the_own_binding_wins_then_the_application_then_that_of_the_carrier() -> None:
    first, second = make(STREAM, "app-1"), make(FORWARD, "app-2")
    bound = Binding("media_stream", stream_url="wss://own.example/")
    cases: list[tuple[dict[str, Any], str | None, str | None]] = [
        ({"binding": bound, "app_sid": "app-1"}, "app-2", None),
        ({"app_sid": "app-1"}, "app-2", "app-1"),
        ({}, "app-2", "app-2"),
        ({"app_sid": "gone"}, "app-2", "app-2"),
        ({}, None, None),
    ]
    for number, carrier_app, expected in cases:
        routes = town(first, second, carrier_app=carrier_app, **number)
        found = routes.inbound_binding(make_number(carrier_sid="carrier-1", **number))
        assert found.app_sid == expected
        if "binding" in number:
            assert found.binding is bound
    foreign = town(make(STREAM, "app-1", OTHER_SID), carrier_app="app-1")
    assert foreign.inbound_binding(make_number(carrier_sid="carrier-1")).binding is None


def test_a_deleted_application_is_forgotten() -> None:
    application = make(STREAM)
    routes = town(application, app_sid="app-1")
    routes.apply(Changes(routes.revision + 1, applications=[(application, False)]))
    assert routes.application("app-1") is None
    assert routes.inbound_binding(make_number(app_sid="app-1")).binding is None


def test_a_call_in_goes_by_the_application() -> None:
    routes = town(make({**FORWARD, "record_all_calls": True}), app_sid="app-1")
    uri = SipUri("sip", user=OWN_NUMBER, host="127.0.0.1")
    invitation = Invitation(("127.0.0.1", 5080), uri, NameAddr(None, uri), NameAddr(None, uri))
    arrival = receive(invitation, routes, PRODUCTS, allowed_countries={"IN"}, time_limit_s=60.0)
    assert isinstance(arrival, Arrival) and arrival.plan is not None
    assert (arrival.inbound.app_sid, arrival.plan.record) == ("app-1", True)
    assert isinstance(arrival.plan.steps[0], Dial)


def request(**changes: Any) -> CreateCall:
    return CreateCall(**{"from_": OWN_NUMBER, "to": CALLEE, "app_sid": "app-1", **changes})


@pytest.mark.parametrize(
    ("given", "language"),
    [
        ({}, "hi-IN"),
        ({"transcribe": True}, "hi-IN"),
        ({"webhook_url": "https://x"}, "hi-IN"),
        ({"transcription_language": "ta-IN"}, "ta-IN"),
        ({"transcribe": True, "transcription_language": "en-IN"}, "en-IN"),
    ],
)
def test_a_placed_call_is_transcribed_if_it_or_its_application_is(given: Any, language: str) -> None:
    application = make({**FORWARD, "transcribe": True, "transcription_language": "hi-IN"})
    asked = applied(request(**given), application)
    assert (asked.transcribe, asked.transcription_language) == (True, language)
    assert not applied(request(**given), make(FORWARD)).transcribe or given.get("transcribe")


def test_the_usual_language_is_that_of_a_request_without_one() -> None:
    asked = applied(request(transcribe=True), make(FORWARD))
    assert plan_of(asked, VerbRules({"IN"}, (), lambda url, schemes: None)).transcribe == "en-IN"


def steps(asked: CreateCall) -> Any:
    return plan_of(asked, VerbRules({"IN"}, (), lambda url, schemes: None)).steps


def test_a_placed_call_streams_to_the_agent_of_its_application() -> None:
    application = make(
        {
            **STREAM,
            "custom_parameters": {"a": "1"},
            "status_webhook_url": "https://x.example/",
            "record_all_calls": True,
        }
    )
    given = {"sample_rate": 16000, "custom_parameters": {"b": "2"}}
    asked = applied(request(stream_fields=given, needs_stream=True), application)
    assert (asked.record, asked.status_webhook_url) == (True, "https://x.example/")
    (step,) = steps(asked)
    assert isinstance(step, Stream)
    assert (step.choice.url, step.choice.sample_rate) == ("wss://agent.example/", 16000)
    assert step.choice.custom_parameters == (("a", "1"), ("b", "2"))


@pytest.mark.parametrize(
    ("events", "of_application", "expected"),
    [
        (None, ["completed"], ("completed",)),
        (None, None, None),
        (("answered",), ["completed"], ("answered",)),
        ((), ["completed"], ()),
    ],
)
def test_a_placed_call_is_told_as_its_application_says(
    events: tuple[str, ...] | None, of_application: list[str] | None, expected: tuple[str, ...] | None
) -> None:
    chosen = {} if of_application is None else {"status_webhook_events": of_application}
    application = make({**FORWARD, "status_webhook_url": "https://x.example/", **chosen})
    assert applied(request(status_webhook_events=events), application).status_webhook_events == expected


def test_what_the_request_says_wins() -> None:
    asked = applied(
        request(stream=StreamRequest("wss://mine.example/"), status_webhook_url="https://mine.example/"),
        make({**FORWARD, "status_webhook_url": "https://x.example/"}),
    )
    assert asked.status_webhook_url == "https://mine.example/"
    (step,) = steps(asked)
    assert isinstance(step, Stream)


def test_a_placed_call_is_forwarded_as_its_application_says() -> None:
    (step,) = steps(applied(request(), make({**FORWARD, "caller_id": "+918047491800"})))
    assert isinstance(step, Dial)
    assert (str(step.party.target), step.party.caller_id, step.party.ring_timeout_s) == (
        CALLEE,
        "+918047491800",
        20.0,
    )
    (step,) = steps(applied(request(), make({**FORWARD, "forward_to": "sip:desk@127.0.0.1:5080"})))
    assert (str(step.party.target), step.party.caller_id) == ("sip:desk@127.0.0.1:5080", OWN_NUMBER)


def test_a_call_for_an_agent_needs_an_application_with_a_stream() -> None:
    with pytest.raises(ValidationFailed) as caught:
        applied(request(needs_stream=True), make(FORWARD))
    assert [error.field for error in caught.value.errors] == ["stream_url"]


def test_a_placed_call_asks_the_server_or_the_agent_of_its_application() -> None:
    asked = applied(request(), make({"name": "W", "target": "webhook", "webhook_url": "https://w.example/"}))
    assert (asked.webhook_url, asked.webhook_method) == ("https://w.example/", "POST")
    (step,) = steps(asked)
    assert isinstance(step, RequestInstructions)
    agent_id, workspace_id = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "12")
    agent = {"name": "A", "target": "voice_agent", "agent_id": agent_id, "workspace_id": workspace_id}
    assert applied(request(needs_stream=True), make(agent)).agent_id == agent_id
