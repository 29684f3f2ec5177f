"""Calls whose agent is a speech model, on virtual time: what differs from other agents."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.calls.effects.agent import OpenAgent
from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events.agent import (
    AgentClosed,
    AgentExit,
    AgentHangup,
    AgentOpened,
    AgentRefused,
    AgentUsage,
    VendorError,
)
from callcontrol.calls.events.media import PlayoutDrained
from callcontrol.calls.plan import FALLBACK_EVENT, RequestInstructions, Stream
from callcontrol.calls.requests import CreateCall
from callcontrol.egress.url_policy import check_url
from callcontrol.errors import ValidationFailed
from callcontrol.instructions.call_plan import plan_of
from callcontrol.instructions.verbs import VerbRules, VerbValues, read_verbs
from callcontrol.models import Binding
from callcontrol.numbers.binding import check_binding, target_errors
from media.streams import choose_model
from tests.support.call_drive import A, Drive, outcome, streamed

MODEL: dict[str, Any] = {"provider": "openai", "model": "gpt-realtime-2", "key": "desk"}
FALLBACK = RequestInstructions("https://customer.example/fallback", event=FALLBACK_EVENT)
QUOTA = VendorError("insufficient_quota", "You exceeded your quota.")
RULES = VerbRules({"IN"}, None, lambda url, *, schemes: check_url(url, schemes=schemes, allow_private=False))


def live(fallback: RequestInstructions | None = None, **fields: Any) -> Drive:
    drive = Drive(Stream(choose_model({**MODEL, **fields}), fallback)).start()
    drive.feed(AgentOpened())
    return drive


def failure(drive: Drive) -> dict[str, Any]:
    (saved,) = [effect for effect in drive.done(Save) if effect.event == "stream.failed"]
    return dict(saved.details)


def test_a_refusal_before_the_answer_names_the_vendors_error() -> None:
    drive = Drive(Stream(choose_model(MODEL))).start()
    drive.feed(AgentRefused("rejected", error=QUOTA))
    assert failure(drive)["reason"] == "rejected"
    assert failure(drive)["error"] == {"code": "insufficient_quota", "message": "You exceeded your quota."}
    assert outcome(drive)[:2] == ("failed", "STREAM_DISCONNECTED")


@pytest.mark.parametrize("answered", [False, True])
def test_the_fallback_is_asked_whenever_the_model_fails(answered: bool) -> None:
    drive = Drive(Stream(choose_model(MODEL), FALLBACK)).start()
    if answered:
        drive.feed(AgentOpened())
        drive.feed(AgentClosed(AgentExit.LOST, 1000, QUOTA, final=True))
    else:
        drive.feed(AgentRefused("rejected", error=QUOTA))
    (asked,) = drive.done(AskWebhook)
    facts = dict(asked.facts)
    assert facts["error_reason"] == "rejected"


def test_a_final_error_is_not_tried_again_and_another_break_is() -> None:
    drive = live()
    drive.feed(AgentClosed(AgentExit.LOST, 1000, QUOTA, final=True))
    assert failure(drive)["reason"] == "rejected"
    again = live()
    again.feed(AgentClosed(AgentExit.LOST, 1006))
    assert again.record.stream is not None and again.record.stream.state == "reconnecting"
    again.after(0.3)
    (opened,) = [effect for effect in again.effects if isinstance(effect, OpenAgent)]
    assert opened.reconnect is not None
    again.feed(AgentRefused("key"))
    assert outcome(again) == ("completed", "STREAM_DISCONNECTED", "stream")


def test_a_limit_of_the_vendor_is_tried_again_and_of_a_customers_server_is_not() -> None:
    drive = live()
    drive.feed(AgentClosed(AgentExit.LOST, 1006))
    drive.after(0.3)
    drive.feed(AgentRefused("rejected", 429, error=QUOTA))
    assert drive.record.stream is not None and drive.record.stream.state == "reconnecting"
    drive.after(1.0)
    drive.feed(AgentOpened())
    assert drive.record.stream.state == "streaming"
    customer = streamed()
    customer.feed(AgentClosed(AgentExit.LOST, 1006))
    customer.after(0.3)
    customer.feed(AgentRefused("http_status", 429))
    assert outcome(customer) == ("completed", "STREAM_DISCONNECTED", "stream")


def test_usage_adds_up_over_sessions_and_until_the_end() -> None:
    drive = live()
    drive.feed(AgentUsage((("responses", 1), ("input_tokens", 10))))
    drive.feed(AgentClosed(AgentExit.LOST, 1006))
    drive.after(0.3)
    drive.feed(AgentOpened())
    drive.feed(AgentHangup(drain=True, ends_call=True))
    drive.feed(AgentUsage((("responses", 1), ("input_tokens", 5))))
    drive.feed(PlayoutDrained(A))
    stream = drive.record.stream
    assert stream is not None and stream.model == "gpt-realtime-2"
    assert stream.usage == {"responses": 2, "input_tokens": 15}


def test_a_request_with_a_model_is_a_stream() -> None:
    request = CreateCall(from_="+918047000001", to="+919812345678", model=MODEL)
    (step,) = plan_of(request, RULES).steps
    assert isinstance(step, Stream) and step.choice.model is not None


def test_wrong_fields_have_their_paths() -> None:
    request = CreateCall(
        from_="+918047000001", to="+919812345678", model={**MODEL, "voice": 7, "colour": "red"}
    )
    with pytest.raises(ValidationFailed) as caught:
        plan_of(request, RULES)
    assert {error.field for error in caught.value.errors} == {"model.voice", "model.colour"}
    values = VerbValues(RULES, "+918047000001")
    verb = {"verb": "model", **MODEL, "provider": "acme", "colour": "red"}
    assert read_verbs(values, "verbs", [verb]) == []
    assert {error.field for error in values.errors} == {"verbs[0].provider", "verbs[0].colour"}


def test_an_address_in_the_operators_network_is_refused() -> None:
    values = VerbValues(RULES, "+918047000001")
    assert values.model("model", {**MODEL, "url": "wss://169.254.169.254/"}) == []
    assert [error.field for error in values.errors] == ["model.url"]


def test_a_verb_may_ask_what_follows() -> None:
    values = VerbValues(RULES, "+918047000001")
    steps = read_verbs(values, "verbs", [{"verb": "model", **MODEL, "action_url": "https://x.example/next"}])
    assert values.errors == [] and isinstance(steps[1], RequestInstructions)


def test_a_binding_names_its_wrong_fields() -> None:
    assert check_binding(Binding("model", model=MODEL)).record is False
    wrong = target_errors("model", {"model": {"provider": "acme"}, "stream_url": "wss://x"})
    assert {error.field for error in wrong} == {
        *("model.provider", "model.model", "model.api_key", "stream_url"),
    }
    assert [error.field for error in target_errors("model", {})] == ["model"]
