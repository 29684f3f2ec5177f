"""The first visit: three clicks to a call that talks, with the request of the API that does the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from api.console.page import Navigation, Pages
from api.console.rendering import refusal_text
from api.console.visit import HOME, Visit
from api.routes.calls import call_request
from api.schemas.base import validate_body
from api.schemas.calls import CreateCall
from callcontrol.aio.tokens import new_id
from callcontrol.errors import DomainError, Forbidden, NotFound, ServiceUnavailable
from callcontrol.models import CallRecord, PhoneNumber

__all__ = ["pages"]

PATH: Final = f"{HOME}/first"

_PARTIES: Final = tuple(f"+919800000{number:03}" for number in (2, 1, 7, 6, 3, 4))
_PAUSE_AND_END: Final = ({"verb": "pause", "length": 3}, {"verb": "hangup"})
_PROMPT: Final[Mapping[str, Any]] = {
    "record": True,
    "verbs": [
        {"verb": "play", "url": "prompt:en/welcome"},
        *_PAUSE_AND_END,
    ],
}
_STREAM: Final = "wss://agent.example.com/stream"
_DOES: Final = ("prompt", "say", "echo", "agent", "stream")
_FIELDS: Final = ("to", "does", "stream_url", "agent")
_BROWSER: Final = "browser"

pages = Pages("first", scope="calls.read", writes="calls.write", nav=Navigation("calls", 30, PATH))


@pages.get(PATH)
async def show(visit: Visit) -> web.StreamResponse:
    """Show the choices, and the time axis of the call that they have placed."""
    call = None
    if visit.query("call"):
        try:
            call = await visit.services.calls.get_call(visit.account_sid, visit.query("call").lower())
        except (NotFound, Forbidden):
            raise NotFound(refusal_text("not_your_call")) from None
    values = visit.queries(*_FIELDS)
    return visit.show("first.html", **await _shown(visit, values, call))


@pages.post(PATH)
async def place(visit: Visit) -> web.StreamResponse:
    """Place the call, and show its time axis."""
    values = {name: visit.form.get(name, "").strip() for name in _FIELDS}
    try:
        record = await _place(visit, values)
    except DomainError as refusal:
        return visit.show_invalid("first.html", refusal, **await _shown(visit, values, None))
    visit.go(PATH, call=record.call_sid, **values)


async def _place(visit: Visit, values: Mapping[str, str]) -> CallRecord:
    if not visit.console.lifecycle.takes_calls:
        raise ServiceUnavailable(refusal_text("takes_no_calls"), retry_after_s=5)
    number = await _caller_id(visit)
    if number is None:
        raise NotFound(refusal_text("no_caller_id"))
    if values["does"] == "echo" and visit.console.settings.echo_url is None:
        raise NotFound(refusal_text("no_echo"))
    does = _does(visit, values, await _agent(visit, values))
    body = {"from": number, "to": values["to"] or _PARTIES[0], **does}
    checked = validate_body(CreateCall, body, visit.reach)
    return await visit.services.calls.create_call(visit.account_sid, call_request(checked))


async def _agent(visit: Visit, values: Mapping[str, str]) -> str | None:
    """
    Identifier of the voice agent that is named, the account's newest, or a built-in one made for this.

    Raises:
        Forbidden: There is none, and the key may make none.
    """
    if values["does"] != "agent":
        return None
    if not visit.may("assistant", "assistant"):
        raise Forbidden(refusal_text("agent_scope"))
    if values["agent"]:
        return values["agent"]
    agents = visit.storage.agents
    found = await agents.list(visit.account_sid, 1, 1)
    if found.items:
        return found.items[0].agent_id
    return (await agents.create(visit.account_sid, {"name": visit.texts["agent_name"]})).agent_id


def _does(visit: Visit, values: Mapping[str, str], agent_id: str | None) -> Mapping[str, Any]:
    """Fields of the request for what happens in the call."""
    match values["does"]:
        case "say":
            said = {"verb": "say", "text": visit.texts["spoken"], "language": "en-IN"}
            return {"record": True, "verbs": [said, *_PAUSE_AND_END]}
        case "echo":
            return {"record": True, "stream_url": visit.console.settings.echo_url}
        case "agent":
            return {"record": True, "agent_id": agent_id}
        case "stream":
            return {"record": True, "stream_url": values["stream_url"]}
        case _:
            return _PROMPT


async def _caller_id(visit: Visit) -> str | None:
    """First number of the account that may be shown to a called party."""
    numbers = await visit.storage.numbers.every(visit.account_sid)
    return next((number.number for number in numbers if _may_call(number)), None)


def _may_call(number: PhoneNumber) -> bool:
    return number.registered


async def _shown(visit: Visit, values: Mapping[str, str], call: CallRecord | None) -> dict[str, Any]:
    number = await _caller_id(visit)
    agents = visit.may("assistant", "assistant")
    agent_id = None
    if agents:
        found = await visit.storage.agents.list(visit.account_sid, 1, 1)
        agent_id = values["agent"] or (found.items[0].agent_id if found.items else None)
    left_out = {"echo": visit.console.settings.echo_url is None, "agent": not agents}
    offered = [name for name in _DOES if not left_out.get(name)]
    does = values["does"] if values["does"] in offered else offered[0]
    # A telephone is of the session's key, and of one page: another has another name.
    identity = f"first-{new_id()[-12:]}"
    browser = f"{_BROWSER}:{identity}" if visit.operator is None and visit.may("calls.write") else None
    to = values["to"] if values["to"] in _PARTIES else _PARTIES[0]
    if browser is not None and values["to"].partition(":")[0] == _BROWSER:
        to = browser
    stream_url = values["stream_url"] or _STREAM
    fields = {
        name: _does(visit, {"does": name, "stream_url": stream_url}, agent_id or "AGENT_ID")
        for name in offered
    }
    body = {"from": number or "NUMBER", "to": to, **fields[does]}
    return {
        "call": call,
        "number": number,
        "parties": _PARTIES,
        "browser": browser,
        "identity": identity,
        "chosen": {"to": to, "does": does, "stream_url": values["stream_url"], "agent": values["agent"]},
        "fields": fields,
        "url": f"{visit.console.settings.public_url}/v1/calls",
        "curl": curl(f"{visit.console.settings.public_url}/v1/calls", body),
    }


def curl(url: str, body: Mapping[str, Any]) -> str:
    """Command line that sends the request; the key is for the reader to fill in."""
    sent = shlex.quote(json.dumps(body, ensure_ascii=False))
    head = f'curl -sS -X POST {shlex.quote(url)} \\\n  -H "Authorization: Bearer $KEY" \\\n'
    return f"{head}  -H 'Content-Type: application/json' \\\n  -d {sent}"
