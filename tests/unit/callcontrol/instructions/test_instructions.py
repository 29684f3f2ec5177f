"""Requests to a customer's server, and the meaning of its answers."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.calls.plan import (
    Answer,
    Dial,
    Gather,
    Hangup,
    JoinConference,
    Pause,
    Play,
    RecordMessage,
    Reject,
    RequestInstructions,
    Say,
    SendDtmf,
    SendMessage,
    Step,
    Stream,
)
from callcontrol.errors import DomainError, Forbidden, ValidationFailed
from callcontrol.instructions.instructions import read_instructions, request_body
from callcontrol.instructions.verbs import VerbRules
from callcontrol.models import CallRecord
from callcontrol.trunks.inbound_invite import Caller
from tests.support.domain import (
    ACCOUNT_SID,
    CALL_SID,
    CALLEE,
    NOW,
    OWN_NUMBER,
    OpenDestinations,
    make_record,
    make_ringing,
)

RULES = VerbRules({"IN"}, {"beep"}, OpenDestinations().check_url)
BASE = "https://customer.example/calls/in?x=1"
CALLER = Caller("+919811111111", "Anita")


def read(
    answer: Any,
    kind: str = "application/json",
    *,
    caller: Caller | None = CALLER,
    record: CallRecord | None = None,
) -> list[Step]:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return read_instructions(kind, body, RULES, record or make_ringing(), caller=caller, url=BASE)


def problems(answer: Any, **options: Any) -> list[str]:
    with pytest.raises(ValidationFailed) as refusal:
        read(answer, **options)
    return [error.field for error in refusal.value.errors]


def dial(number: str = CALLEE, **fields: Any) -> dict[str, Any]:
    return {"verb": "dial", "target": [{"type": "phone", "number": number}], **fields}


def at(*places: str) -> list[str]:
    """Paths of fields by the number of their verb."""
    return [re.sub(r"^(\d+)", r"verbs[\1]", place) for place in places]


def test_the_question_says_whose_call_it_is() -> None:
    sip = {"headers": {"X-A": "1"}, "privacy": ["id"]}
    asked = make_ringing(sip=sip, sip_call_id="c@h", phone_number_id="n")
    body = json.loads(request_body(asked, "call.incoming", event_id="e-1", at=NOW))
    assert body == {
        "event": "call.incoming",
        "event_id": "e-1",
        "timestamp": "2026-01-02T03:04:05.000Z",
        "data": {
            "call_sid": CALL_SID,
            "account_sid": ACCOUNT_SID,
            "from": "+919811111111",
            "to": OWN_NUMBER,
            "direction": "inbound",
            "status": "ringing",
            "sip_call_id": "c@h",
            "carrier_sid": None,
            "phone_number_id": "n",
            "app_sid": None,
            "answered_by": None,
            "tag": None,
            "headers": {"X-A": "1"},
        },
    }


def test_every_verb_becomes_its_step() -> None:
    steps = read(
        [
            {"verb": "answer"},
            {"verb": "play", "url": "prompt:beep", "loop": 2},
            {"verb": "play", "url": "hello.wav"},
            {"verb": "pause"},
            {"verb": "send_digits", "digits": "1w#"},
            dial(),
            dial(caller_id="passthrough", timeout=30),
            {"verb": "stream", "url": "wss://agent.example/", "sample_rate": 16000},
            {"verb": "redirect", "url": "/next", "method": "GET"},
            {"verb": "reject"},
            {"verb": "hangup"},
        ]
    )
    kinds: list[type] = [
        Answer,
        Play,
        Play,
        Pause,
        SendDtmf,
        Dial,
        Dial,
        Stream,
        RequestInstructions,
        Reject,
        Hangup,
    ]
    assert [type(step) for step in steps] == kinds
    assert steps[1:4] == [
        Play("prompt:beep", 2),
        Play("https://customer.example/calls/hello.wav"),
        Pause(1.0),
    ]
    own, passed = (step.party for step in steps if isinstance(step, Dial))
    assert (own.caller_id, own.passthrough, own.ring_timeout_s) == (OWN_NUMBER, False, 60.0)
    assert (passed.caller_id, passed.passthrough, passed.caller_name) == (CALLER.number, True, "Anita")
    assert steps[8] == RequestInstructions("https://customer.example/next", "GET")
    assert steps[9] == Reject(486)


def test_the_verbs_that_speak_and_listen_become_their_steps() -> None:
    assert read(
        [
            {"verb": "say", "text": "Hello", "language": "hi-IN", "loop": 2},
            {"verb": "say", "text": "Hello", "voice": "coral"},
            {
                "verb": "gather",
                "say": {"text": "One?", "voice": "nova"},
                "finish_on_key": "",
                "action_url": "/keys",
            },
            {"verb": "record", "max_length": 30, "silence_timeout": 2, "beep": False},
            {"verb": "message", "to": "98111 11111", "text": "Hello", "action_url": "/sent"},
            {"verb": "conference", "name": "Desk", "muted": True, "max_participants": 3, "action_url": "/on"},
        ]
    ) == [
        Say("Hello", "hi-IN", 2),
        Say("Hello", voice="coral"),
        Gather(
            (Say("One?", voice="nova"),),
            finish_on_key="",
            action=RequestInstructions("https://customer.example/keys", event="call.gathered"),
        ),
        RecordMessage(30.0, 2.0, beep=False),
        SendMessage(
            "+919811111111",
            "Hello",
            action=RequestInstructions("https://customer.example/sent", event="call.messaged"),
        ),
        JoinConference("Desk", muted=True, max_members=3),
        RequestInstructions("https://customer.example/on", event="call.dialled"),
    ]


@pytest.mark.parametrize("answer", [b"", b" \r\n", b"[]", b"{}"])
def test_a_server_without_a_word_has_nothing_to_say(answer: bytes) -> None:
    assert read(answer) == []


def test_nothing_to_say_has_no_kind() -> None:
    assert read(b"", kind="text/html") == []


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        ({"verb": "hangup"}, Hangup()),
        ({"action": "hangup"}, Hangup()),
        ({"action": "reject", "status": 603}, Reject(603)),
        ({"action": "redirect", "url": "https://x.example/"}, RequestInstructions("https://x.example/")),
    ],
)
def test_one_verb_or_action_needs_no_list(answer: dict[str, Any], step: Step) -> None:
    assert read(answer) == [step]


def test_a_list_may_have_the_name_that_it_has_when_a_call_is_placed() -> None:
    assert read({"verbs": [{"verb": "hangup"}]}) == read([{"verb": "hangup"}]) == [Hangup()]
    assert read({"verbs": []}) == []


def test_the_action_stream_has_its_own_word_for_the_address() -> None:
    (step,) = read({"action": "stream", "stream_url": "wss://agent.example/a"})
    assert isinstance(step, Stream) and step.choice.url == "wss://agent.example/a"


VOICES = ("0.voice", "1.voice", "2.voice")


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (b"<Response/>", ["body"]),
        (b"\xff", ["body"]),
        ("play", ["verbs"]),
        (7, ["verbs"]),
        ([7, None], at("0", "1")),
        ([{"verb": "hangup"}] * 51, ["verbs"]),
        (
            [{"verb": "gather", "say": {"text": "a", "x": 1}, "play": {"url": "prompt:beep"}, "timeout": 0}],
            at("0.play", "0.say.x", "0.timeout"),
        ),
        (
            [{"verb": "gather", "prompts": [{"verb": "dial"}, 7]}],
            at("0.prompts[0].verb", "0.prompts[1].verb"),
        ),
        (
            [{"verb": "gather", "action_on_empty": True, "finish_on_key": "x"}],
            at("0.finish_on_key", "0.action_on_empty"),
        ),
        ([{"verb": "record", "beep": 1, "max_length": 9999}], at("0.max_length", "0.beep")),
        ([{"verb": "conference"}, {"verb": "conference", "name": "a\n"}], at("0.name", "1.name")),
        ([dial(headers={"From": "x"}), dial(time_limit=0)], at("0.headers.From", "1.time_limit")),
        ([{"verb": "dial", "timeout": 9, "target": [{"type": "conference", "name": "a"}]}], at("0.timeout")),
        (
            [{"verb": "say", "text": "a", "language": "tlh"}, {"verb": "say", "text": "..."}],
            at("0.language", "1.text"),
        ),
        ([{"verb": "say"}, {"verb": "gather"}, {"verb": "dance"}], at("0.text", "2.verb")),
        ([{"verb": ["play"]}, {}], at("0.verb", "1.verb")),
        ([{"verb": "play", "url": "prompt:none"}], at("0.url")),
        ([{"verb": "play", "url": "ftp://x/"}, {"verb": "play"}], at("0.url", "1.url")),
        ([{"verb": "play", "url": "prompt:beep", "loop": 0, "colour": 1}], at("0.colour", "0.loop")),
        ([{"verb": "pause", "length": "3"}, {"verb": "pause", "length": True}], at("0.length", "1.length")),
        ([{"verb": "reject", "status": 401}, {"verb": "reject", "status": "x"}], at("0.status", "1.status")),
        ([{"verb": "redirect"}, {"verb": "redirect", "url": ""}], at("0.url", "1.url")),
        ([{"verb": "redirect", "url": "/a", "method": "PUT"}], at("0.method")),
        ([{"verb": "redirect", "url": "https://forbidden.example/"}], at("0.url")),
        ([dial(timeout=1), dial(timeout="x")], at("0.timeout", "1.timeout")),
        ([dial(caller_id="me"), dial("x")], at("0.caller_id", "1.target[0].number")),
        ([{"verb": "dial"}, {"verb": "dial", "target": "+91"}], at("0.target", "1.target")),
        ([{"verb": "stream", "url": "https://x.example/"}], at("0.url")),
        ([{"verb": "say", "text": "a", "voice": v} for v in ("", "a b", "x" * 65)], at(*VOICES)),
        ([{"verb": "say", "text": "a", "voice": 7}], at("0.voice")),
        ([{"verb": "stream", "url": "wss://x.example/", "stream_auth": 7}], at("0.stream_auth")),
    ],
)
def test_every_wrong_value_is_named_by_its_path(answer: Any, fields: list[str]) -> None:
    assert problems(answer) == fields


@pytest.mark.parametrize(("given", "message"), [({}, "is required"), ({"text": 7}, "must be a string")])
def test_a_text_that_is_missing_is_told_as_in_requests(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        read([{"verb": "say", **given}])
    assert [error.message for error in refusal.value.errors] == [message]


def test_nobody_can_be_passed_through_of_a_call_that_was_placed() -> None:
    assert problems([dial(caller_id="passthrough")], caller=None) == ["verbs[0].caller_id"]


@pytest.mark.parametrize(
    "record",
    [make_record("outbound"), make_record("outbound", answered_at=NOW), make_ringing(answered_at=NOW)],
    ids=["placed", "placed and answered", "answered"],
)
def test_nobody_can_be_rejected_but_a_caller_who_waits(record: CallRecord) -> None:
    verbs = [{"verb": "say", "text": "a"}, {"verb": "reject", "status": 603}]
    assert problems(verbs, record=record) == ["verbs[1].verb"]
    assert problems({"action": "reject"}, record=record) == ["verbs[0].verb"]
    document = b"<Response><Say>a</Say><Reject reason='busy'/></Response>"
    assert problems(document, kind="text/xml", record=record) == ["Response.Reject[2]"]
    assert read(verbs)[1:] == read(document, kind="text/xml")[1:-1] + [Reject(603)]


def test_an_answer_in_another_language_is_named() -> None:
    assert problems(b"hello", kind="text/plain") == ["Content-Type"]


def test_no_answer_dials_where_nobody_may() -> None:
    with pytest.raises(Forbidden):
        read([dial("+442071234567")])


def test_an_answer_that_nests_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(40):
        deep = [deep]
    assert problems(deep) == ["body"]


@pytest.mark.parametrize(
    "answer",
    [
        {"verb": "stream", "url": "wss://agent.example/\ud800"},
        {"verb": "stream", "url": "wss://agent.example/", "custom_parameters": {"a": "\0"}},
        {"verb": "stream", "url": "wss://agent.example/", "custom_parameters": {"\udfff": "a"}},
        {"verb": "redirect", "url": "/next?\0"},
        [{"verb": "\ud800"}],
    ],
)
def test_text_that_nobody_could_store_is_refused(answer: Any) -> None:
    assert problems(answer) == ["body"]
    assert problems(b"[" * 20_000 + b"]" * 20_000) == ["body"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["verb", "action", "url", "target", "number", "type", "status", "length", "method"]
            ),
            inner
            | st.sampled_from(["play", "dial", "stream", "redirect", "reject", "pause", "http://[", "//x"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_whatever_a_server_says_it_is_understood_or_refused(answer: Any) -> None:
    try:
        steps = read(answer)
    except DomainError:
        return
    assert isinstance(steps, list)
