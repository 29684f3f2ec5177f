"""jambonz's verbs: what each means here, what of them is refused by name, and the way behind action hooks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callcontrol.calls.plan import (
    Annotate,
    Answer,
    ChangeRecording,
    ChangeTranscription,
    Dial,
    Gather,
    Hangup,
    JoinConference,
    Pause,
    Play,
    Reject,
    RequestInstructions,
    Say,
    SendDtmf,
    SendMessage,
    Step,
    Stream,
    TransferParty,
)
from callcontrol.calls.records.call_info import CUSTOMER_DATA, HEARD_LANGUAGE, SPOKEN_LANGUAGE
from callcontrol.errors import DomainError, ValidationFailed
from callcontrol.instructions.instructions import read_instructions
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from callcontrol.models import CallRecord
from callcontrol.trunks.inbound_invite import Caller
from tests.support.domain import CALLEE, OWN_NUMBER, OpenDestinations, make_ringing
from tests.support.examples import examples

RULES = VerbRules({"IN"}, {"beep"}, OpenDestinations().check_url)
URL = "https://customer.example/calls/in"
CALLER = Caller("+919811111111", "Anita")
RECORD = make_ringing()
JAMBONZ = WebhookDefaults("jambonz")
AFTER = "https://customer.example/after"


def read(answer: object, *, kind: str = "application/json", record: CallRecord = RECORD) -> list[Step]:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return read_instructions(kind, body, RULES, record, caller=CALLER, url=URL, webhooks=JAMBONZ)


def problems(*verbs: object, record: CallRecord = RECORD) -> dict[str, str]:
    with pytest.raises(ValidationFailed) as refusal:
        read(list(verbs), record=record)
    return {error.field: error.message for error in refusal.value.errors}


def hook(event: str, url: str = AFTER, method: Any = "POST", **facts: int | str) -> RequestInstructions:
    return RequestInstructions(url, method, event, format="jambonz", facts=tuple(facts.items()))


MESSAGE = {"verb": "message", "to": CALLEE, "from": OWN_NUMBER, "text": "Your order."}
SPEAK = {"vendor": "google", "language": "hi-IN", "voice": "hi-IN-Wavenet-A"}


@pytest.mark.parametrize(
    ("verb", "steps"),
    [
        ({"verb": "answer"}, [Answer()]),
        ({"verb": "say", "text": "Hello"}, [Say("Hello")]),
        ({"verb": "say", "text": ["Hello"], "id": "greeting", "loop": "2"}, [Say("Hello", loops=2)]),
        ({"verb": "say", "text": "नमस्ते", "synthesizer": SPEAK}, [Say("नमस्ते", "hi-IN")]),
        (
            {"verb": "play", "url": "hello.wav", "loop": "forever"},
            [Play("https://customer.example/calls/hello.wav", 100)],
        ),
        (
            {"verb": "play", "url": ["https://a.example/1.wav", "https://a.example/2.wav"]},
            [Play("https://a.example/1.wav"), Play("https://a.example/2.wav")],
        ),
        ({"verb": "pause", "length": 3}, [Pause(3.0)]),
        ({"verb": "pause", "length": 0}, []),
        ({"verb": "dtmf", "dtmf": "1w#", "duration": 250}, [SendDtmf("1w#")]),
        ({"verb": "hangup"}, [Hangup()]),
        ({"verb": "hangup", "headers": {}}, [Hangup()]),
        ({"verb": "sip:decline", "status": 486, "reason": "Busy here"}, [Reject(486)]),
        ({"verb": "redirect", "actionHook": "/after"}, [hook("call.redirected")]),
        (
            {"verb": "redirect", "actionHook": {"url": "/after", "method": "get"}},
            [hook("call.redirected", method="GET")],
        ),
        ({"verb": "tag", "data": {"customer": 42}}, [Annotate({CUSTOMER_DATA: {"customer": 42}})]),
        ({"verb": "config", "record": {"action": "startCallRecording"}}, [ChangeRecording("start")]),
        ({"verb": "config", "record": {"action": "pauseCallRecording"}}, [ChangeRecording("pause")]),
        ({"verb": "config", "synthesizer": SPEAK}, [Annotate({SPOKEN_LANGUAGE: "hi-IN"})]),
        ({"verb": "config", "listen": {"enable": False}, "recognizer": {"vendor": "google"}}, []),
        (
            {"verb": "transcribe", "transcriptionHook": "/after", "recognizer": {"language": "hi-IN"}},
            [ChangeTranscription("hi-IN", AFTER, waits=True)],
        ),
        (
            {"verb": "config", "transcribe": {"enable": True, "transcriptionHook": {"url": "/after"}}},
            [ChangeTranscription("en-IN", AFTER)],
        ),
        ({"verb": "config", "transcribe": {"enable": False}}, [ChangeTranscription(None)]),
        (
            {"verb": "config", "recognizer": {"vendor": "google", "language": "hi-IN"}},
            [Annotate({HEARD_LANGUAGE: "hi-IN"})],
        ),
        (
            {**MESSAGE, "media": None, "actionHook": "/after"},
            [SendMessage(CALLEE, "Your order.", OWN_NUMBER, hook("call.messaged"))],
        ),
    ],
)
def test_every_verb_becomes_its_steps(verb: dict[str, Any], steps: list[Step]) -> None:
    assert read([verb]) == steps


def test_a_gather_asks_its_hook_with_keys_and_without() -> None:
    verb = {
        "verb": "gather",
        "input": ["digits"],
        "actionHook": "/after",
        "numDigits": 4,
        "finishOnKey": "#",
        "timeout": 8,
        "interDigitTimeout": 3,
        "dtmfBargein": True,
        "say": {"text": "Your number, please.", "synthesizer": SPEAK},
        "play": {"url": ["prompt:beep"]},
    }
    prompts = (Say("Your number, please.", "hi-IN"), Play("prompt:beep"))
    expected = Gather(prompts, 4, "#", 8.0, hook("call.gathered"), True, 3.0)
    assert read([verb]) == [expected]


def test_a_gather_without_a_finishing_key_has_none_and_may_need_several_digits() -> None:
    (step,) = read([{"verb": "gather", "actionHook": "/after", "minDigits": 4, "maxDigits": 6}])
    assert step == Gather((), 6, "", 5.0, hook("call.gathered", min_digits=4), True)
    assert read([{"verb": "gather"}]) == [Gather((), 32, "")]


@pytest.mark.parametrize(
    ("given", "keys"),
    [(["speech"], False), (["speech", "digits"], True), (["dtmf", "speech"], True)],
)
def test_a_gather_of_speech_listens_in_the_language_of_its_recogniser(given: list[str], keys: bool) -> None:
    recognizer = {"vendor": "deepgram", "language": "hi-IN", "hints": ["sales"]}
    verb = {"verb": "gather", "input": given, "actionHook": "/after", "recognizer": recognizer}
    (step,) = read([{**verb, "bargein": True, "speechTimeout": 2}])
    action = hook("call.gathered", recognizer_language="hi-IN")
    assert step == Gather((), 32, "", 5.0, action, True, language="hi-IN", keys=keys)


def test_the_language_of_a_recogniser_holds_for_later_verbs_and_answers() -> None:
    gather = {"verb": "gather", "input": ["speech"]}
    config = {"verb": "config", "recognizer": {"language": "ta-IN"}}
    languages = [step.language for step in read([gather, config, gather]) if isinstance(step, Gather)]
    assert languages == ["en-IN", "ta-IN"]
    (later,) = read([gather], record=make_ringing(details={HEARD_LANGUAGE: "bn-IN"}))
    assert isinstance(later, Gather) and later.language == "bn-IN"
    # Where only keys are collected, it chooses nothing.
    assert read([{"verb": "gather", "recognizer": {"language": "ta-IN"}}]) == [Gather((), 32, "")]


def test_a_dial_reaches_one_party() -> None:
    verb = {
        "verb": "dial",
        "target": [{"type": "phone", "number": CALLEE}],
        "answerOnBridge": True,
        "timeout": 300,
        "timeLimit": 60,
        "headers": {"X-Order": "7"},
        "callerId": OWN_NUMBER,
        "actionHook": {"url": "/after", "method": "POST"},
    }
    (step,) = read([verb])
    assert isinstance(step, Dial)
    assert (str(step.party.target), step.party.caller_id, step.party.ring_timeout_s) == (
        CALLEE,
        OWN_NUMBER,
        120,
    )
    assert (step.time_limit_s, step.party.headers) == (60.0, (("X-Order", "7"),))
    assert step.action == hook("call.dialled")


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ({"type": "sip", "sipUri": "sip:desk@pbx.example", "name": "Desk"}, "sip:desk@pbx.example"),
        ({"type": "user", "name": "bob@pbx.example"}, "sip:bob@pbx.example"),
    ],
)
def test_a_dial_without_answer_on_bridge_answers_first(target: dict[str, str], address: str) -> None:
    answer, dial = read([{"verb": "dial", "target": [target]}])
    assert answer == Answer() and isinstance(dial, Dial)
    assert str(dial.party.target) == address


def test_the_headers_of_a_target_are_those_of_its_invite() -> None:
    target = {"type": "phone", "number": CALLEE, "headers": {"X-Side": "b"}}
    _, dial = read([{"verb": "dial", "target": [target]}])
    assert isinstance(dial, Dial) and dial.party.headers == (("X-Side", "b"),)


@pytest.mark.parametrize("name", ["conference", "room"])
def test_a_conference_is_joined_and_its_hook_follows(name: str) -> None:
    verb = {"verb": name, "name": "team", "joinMuted": True, "beep": False, "endConferenceOnExit": True}
    room = JoinConference("team", True, True, True, False)
    assert read([verb]) == [room]
    assert read([{**verb, "actionHook": "/after"}]) == [room, hook("call.dialled")]


@pytest.mark.parametrize("name", ["listen", "stream"])
def test_an_agent_hears_the_call_by_the_dialect_of_jambonz(name: str) -> None:
    verb = {
        "verb": name,
        "url": "wss://bot.example/ws",
        "sampleRate": 16000,
        "mixType": "mono",
        "metadata": {"customer": 42, "vip": True},
        "wsAuth": {"username": "bot", "password": "secret"},
        "bidirectionalAudio": {"enabled": True, "streaming": True, "sampleRate": 16000},
        "actionHook": "/after",
    }
    stream, then = read([verb])
    assert isinstance(stream, Stream) and then == hook("call.streamed")
    assert (stream.choice.protocol, stream.choice.sample_rate) == ("jambonz", 16000)
    assert dict(stream.choice.custom_parameters) == {"customer": "42", "vip": "true"}
    assert stream.choice.auth is not None


@pytest.mark.parametrize("address", ["sip:desk@pbx.example", CALLEE])
def test_a_refer_transfers_the_party(address: str) -> None:
    (step,) = read([{"verb": "sip:refer", "referTo": address, "actionHook": "/after"}])
    assert isinstance(step, TransferParty)
    assert (str(step.party.target), step.action) == (address, hook("call.referred"))


def test_a_language_of_the_session_applies_to_later_texts_and_answers() -> None:
    config = {"verb": "config", "synthesizer": SPEAK}
    spoken = [
        {"verb": "say", "text": "a"},
        {"verb": "say", "text": "b", "synthesizer": {"language": "en-IN"}},
    ]
    assert read([config, *spoken])[1:] == [Say("a", "hi-IN"), Say("b", "en-IN")]
    later = make_ringing(details={SPOKEN_LANGUAGE: "ta-IN"})
    assert read(spoken, record=later) == [Say("a", "ta-IN"), Say("b", "en-IN")]


def test_barge_in_lets_keys_interrupt_the_prompts_behind_it() -> None:
    barge_in = {"enable": True, "input": ["digits"], "numDigits": 1, "actionHook": "/after"}
    answer = [
        {"verb": "say", "text": "Before."},
        {"verb": "config", "bargeIn": barge_in},
        {"verb": "say", "text": "One."},
        {"verb": "play", "url": "prompt:beep"},
        {"verb": "answer"},
        {"verb": "pause", "length": 1},
        {"verb": "config", "bargeIn": {"enable": False}},
        {"verb": "say", "text": "After."},
    ]
    before, first, answered, second, after = read(answer)
    keys = {"num_digits": 1, "finish_on_key": "", "timeout_s": 0.05, "inter_digit_s": 5.0}
    action = hook("call.gathered")
    assert (before, answered, after) == (Say("Before."), Answer(), Say("After."))
    assert first == Gather((Say("One."), Play("prompt:beep")), action=action, **keys)  # type: ignore[arg-type]  # typed by name
    assert second == Gather((Pause(1.0),), action=action, **keys)  # type: ignore[arg-type]  # typed by name


def test_the_list_goes_on_behind_a_hook_that_is_answered_without_verbs() -> None:
    gather, dial, redirect, end = read(
        [
            {"verb": "gather", "actionHook": "/keys"},
            {
                "verb": "dial",
                "answerOnBridge": True,
                "actionHook": "/dialled",
                "target": [{"type": "phone", "number": CALLEE}],
            },
            {"verb": "redirect", "actionHook": "/next"},
            {"verb": "hangup"},
        ]
    )
    assert isinstance(gather, Gather) and gather.action is not None
    assert gather.action.otherwise == (dial, redirect, end)
    assert isinstance(dial, Dial) and dial.action is not None
    assert dial.action.otherwise == (redirect, end)
    assert isinstance(redirect, RequestInstructions) and redirect.otherwise == (end,)


def test_a_long_list_of_hooks_can_be_shown_and_compared() -> None:
    steps = read([{"verb": "gather", "actionHook": "/keys"}] * 50)
    assert len(repr(steps)) < 50_000
    assert steps == read([{"verb": "gather", "actionHook": "/keys"}] * 50)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"[]"),
        ("application/json", b"{}"),
        ("application/json", b'{"ok": true}'),
        ("application/json", b""),
        ("text/plain", b"OK"),
        ("application/octet-stream", b"x"),
    ],
)
def test_an_answer_without_verbs_has_no_instructions(kind: str, body: bytes) -> None:
    assert read(body, kind=kind) == []


@pytest.mark.parametrize(
    ("verb", "field"),
    [
        ({"verb": "enqueue", "name": "sales"}, "verb"),
        ({"verb": "dequeue", "name": "sales"}, "verb"),
        ({"verb": "agent", "llm": {"vendor": "openai"}}, "verb"),
        ({"verb": "qwen_s2s", "llmOptions": {}}, "verb"),
        ({"verb": "transcribe"}, "transcriptionHook"),
        ({"verb": "transcribe", "transcriptionHook": ["/a"]}, "transcriptionHook"),
        ({"verb": "transcribe", "transcriptionHook": "https://forbidden.example/x"}, "transcriptionHook"),
        (
            {"verb": "transcribe", "transcriptionHook": {"url": "/a", "method": "GET"}},
            "transcriptionHook.method",
        ),
        (
            {"verb": "transcribe", "transcriptionHook": "/a", "recognizer": {"language": 7}},
            "recognizer.language",
        ),
        ({"verb": "transcribe", "transcriptionHook": "/a", "earlyMedia": True}, "earlyMedia"),
        ({"verb": "transcribe", "transcriptionHook": "/a", "translate": {}}, "translate"),
        ({"verb": "config", "transcribe": {"enable": True}}, "transcribe.transcriptionHook"),
        ({"verb": "config", "transcribe": {"enable": 1, "transcriptionHook": "/a"}}, "transcribe"),
        ({"verb": "message", "to": CALLEE, "from": OWN_NUMBER}, "text"),
        ({"verb": "message", "to": "12", "from": OWN_NUMBER, "text": "a"}, "to"),
        ({"verb": "message", "from": OWN_NUMBER, "text": "a"}, "to"),
        ({**MESSAGE, "from": "agent"}, "from"),
        ({**MESSAGE, "text": " "}, "text"),
        ({**MESSAGE, "text": ["a"]}, "text"),
        ({**MESSAGE, "media": "https://a.example/1.png"}, "media"),
        ({**MESSAGE, "carrier": "a"}, "carrier"),
        ({**MESSAGE, "account_sid": "a"}, "account_sid"),
        ({**MESSAGE, "message_sid": "a"}, "message_sid"),
        ({**MESSAGE, "actionHook": "https://forbidden.example/x"}, "actionHook"),
        ({"verb": "sing"}, "verb"),
        ({"verb": 5}, "verb"),
        ("hangup", "verb"),
        ({"verb": "say"}, "text"),
        ({"verb": "say", "text": ["a", "b"]}, "text"),
        ({"verb": "say", "text": "<speak>Hello</speak>"}, "text"),
        ({"verb": "say", "text": "a", "stream": True}, "stream"),
        ({"verb": "say", "text": "a", "synthesizer": {"language": "xx-YY"}}, "synthesizer.language"),
        ({"verb": "say", "text": "a", "synthesizer": "google"}, "synthesizer"),
        ({"verb": "play"}, "url"),
        ({"verb": "play", "url": []}, "url"),
        ({"verb": "play", "url": "prompt:beep", "seekOffset": 800}, "seekOffset"),
        ({"verb": "play", "url": "prompt:beep", "actionHook": "/after"}, "actionHook"),
        ({"verb": "play", "url": "prompt:beep", "loop": 1000}, "loop"),
        ({"verb": "pause", "length": 601}, "length"),
        ({"verb": "gather", "input": ["speech", "smoke"]}, "input"),
        ({"verb": "gather", "input": []}, "input"),
        ({"verb": "gather", "input": "speech"}, "input"),
        ({"verb": "gather", "input": ["speech"], "recognizer": "google"}, "recognizer"),
        ({"verb": "gather", "input": ["speech"], "recognizer": {"language": "?"}}, "recognizer.language"),
        ({"verb": "config", "recognizer": {"language": 7}}, "recognizer.language"),
        ({"verb": "gather", "numDigits": 99}, "numDigits"),
        ({"verb": "gather", "minDigits": 0}, "minDigits"),
        ({"verb": "gather", "timeout": 0}, "timeout"),
        ({"verb": "gather", "interDigitTimeout": 100}, "interDigitTimeout"),
        ({"verb": "gather", "finishOnKey": "##"}, "finishOnKey"),
        ({"verb": "gather", "dtmfBargein": False}, "dtmfBargein"),
        ({"verb": "gather", "fillerNoise": {"enable": True}}, "fillerNoise"),
        ({"verb": "gather", "say": {"text": ""}}, "say.text"),
        ({"verb": "gather", "play": {"url": "ftp://a.example/"}}, "play.url"),
        ({"verb": "gather", "say": "Hello"}, "say"),
        ({"verb": "gather", "actionHook": {"url": "/a", "username": "u"}}, "actionHook.username"),
        ({"verb": "gather", "actionHook": 5}, "actionHook"),
        ({"verb": "gather", "actionHook": {"url": "/a", "method": "PUT"}}, "actionHook.method"),
        ({"verb": "dial"}, "target"),
        ({"verb": "dial", "target": [{"type": "teams", "number": CALLEE}]}, "target[0].type"),
        ({"verb": "dial", "target": [{"type": "phone", "number": "x"}]}, "target[0].number"),
        ({"verb": "dial", "target": [{"type": "sip", "sipUri": "x"}]}, "target[0].sipUri"),
        ({"verb": "dial", "target": [{"type": "user", "name": "bob"}]}, "target[0].name"),
        (
            {"verb": "dial", "target": [{"type": "phone", "number": CALLEE, "trunk": "x"}]},
            "target[0].trunk",
        ),
        (
            {"verb": "dial", "target": [{"type": "phone", "number": CALLEE}], "confirmHook": "/c"},
            "confirmHook",
        ),
        (
            {"verb": "dial", "target": [{"type": "phone", "number": CALLEE}], "headers": {"From": "x"}},
            "headers.From",
        ),
        ({"verb": "dial", "target": [{"type": "phone", "number": CALLEE}], "timeout": "x"}, "timeout"),
        ({"verb": "dial", "target": [{"type": "phone", "number": CALLEE}], "timeLimit": 0}, "timeLimit"),
        ({"verb": "dial", "target": [{"type": "phone", "number": CALLEE}], "callerId": "x"}, "callerId"),
        ({"verb": "conference"}, "name"),
        ({"verb": "conference", "name": "a", "waitHook": "/wait"}, "waitHook"),
        ({"verb": "conference", "name": "a", "maxParticipants": 1}, "maxParticipants"),
        ({"verb": "listen"}, "url"),
        ({"verb": "listen", "url": "wss://a.example/", "sampleRate": 44100}, "sampleRate"),
        ({"verb": "listen", "url": "wss://a.example/", "mixType": "stereo"}, "mixType"),
        ({"verb": "listen", "url": "wss://a.example/", "maxLength": 5}, "maxLength"),
        ({"verb": "listen", "url": "wss://a.example/", "metadata": {"a": {}}}, "metadata"),
        ({"verb": "listen", "url": "wss://a.example/", "wsAuth": {"token": "x"}}, "wsAuth"),
        ({"verb": "listen", "url": "wss://a.example/", "wsAuth": {"username": "", "password": ""}}, "wsAuth"),
        ({"verb": "redirect"}, "actionHook"),
        ({"verb": "hangup", "headers": {"X-A": "1"}}, "headers"),
        ({"verb": "sip:decline"}, "status"),
        ({"verb": "sip:decline", "status": 200}, "status"),
        ({"verb": "sip:refer"}, "referTo"),
        ({"verb": "sip:refer", "referTo": "sip:desk@pbx.example", "eventHook": "/e"}, "eventHook"),
        ({"verb": "tag"}, "data"),
        ({"verb": "tag", "data": {"a": "x" * 5000}}, "data"),
        ({"verb": "dtmf", "dtmf": "abc"}, "dtmf"),
        ({"verb": "config", "record": {"action": "sing"}}, "record.action"),
        ({"verb": "config", "record": {"action": "stopCallRecording", "headers": {}}}, "record.headers"),
        ({"verb": "config", "listen": {"enable": True, "url": "wss://a.example/"}}, "listen"),
        ({"verb": "config", "amd": {"actionHook": "/amd"}}, "amd"),
        ({"verb": "config", "bargeIn": {"enable": True, "input": ["speech"]}}, "bargeIn.input"),
        ({"verb": "config", "bargeIn": {"enable": True, "sticky": True}}, "bargeIn.sticky"),
        ({"verb": "config", "bargeIn": {}}, "bargeIn"),
    ],
)  # fmt: skip
def test_what_is_not_done_is_refused_by_its_name(verb: object, field: str) -> None:
    assert list(problems({"verb": "answer"}, verb)) == [f"verbs[1].{field}"]


def test_all_wrong_fields_are_named_at_once() -> None:
    wrong = problems(
        {"verb": "dial", "target": [{"type": "phone", "number": "x"}], "timeLimit": 0, "dialMusic": "x"},
        {"verb": "play", "url": ["prompt:none", "prompt:beep"], "loop": 500},
        {"verb": "enqueue", "name": "a"},
    )
    assert set(wrong) == {
        "verbs[0].target[0].number",
        "verbs[0].timeLimit",
        "verbs[0].dialMusic",
        "verbs[1].url",
        "verbs[1].loop",
        "verbs[2].verb",
    }
    assert "queues" in wrong["verbs[2].verb"]


def test_a_decline_is_for_a_caller_who_waits() -> None:
    placed = make_ringing(direction="outbound")
    assert list(problems({"verb": "sip:decline", "status": 486}, record=placed)) == ["verbs[0].verb"]


@pytest.mark.parametrize("answer", [[{"verb": "hangup"}] * 51, 5, "hangup"])
def test_an_answer_is_a_list_of_at_most_fifty_verbs(answer: object) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        read(answer)
    assert [error.field for error in refusal.value.errors] == ["body"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["digits", "speech", "google"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["vendor", "model", "auth", "llmOptions", "recognizer"]
    + ["text", "url", "loop", "target", "actionHook", "input", "say", "play", "timeout", "headers", "data"]
    + ["bargeIn", "record", "synthesizer", "referTo", "name", "dtmf", "status", "metadata", "wsAuth", "id"]
)
NAMES = st.sampled_from(
    [
        "say",
        "play",
        "gather",
        "dial",
        "listen",
        "config",
        "tag",
        "dtmf",
        "sip:refer",
        "sip:decline",
        "redirect",
    ]
    + ["conference", "pause", "hangup", "llm", "deepgram_s2s", "google_s2s"]
)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(NAMES, st.dictionaries(FIELDS, VALUES, max_size=5)), max_size=4))
def test_no_answer_does_harm(verbs: list[tuple[str, dict[str, Any]]]) -> None:
    try:
        steps = read([{"verb": name, **fields} for name, fields in verbs])
    except DomainError:
        return
    assert all(isinstance(step, Step) for step in steps)
