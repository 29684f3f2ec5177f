"""TwiML: what documents mean, what of them is refused, and that no document does harm."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callcontrol.calls.plan import (
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
    Step,
    Stream,
)
from callcontrol.errors import DomainError, ValidationFailed
from callcontrol.instructions.instructions import read_instructions
from callcontrol.instructions.safe_xml import MAX_DEPTH, MAX_ELEMENTS
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from callcontrol.trunks.inbound_invite import Caller
from tests.support.domain import CALLEE, OWN_NUMBER, OpenDestinations, make_ringing
from tests.support.examples import examples

RULES = VerbRules({"IN"}, {"beep"}, OpenDestinations().check_url)
URL = "https://customer.example/calls/in?x=1"
CALLER = Caller("+919811111111", "Anita")
RECORD = make_ringing()


def read(
    document: str | bytes, *, kind: str = "text/xml", webhooks: WebhookDefaults | None = None
) -> list[Step]:
    body = document if isinstance(document, bytes) else document.encode()
    return read_instructions(kind, body, RULES, RECORD, caller=CALLER, url=URL, webhooks=webhooks)


def response(inner: str, **options: Any) -> list[Step]:
    return read(f'<?xml version="1.0" encoding="UTF-8"?>\n<Response>{inner}</Response>', **options)


def problems(document: str | bytes) -> dict[str, str]:
    with pytest.raises(ValidationFailed) as refusal:
        read(document)
    return {error.field: error.message for error in refusal.value.errors}


def wrong(inner: str) -> list[str]:
    return list(problems(f"<Response>{inner}</Response>"))


@pytest.mark.parametrize("kind", ["text/xml", "application/xml", "text/html", "Text/XML"])
def test_a_document_may_come_as_several_kinds(kind: str) -> None:
    assert response("<Hangup/>", kind=kind) == [Hangup()]


@pytest.mark.parametrize(
    ("inner", "step"),
    [
        ("<Say>Hello &amp; welcome</Say>", Say("Hello & welcome")),
        ('<Say voice="alice" language="hi-IN" loop="2">नमस्ते</Say>', Say("नमस्ते", "hi-IN", 2)),
        ("<Play loop='0'>hello.wav</Play>", Play("https://customer.example/calls/hello.wav", 100)),
        ("<Play>prompt:beep</Play>", Play("prompt:beep")),
        ('<Play digits="1w#"/>', SendDtmf("1w#")),
        ("<Pause/>", Pause(1.0)),
        ('<Pause length="3"/>', Pause(3.0)),
        (
            '<Redirect method="GET">/next</Redirect>',
            RequestInstructions("https://customer.example/next", "GET"),
        ),
        ("<Redirect/>", RequestInstructions(URL)),
        ("<Reject/>", Reject(603)),
        ('<Reject reason="busy"/>', Reject(486)),
        ("<Hangup/>", Hangup()),
    ],
)
def test_every_element_becomes_its_step(inner: str, step: Step) -> None:
    assert response(inner) == [step]


def test_a_document_without_a_word_has_nothing_to_say() -> None:
    assert response("") == response("<!-- nothing -->") == response('<Pause length="0"/>') == []


def test_keys_are_gathered_while_something_is_heard() -> None:
    (step,) = response(
        """
        <Gather input="dtmf" numDigits="1" timeout="7" finishOnKey="" action="/menu" method="GET"
                actionOnEmptyResult="true" language="en-US" speechTimeout="auto">
          <Say>Press one.</Say><Pause length="2"/><Play>prompt:beep</Play>
        </Gather>"""
    )
    assert step == Gather(
        prompts=(Say("Press one."), Pause(2.0), Play("prompt:beep")),
        num_digits=1,
        finish_on_key="",
        timeout_s=7.0,
        action=RequestInstructions("https://customer.example/menu", "GET", "call.gathered"),
        action_on_empty=True,
    )


def test_without_an_action_the_same_document_is_asked_for_again() -> None:
    (step,) = response("<Gather/>")
    assert isinstance(step, Gather) and step.action == RequestInstructions(URL, event="call.gathered")


@pytest.mark.parametrize(
    ("inner", "number"),
    [
        (f"<Dial>{CALLEE}</Dial>", CALLEE),
        (f'<Dial><Number statusCallback="/x">{CALLEE}</Number></Dial>', CALLEE),
        (
            "<Dial> <Sip>sip:desk@gateway.example?X-Shop=7&amp;X-Till=2</Sip> </Dial>",
            "sip:desk@gateway.example",
        ),
    ],
)
def test_somebody_is_dialled(inner: str, number: str) -> None:
    (step,) = response(inner)
    assert isinstance(step, Dial) and str(step.party.target) == number
    assert (step.party.caller_id, step.party.ring_timeout_s, step.action) == (OWN_NUMBER, 30.0, None)
    assert step.party.headers == ((("X-Shop", "7"), ("X-Till", "2")) if "sip" in number else ())


def test_a_dial_says_how_and_what_then() -> None:
    (step,) = response(
        f'<Dial action="/after" timeout="600" timeLimit="90" callerId="{CALLER.number}" answerOnBridge="true"'
        f' hangupOnStar="false" record="do-not-record"><Number>{CALLEE}</Number></Dial>'
    )
    assert isinstance(step, Dial)
    assert step.action == RequestInstructions("https://customer.example/after", event="call.dialled")
    assert (step.time_limit_s, step.party.ring_timeout_s) == (90.0, 120.0), "the ring time has its bounds"
    assert (step.party.caller_id, step.party.passthrough) == (CALLER.number, True)


def test_a_message_is_taken() -> None:
    (step,) = response(
        '<Record maxLength="30" timeout="2" finishOnKey="#" playBeep="false" trim="do-not-trim"/>'
    )
    assert step == RecordMessage(30.0, 2.0, "#", False, RequestInstructions(URL, event="call.recorded"))


def test_a_conference_is_joined() -> None:
    room = (
        '<Conference muted="true" startConferenceOnEnter="false" endConferenceOnExit="true">Desk</Conference>'
    )
    step, then = response(f'<Dial action="/after" timeout="9">{room}</Dial>')
    assert step == JoinConference("Desk", muted=True, starts=False, ends=True)
    assert then == RequestInstructions("https://customer.example/after", event="call.dialled")


def test_an_agent_is_connected_and_told_its_parameters() -> None:
    inner = '<Parameter name="shop" value="7"/><Parameter name="desk" value="2"/>'
    agent = f'<Stream url="wss://agent.example/a" protocol="exotel">{inner}</Stream>'
    stream, then = response(f'<Connect action="/after">{agent}</Connect>')
    assert isinstance(stream, Stream)
    assert (stream.choice.url, stream.choice.protocol) == ("wss://agent.example/a", "exotel")
    assert dict(stream.choice.custom_parameters) == {"shop": "7", "desk": "2"}
    assert then == RequestInstructions("https://customer.example/after", event="call.streamed")


def test_questions_that_follow_are_asked_in_the_same_way() -> None:
    webhooks = WebhookDefaults(
        "form", RequestInstructions("https://spare.example/", event="call.fallback", format="form")
    )
    redirect, gather = response("<Redirect/><Gather/>", webhooks=webhooks)
    assert redirect == RequestInstructions(URL, format="form", fallback=webhooks.fallback)
    assert isinstance(gather, Gather) and gather.action is not None
    assert replace(gather.action, event=redirect.event) == redirect


MANY_HEADERS = "&amp;".join(f"X-Header-{number}=a" for number in range(100))


@pytest.mark.parametrize(
    ("inner", "fields"),
    [
        ("<Dance/><Sms/>", ["Response.Dance[1]", "Response.Sms[2]"]),
        ("<Start><Stream url='wss://a.example/'/></Start>", ["Response.Start[1]"]),
        ("<Say>a<break/></Say>", ["Response.Say[1].break[1]"]),
        ("<Say/>", ["Response.Say[1]"]),
        (
            '<Say language="tlh">a</Say><Say loop="x">b</Say>',
            ["Response.Say[2].loop", "Response.Say[1].language"],
        ),
        ('<Say language="tlh">a</Say>', ["Response.Say[1].language"]),
        ('<Play loop="101">prompt:beep</Play>', ["Response.Play[1].loop"]),
        ("<Play>ftp://x.example/</Play>", ["Response.Play[1].url"]),
        ('<Pause length="601"/>', ["Response.Pause[1].length"]),
        ('<Gather input="fax"/>', ["Response.Gather[1].input"]),
        ('<Gather numDigits="0"/>', ["Response.Gather[1].numDigits"]),
        ('<Gather finishOnKey="12"/>', ["Response.Gather[1].finishOnKey"]),
        ('<Gather action="http://forbidden.example/"/>', ["Response.Gather[1].action"]),
        ("<Gather><Dial/></Gather>", ["Response.Gather[1].Dial[1]"]),
        ("<Gather><Say/></Gather>", ["Response.Gather[1].Say[1]"]),
        ("<Dial/>", ["Response.Dial[1]"]),
        (f"<Dial>{CALLEE}<Number>{CALLEE}</Number></Dial>", ["Response.Dial[1]"]),
        ("<Dial><Client>anita</Client></Dial>", ["Response.Dial[1].Client[1]"]),
        ("<Dial><Number>911</Number></Dial>", ["Response.Dial[1].Number[1]"]),
        (f'<Dial hangupOnStar="true">{CALLEE}</Dial>', ["Response.Dial[1].hangupOnStar"]),
        (f'<Dial record="true">{CALLEE}</Dial>', ["Response.Dial[1].record"]),
        (f'<Dial timeLimit="0">{CALLEE}</Dial>', ["Response.Dial[1].timeLimit"]),
        (f'<Dial><Number url="/x">{CALLEE}</Number></Dial>', ["Response.Dial[1].Number[1].url"]),
        ("<Dial><Sip>sip:a@b.example?From=x</Sip></Dial>", ["Response.Dial[1].headers.From"]),
        (f"<Dial><Sip>sip:a@b.example?{MANY_HEADERS}</Sip></Dial>", ["Response.Dial[1].headers"]),
        ("<Connect/>", ["Response.Connect[1]"]),
        ("<Connect><Stream/></Connect>", ["Response.Connect[1].Stream[1].url"]),
        ("<Connect><Stream url='https://a.example/'/></Connect>", ["Response.Connect[1].Stream[1].url"]),
        ('<Reject reason="tired"/>', ["Response.Reject[1].reason"]),
        ('<Hangup now="yes"/>', ["Response.Hangup[1].now"]),
        ("<Redirect>http://forbidden.example/</Redirect>", ["Response.Redirect[1].url"]),
        ("<Hangup/>" * 51, ["verbs"]),
        # What cannot be translated does not hide the errors of the other elements.
        ('<Gather numDigits="40"/><Sms/>', ["Response.Sms[2]", "Response.Gather[1].numDigits"]),
        (
            '<Gather numDigits="40" timeout="x"/><Say loop="-1">a</Say><Dial/><Play>ftp://a/</Play>',
            ["Response.Gather[1].timeout", "Response.Say[2].loop", "Response.Dial[3]"]
            + ["Response.Gather[1].numDigits", "Response.Play[4].url"],
        ),
    ],
)
def test_what_cannot_be_done_is_named_by_its_place(inner: str, fields: list[str]) -> None:
    assert wrong(inner) == fields


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><Response><Say>&b;</Say></Response>'


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (BOMB, "DOCTYPE"),
        ('<!DOCTYPE r SYSTEM "file:///etc/passwd"><Response/>', "DOCTYPE"),
        ("<Response>&undefined;</Response>", "line 1"),
        ("<Response>", "line 1"),
        ("hello", "line 1"),
        ("<html><body>It works</body></html>", "must be a <Response>"),
        ("<Response/><Response/>", "line 1"),
        ("<Response>" + "<a>" * MAX_DEPTH + "</a>" * MAX_DEPTH + "</Response>", "deeper"),
        ("<Response>" + "<Hangup/>" * MAX_ELEMENTS + "</Response>", "elements"),
        ("<Response><Say " + " ".join(f'a{n}=""' for n in range(50)) + "/></Response>", "attributes"),
        (b"\xff\xfe\x00", "is no XML"),
        ('<?xml version="1.0" encoding="no-such"?><Response/>', "is no XML"),
        (b'<?xml version="1.0" encoding="UTF-8"?><Response><Say>\xff</Say></Response>', "is no XML"),
    ],
)
def test_a_document_that_cannot_be_read_says_why(document: str | bytes, message: str) -> None:
    found = problems(document)
    assert list(found) == ["body"]
    assert message in found["body"]


def test_a_document_may_be_in_another_encoding() -> None:
    document = '<?xml version="1.0" encoding="ISO-8859-1"?><Response><Say>café</Say></Response>'
    assert read(document.encode("latin-1")) == [Say("café")]


NAMES = [
    "Response",
    "Say",
    "Play",
    "Pause",
    "Gather",
    "Dial",
    "Number",
    "Sip",
    "Conference",
    "Connect",
    "Stream",
]
NAMES += ["Parameter", "Record", "Redirect", "Reject", "Hangup", "Dance"]
ATTRIBUTES = [
    "loop",
    "length",
    "numDigits",
    "action",
    "method",
    "timeout",
    "url",
    "name",
    "value",
    "reason",
    "track",
]
VALUES = [
    "",
    "0",
    "1",
    "-1",
    "1e9",
    "9" * 20,
    "POST",
    "true",
    "/x",
    "wss://a.example/",
    "\x85",
    "\N{SNOWMAN}",
]


def element(name: str, given: dict[str, str], inner: list[str]) -> str:
    attributes = "".join(f" {key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items())
    return f"<{name}{attributes}>{''.join(inner)}</{name}>"


def elements(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    attributes = st.dictionaries(st.sampled_from(ATTRIBUTES), st.sampled_from(VALUES), max_size=3)
    return st.builds(element, st.sampled_from(NAMES), attributes, st.lists(children, max_size=3))


TREES = st.recursive(
    st.sampled_from(["", "x", CALLEE, "prompt:beep", "&#x1;", "&lt;"]), elements, max_leaves=8
)


@settings(max_examples=examples(300), deadline=None)
@given(TREES)
def test_whatever_a_document_says_it_is_understood_or_refused(inner: str) -> None:
    try:
        steps = response(inner)
    except DomainError:
        return
    assert all(not isinstance(step, str) for step in steps)
