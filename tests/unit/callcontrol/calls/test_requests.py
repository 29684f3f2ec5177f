"""From a call request to a plan, with every wrong value named at once."""

from typing import Any

import pytest

from callcontrol.calls.plan import Dial, Hangup, Pause, Plan, Play, SendDtmf, Stream
from callcontrol.calls.requests import CreateCall, StreamRequest
from callcontrol.errors import Forbidden, ValidationFailed
from callcontrol.instructions.call_plan import plan_of
from callcontrol.instructions.verbs import VerbRules
from callcontrol.models.parties import PhoneTarget, SipTarget
from tests.support.domain import CALLEE, OWN_NUMBER, OpenDestinations

INDIA = frozenset({"IN"})


def plan(*verbs: dict[str, Any], **request: Any) -> Plan:
    values: dict[str, Any] = {"from_": OWN_NUMBER, "to": CALLEE, "verbs": verbs or None, **request}
    return plan_of(CreateCall(**values), VerbRules(INDIA, {"en/hello"}, OpenDestinations().check_url))


def wrong(*verbs: dict[str, Any], **request: Any) -> list[str]:
    with pytest.raises(ValidationFailed) as refusal:
        plan(*verbs, **request)
    return [error.field for error in refusal.value.errors]


def test_all_verbs() -> None:
    made = plan(
        {"verb": "play", "url": "prompt:en/hello"},
        {"verb": "play", "url": "https://files.example/a.wav"},
        {"verb": "pause", "length": 1.5},
        {"verb": "dial", "target": [{"type": "phone", "number": "9812345678"}], "timeout": 20},
        {"verb": "dial", "target": [{"type": "sip", "sip_uri": "sip:a@10.0.0.1"}], "caller_id": "8047491800"},
        {"verb": "stream", "url": "wss://agent.example/", "sample_rate": 16000},
        {"verb": "send_digits", "digits": "1w#"},
        {"verb": "hangup"},
        send_digits="9",
        record=True,
        recording_channels="mono",
        time_limit_s=100,
        timeout_s=10,
    )
    kinds = [type(step) for step in made.steps]
    assert kinds == [SendDtmf, Play, Play, Pause, Dial, Dial, Stream, SendDtmf, Hangup]
    first, second = [step.party for step in made.steps if isinstance(step, Dial)]
    assert (first.target, first.caller_id, first.ring_timeout_s) == (
        PhoneTarget("+919812345678"),
        OWN_NUMBER,
        20.0,
    )
    assert (second.target, second.caller_id) == (SipTarget("a", "10.0.0.1"), "+918047491800")
    assert (made.record, made.recording_channels, made.time_limit_s, made.dials) == (True, 1, 100, True)
    assert made.dial is not None and made.dial.ring_timeout_s == 10


def test_a_stream() -> None:
    made = plan(stream=StreamRequest("wss://u:p@agent.example/?x=1", {"sample_rate": 16000}))
    (step,) = made.steps
    assert isinstance(step, Stream)
    assert (step.choice.url, step.choice.sample_rate) == ("wss://agent.example/?x=1", 16000)


def test_every_wrong_value_is_named() -> None:
    assert wrong(
        {"verb": "dance"},
        {"verb": "play", "url": "prompt:en/none"},
        {"verb": "play", "url": "ftp://x"},
        {"verb": "play"},
        {"verb": "pause", "length": 0},
        {"verb": "pause", "length": "1"},
        {"verb": "pause", "length": True},
        {"verb": "pause", "length": float("nan")},
        {"verb": "dial"},
        {"verb": "dial", "target": [{"number": "x"}]},
        {"verb": "dial", "target": [{"type": "sip", "number": "9812345678"}]},
        {"verb": "dial", "target": [{"number": "9812345678"}], "caller_id": "x"},
        {"verb": "stream", "url": "http://x"},
        {"verb": "stream", "url": "ws://x", "encoding": "opus"},
        {"verb": "send_digits", "digits": "x"},
        {"verb": "send_digits", "digits": "1" * 65},
        {},
        from_="x",
        to="y",
        send_digits="",
    ) == [
        "from",
        "to",
        "verbs[0].verb",
        "verbs[1].url",
        "verbs[2].url",
        "verbs[3].url",
        "verbs[4].length",
        "verbs[5].length",
        "verbs[6].length",
        "verbs[7].length",
        "verbs[8].target",
        "verbs[9].target[0].number",
        "verbs[10].target[0].sip_uri",
        "verbs[11].caller_id",
        "verbs[12].url",
        "verbs[13].encoding",
        "verbs[14].digits",
        "verbs[15].digits",
        "verbs[16].verb",
        "send_digits",
    ]


def test_urls_that_must_not_be_connected_to_are_named_too() -> None:
    url = "//forbidden.example/"
    assert wrong(
        {"verb": "play", "url": f"https:{url}"},
        {"verb": "stream", "url": f"ws:{url}"},
        status_webhook_url=f"https:{url}",
    ) == ["verbs[0].url", "verbs[1].url", "status_webhook_url"]
    assert wrong(stream=StreamRequest(f"ws:{url}")) == ["stream_url"]


def test_one_thing_to_do_and_not_too_many() -> None:
    assert wrong() == ["stream_url"]
    assert wrong({"verb": "hangup"}, stream=StreamRequest("ws://x")) == ["stream_url"]
    assert wrong(*[{"verb": "hangup"}] * 51) == ["verbs"]
    assert wrong(stream=StreamRequest("nonsense")) == ["stream_url"]
    assert wrong(stream=StreamRequest("ws://x", {"encoding": "opus"})) == ["encoding"]


def test_the_guard_comes_before_everything_else() -> None:
    with pytest.raises(Forbidden):
        plan({"verb": "hangup"}, to="+12025550123")
    with pytest.raises(Forbidden):
        plan({"verb": "dial", "target": [{"number": "+12025550123"}]})
