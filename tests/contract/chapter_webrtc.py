"""Telephones in web pages, which the specification has no endpoint of; nothing here connects by WebRTC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from callcontrol.models import Binding
from callcontrol.webrtc.tokens import TOKEN_PREFIX
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import ELSEWHERE, add_number, caller_id, used_up_second
from tests.contract.stage import Answer, Stage
from tests.support.browser_peer import BrowserPeer, offer_lines
from tests.support.waiting import PATIENCE_S, until

_CALLS = "/v1/webrtc/calls"
_CALL = f"{_CALLS}/{{call_sid}}"
_TOKENS = "/v1/webrtc/tokens"
_EVENTS = "/v1/webrtc/events"
_NOBODYS = "9a1c6a50-28ab-4bd0-9a6a-0b6f1f4e4a51"
_LINES = offer_lines(bytes(32))
_SDP = "\r\n".join([*_LINES, ""])
_WITHOUT_AUDIO = "\r\n".join([*_LINES[:4], ""])
_AS_SDP = {"Content-Type": "application/sdp"}
_TO_OWN = {"sdp": _SDP, "to": caller_id()}


def _token(**wanted: object) -> Given:
    """A header with a fresh token of the own account."""

    async def given(stage: Stage) -> str:
        made = await stage.data("POST", _TOKENS, body={"identity": "asha", **wanted})
        return f"Bearer {made['token']}"

    return given


def _call(by: str = "own") -> Given:
    """The call of a browser that never connects."""

    async def given(stage: Stage) -> str:
        body = {"sdp": _SDP, "to": await caller_id(by)(stage)}
        return str((await stage.data("POST", _CALLS, by=by, body=body))["call_sid"])

    return given


async def _ended_call(stage: Stage) -> str:
    """The call of a browser that has hung up."""
    call_sid = str(await _call()(stage))
    assert (await stage.ask("DELETE", f"{_CALLS}/{call_sid}")).status == 204
    return call_sid


async def _connected_call(stage: Stage) -> str:
    """The call of a browser that has connected, to a voice agent."""
    number_id, number = await add_number(stage, "own")
    binding = Binding(target="media_stream", stream_url=stage.agent.url)
    await stage.server.storage.numbers.bind(stage.own.account_sid, number_id, binding, force=False)
    stage.kept["peer"] = peer = BrowserPeer(bytes(6400))
    call = await stage.data("POST", _CALLS, body={"sdp": peer.offer(), "to": number})
    await peer.connect(call["sdp"])
    await asyncio.wait_for(peer.connected.wait(), PATIENCE_S)
    return str(call["call_sid"])


async def _other_path(stage: Stage) -> str:
    """The offer of the connected browser for another path."""
    peer = stage.kept["peer"]
    assert isinstance(peer, BrowserPeer)
    return peer.offer(lambda lines: [line.replace("ufrag:peer", "ufrag:other") for line in lines])


async def _has_another_path(stage: Stage, answer: Answer) -> None:
    peer = stage.kept.pop("peer")
    assert isinstance(peer, BrowserPeer)
    assert "a=ice-lite" in answer.data["sdp"].splitlines() and answer.data["state"] != "ended"
    assert (await stage.ask("DELETE", f"{_CALLS}/{answer.data['call_sid']}")).status == 204
    await peer.leave()


async def _ringing(stage: Stage) -> str:
    """A call that rings for a browser; it ends a moment later, because its page is closed."""
    calls, telephone = stage.server.services.browser_calls, (stage.own.account_sid, "called")
    stage.kept["peer"] = peer = BrowserPeer(bytes(6400))
    with calls.open_page(*telephone):
        call = await stage.data("POST", _CALLS, body={"sdp": peer.offer(), "to": "browser:called"})
        await peer.connect(call["sdp"])
        await until(lambda: bool(calls.ringing(telephone)))
        ringing = calls.ringing(telephone)[0].call.call_sid
    return ringing


async def _refused_call(stage: Stage) -> str:
    call_sid = await _ringing(stage)
    assert (await stage.ask("POST", f"{_CALLS}/{call_sid}/refuse")).status == 204
    await _left(stage)
    return call_sid


async def _left(stage: Stage, answer: Answer | None = None) -> None:
    """Hang up what was answered, and let the browser that called leave."""
    peer = stage.kept.pop("peer")
    assert isinstance(peer, BrowserPeer)
    await peer.leave()
    if answer is not None and answer.status == 200:
        assert (await stage.ask("DELETE", f"{_CALLS}/{answer.data['call_sid']}")).status == 204


@asynccontextmanager
async def _until_it_streams(stage: Stage) -> AsyncIterator[None]:
    """Close the stream as soon as it is open: only then is it answered whole."""

    async def end() -> None:
        pages = stage.asked.services.browser_calls.pages
        await until(lambda: len(pages) > 0)
        for account in stage.accounts.values():
            for page in pages.of((account.account_sid, "contract")):
                page.end()

    ending = asyncio.create_task(end())
    try:
        yield
    finally:
        await ending


async def _is_a_stream(_: Stage, answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "text/event-stream"


async def _can_call(stage: Stage, answer: Answer) -> None:
    token = answer.data["token"]
    assert token.startswith(TOKEN_PREFIX) and answer.data["identity"] == "asha"
    assert answer.data["ice_servers"] == []
    body = {"sdp": _SDP, "to": await caller_id()(stage)}
    made = await stage.ask("POST", _CALLS, key=token, body=body)
    assert (made.status, made.data["from"]) == (201, answer.data["from"] or "asha"), made


async def _calls_nobody_of_the_owns(stage: Stage, answer: Answer) -> None:
    body = {"sdp": _SDP, "to": await caller_id()(stage)}
    made = await stage.ask("POST", _CALLS, key=answer.data["token"], body=body)
    assert (made.status, made.code) == (403, "NUMBER_NOT_OWNED"), made


async def _is_answered(stage: Stage, answer: Answer) -> None:
    lines = answer.data["sdp"].splitlines()
    assert "a=ice-lite" in lines and "a=setup:passive" in lines and answer.data["state"] == "connecting"
    location = answer.headers["Location"]
    assert location == f"{_CALLS}/{answer.data['call_sid']}"
    assert (await stage.ask("DELETE", location)).status == 204


async def _is_answered_as_sdp(stage: Stage, answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "application/sdp"
    lines = answer.raw.decode().split("\r\n")
    assert lines[0] == "v=0" and lines[-1] == "" and "a=ice-lite" in lines and "a=setup:passive" in lines
    location = answer.headers["Location"]
    call = await stage.data("GET", location)
    assert (call["from"], call["to"], call["state"]) == ("asha", await caller_id()(stage), "connecting")
    assert (await stage.ask("DELETE", location)).status == 204


async def _is_over(stage: Stage, answer: Answer) -> None:
    assert answer.data["state"] == "connecting"
    path = f"{_CALLS}/{answer.data['call_sid']}"
    assert (await stage.ask("DELETE", path)).status == 204
    ended = await stage.data("GET", path)
    assert (ended["state"], ended["sip_status"]) == ("ended", None) and ended["ended_at"] and ended["reason"]


CASES = (
    *row(
        f"POST {_TOKENS}",
        ok(201, body={"identity": "asha"}, then=_can_call),
        ok(
            201,
            name="of everything",
            body={
                **{"identity": "asha", "from": caller_id(), "may_call": [caller_id(), ELSEWHERE]},
                "ttl_seconds": 60,
            },
            then=_can_call,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"identity": "1", "from": "x", "may_call": "x", "ttl_seconds": 86401, "colour": "red"},
            fields=("identity", "from", "may_call", "ttl_seconds", "colour"),
        ),
        unseen(201, body={"identity": "asha"}, then=_calls_nobody_of_the_owns),
    ),
    *row(
        f"POST {_CALLS}",
        ok(201, body=_TO_OWN, then=_is_answered),
        ok(
            201,
            name="of everything",
            body={**_TO_OWN, "from": "asha.rao", "parameters": {"Order": "17"}},
            then=_is_answered,
        ),
        ok(
            201,
            name="by a token",
            body=_TO_OWN,
            headers={"Authorization": _token(may_call=[])},
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"sdp": "", "to": "12", "from": "1", "parameters": {"Trunkline-X": "1"}, "colour": "red"},
            fields=("sdp", "to", "from", "parameters.Trunkline-X", "colour"),
        ),
        ok(
            201,
            name="of an offer that is the body",
            body=_SDP.encode(),
            query={"to": caller_id(), "from": "asha", "X-Order": "17", "utm_source": "page"},
            headers=_AS_SDP,
            then=_is_answered_as_sdp,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="an offer that is the body, with a wrong query",
            body=_WITHOUT_AUDIO.encode(),
            query={"to": "12", "from": "1", "X-Trunkline-X": "1"},
            headers=_AS_SDP,
            fields=("to", "from", "X-Trunkline-X"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="an offer that is no text",
            body=b"\xff",
            query={"to": caller_id()},
            headers=_AS_SDP,
            fields=("sdp",),
        ),
        refused(400, "VALIDATION_ERROR", name="neither", headers=_AS_SDP, fields=("sdp", "to")),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a wrong number beside JSON",
            body=_TO_OWN,
            query={"to": "12"},
            fields=("to",),
        ),
        refused(
            400, "VALIDATION_ERROR", name="no audio", body={**_TO_OWN, "sdp": _WITHOUT_AUDIO}, fields=("sdp",)
        ),
        refused(
            403,
            "FORBIDDEN",
            name="another number than those of the token",
            body=_TO_OWN,
            headers={"Authorization": _token(may_call=[ELSEWHERE])},
        ),
        refused(401, "UNAUTHORIZED", body=_TO_OWN, headers={"Authorization": f"Bearer {TOKEN_PREFIX}x"}),
        refused(403, "NUMBER_NOT_OWNED", body={**_TO_OWN, "to": ELSEWHERE}),
        foreign(403, "NUMBER_NOT_OWNED", body=_TO_OWN),
        refused(429, "RATE_LIMITED", by="slow", body={"sdp": _SDP, "to": used_up_second}),
    ),
    *row(
        f"GET {_CALL}",
        ok(path={"call_sid": _call()}, then=_is_over),
        ok(name="at once", path={"call_sid": _call()}, query={"after": "ringing"}),
        refused(
            400, "VALIDATION_ERROR", path={"call_sid": _call()}, query={"after": "ended"}, fields=("after",)
        ),
        refused(404, "NOT_FOUND", path={"call_sid": _NOBODYS}),
        foreign(404, "NOT_FOUND", path={"call_sid": _call()}),
    ),
    *row(
        f"PATCH {_CALL}",
        ok(path={"call_sid": _connected_call}, body={"sdp": _other_path}, then=_has_another_path),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"call_sid": _call()},
            body={"sdp": 1, "colour": "red"},
            fields=("sdp", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="not connected",
            path={"call_sid": _call()},
            body={"sdp": _SDP},
            fields=("sdp",),
        ),
        refused(404, "NOT_FOUND", path={"call_sid": _NOBODYS}, body={"sdp": _SDP}),
        refused(409, "CALL_ENDED", path={"call_sid": _ended_call}, body={"sdp": _SDP}),
        refused(
            409,
            "CONFLICT",
            name="not answered",
            path={"call_sid": _ringing},
            body={"sdp": _SDP},
            then=_left,
        ),
        foreign(404, "NOT_FOUND", path={"call_sid": _call()}, body={"sdp": _SDP}),
    ),
    *row(
        f"DELETE {_CALL}",
        ok(204, path={"call_sid": _call()}),
        refused(404, "NOT_FOUND", path={"call_sid": _NOBODYS}),
        foreign(404, "NOT_FOUND", path={"call_sid": _call()}),
    ),
    *row(
        f"GET {_EVENTS}",
        ok(query={"identity": "contract"}, during=_until_it_streams, then=_is_a_stream),
        refused(400, "VALIDATION_ERROR", fields=("identity",)),
        refused(403, "FORBIDDEN", headers={"Authorization": _token()}),
        unseen(query={"identity": "contract"}, during=_until_it_streams, then=_is_a_stream),
        ok(
            name="by a token",
            headers={"Authorization": _token(identity="contract", receives_calls=True)},
            during=_until_it_streams,
        ),
    ),
    *row(
        f"POST {_CALL}/answer",
        ok(path={"call_sid": _ringing}, body={"sdp": _SDP}, then=_left),
        refused(409, "CALL_ENDED", path={"call_sid": _refused_call}, body={"sdp": _SDP}),
        refused(400, "VALIDATION_ERROR", path={"call_sid": _call()}, body={"sdp": 1}, fields=("sdp",)),
        refused(404, "NOT_FOUND", path={"call_sid": _NOBODYS}, body={"sdp": _SDP}),
        refused(409, "CONFLICT", path={"call_sid": _call()}, body={"sdp": _SDP}),
        foreign(404, "NOT_FOUND", path={"call_sid": _call()}, body={"sdp": _SDP}),
    ),
    *row(
        f"POST {_CALL}/refuse",
        ok(204, path={"call_sid": _ringing}, then=_left),
        refused(409, "CALL_ENDED", path={"call_sid": _refused_call}),
        refused(404, "NOT_FOUND", path={"call_sid": _NOBODYS}),
        refused(409, "CONFLICT", path={"call_sid": _call()}),
        foreign(404, "NOT_FOUND", path={"call_sid": _call()}),
    ),
)
