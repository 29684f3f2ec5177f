"""Targets of what customers send: bodies of requests, answers with instructions, schemas of tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from api.http.body import parse_form, parse_json
from api.http.endpoint import Endpoint
from api.openapi.examples import EXAMPLES
from api.routes import ENDPOINTS
from api.schemas.base import validate_body
from callcontrol.errors import DomainError, ValidationFailed
from callcontrol.instructions.instructions import read_instructions
from callcontrol.instructions.verbs import VerbRules
from callcontrol.tools.schemas import checked_schema
from callcontrol.trunks.inbound_invite import Caller
from fuzz.harness import Target
from tests.support.domain import CALLEE, OpenDestinations, make_ringing

BODIES: dict[str, Endpoint[Any, Any]] = {
    endpoint.name: endpoint for endpoint in ENDPOINTS if endpoint.reads_body and endpoint.name in EXAMPLES
}
RULES = VerbRules({"IN"}, {"beep"}, OpenDestinations().check_url)
CALLER = Caller("+919811111111", "Anita")
CALL = make_ringing()

JSON_WORDS = [
    *(b'"', b'":', b"{", b"}", b"[", b"]", b",", b"null", b"true", b"1e999", b"-0", b"NaN", b"5.0"),
    *(b"\\u0000", b"\\ud800", b'{"a":', b"[[[[", b'""', b'"+919876543210"', b'"https://a.example/x"'),
]
INSTRUCTIONS = [
    [{"verb": "say", "text": "Hello", "language": "en-IN"}, {"verb": "hangup"}],
    [{"verb": "play", "url": "prompt:beep", "loop": 2}, {"verb": "pause", "length": 1}],
    [
        {
            "verb": "gather",
            "num_digits": 4,
            "action_url": "/digits",
            "prompt": [{"verb": "say", "text": "PIN"}],
        }
    ],
    [{"verb": "dial", "to": CALLEE, "timeout": 20}, {"verb": "redirect", "url": "/next"}],
    [{"verb": "stream", "url": "wss://agent.example/ws", "sample_rate": 16000}],
    {"action": "hangup"},
]
TWIML = [
    b'<?xml version="1.0"?><Response><Say language="en-IN">Hello &amp; bye</Say><Hangup/></Response>',
    b'<Response><Gather numDigits="4" action="/d"><Play loop="2">prompt:beep</Play></Gather></Response>',
    b'<Response><Dial timeout="20" callerId="+918047491899"><Number>+919812345678</Number></Dial></Response>',
    b'<Response><Connect><Stream url="wss://a.example/w"><Parameter name="a" value="b"/></Stream></Connect>'
    b"</Response>",
    b'<Response><Record maxLength="30"/><Redirect>/next</Redirect><Reject reason="busy"/></Response>',
]
XML_WORDS = [
    *(b"<Response>", b"</Response>", b"<Say>", b"<Dial>", b"<Gather ", b"<Number>", b"<Conference>", b"/>"),
    *(b"<!DOCTYPE a [", b'<!ENTITY a "b">', b"&a;", b"&#0;", b"&#xd800;", b"<![CDATA[", b"]]>", b"<?xml "),
    *(b'encoding="utf-16"', b'xmlns="a"', b'action="', b"<!--", b"-->"),
]
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
        "$defs": {"n": {}},
    },
    {
        "type": "object",
        "patternProperties": {"^x-[a-z]+$": {"enum": [1, None]}},
        "additionalProperties": False,
    },
    {"type": "object", "anyOf": [{"required": ["a"]}, {"not": {"required": ["b"]}}], "if": {}, "then": True},
]


def check_body(data: bytes) -> str:
    """A body is its model, which can be written again as JSON, or every wrong field is named."""
    name, _, body = data.partition(b"\n")
    endpoint = BODIES.get(name.decode("latin-1"))
    if endpoint is None:
        return "unknown"
    try:
        given = parse_form(body) if not body.lstrip().startswith((b"{", b"[")) else parse_json(body)
        model = validate_body(endpoint.body, given)
    except ValidationFailed as refusal:
        assert refusal.errors and all(error.field and error.message for error in refusal.errors)
        json.dumps([[error.field, error.message] for error in refusal.errors]).encode()
        return f"{endpoint.name} {sorted(error.field for error in refusal.errors)[:3]}"
    model.model_dump_json().encode()
    return f"{endpoint.name} taken"


def _instructions(media_type: str) -> Callable[[bytes], str]:
    def check(data: bytes) -> str:
        try:
            steps = read_instructions(
                media_type, data, RULES, CALL, caller=CALLER, url="https://customer.example/calls?x=1"
            )
        except ValidationFailed as refusal:
            assert refusal.errors and all(error.field and error.message for error in refusal.errors)
            return " ".join(sorted({error.field for error in refusal.errors})[:4])
        return " ".join(type(step).__name__ for step in steps[:4])

    return check


def check_schema(data: bytes) -> str:
    """An accepted schema answers for any arguments, within the bounds of a check's cost."""
    try:
        schema = parse_json(data)
        if not isinstance(schema, dict):
            return "no object"
        checked = checked_schema(schema, "input_schema")
    except ValidationFailed as refusal:
        return refusal.errors[0].message[:40]
    return f"taken {len(checked.errors(schema, 'arguments'))} {len(checked.errors({'a': 'b'}, 'arguments'))}"


def _body_seeds() -> list[bytes]:
    return [f"{name}\n{json.dumps(EXAMPLES[name])}".encode() for name in BODIES]


TARGETS = [
    Target("json-body", check_body, (), _body_seeds(), JSON_WORDS),
    Target(
        "instructions-json",
        _instructions("application/json"),
        (DomainError,),
        [json.dumps(each).encode() for each in INSTRUCTIONS],
        [*JSON_WORDS, b'"verb":', b'"dial"', b'"gather"', b'"stream"', b'"action":', b'"prompt:beep"'],
    ),
    Target("instructions-xml", _instructions("text/xml"), (DomainError,), TWIML, XML_WORDS),
    Target(
        "tool-schema",
        check_schema,
        (),
        [json.dumps(each).encode() for each in SCHEMAS],
        [*JSON_WORDS, b'"$ref":"#"', b'"pattern":"(a+)+$"', b'"allOf":[', b'"$id":', b'"$dynamicRef":'],
    ),
]
