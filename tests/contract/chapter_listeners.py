"""Listening in on calls, which the specification has no endpoint of; nothing here connects by WebRTC."""

from __future__ import annotations

from tests.contract.cases import foreign, ok, refused, row
from tests.contract.givens import a_password, answered_call, ended_call, part, parts, ringing_call
from tests.contract.stage import Answer, Stage
from tests.support.browser_peer import offer_lines

_LISTENERS = "/v1/calls/{callSid}/listeners"
_LISTENER = f"{_LISTENERS}/{{listener_sid}}"
_NOBODYS = "9a1c6a50-28ab-4bd0-9a6a-0b6f1f4e4a51"
_SENDS = "\r\n".join([*offer_lines(bytes(32)), ""])
_SDP = _SENDS.replace("a=sendrecv", "a=recvonly")
_AS_SDP = {"Content-Type": "application/sdp"}


async def _listened(stage: Stage) -> dict[str, str]:
    """An active call, and one who listens to it."""
    call_sid = await answered_call(stage)
    made = await stage.data("POST", _LISTENERS.format(callSid=call_sid), body={"sdp": _SDP})
    return {"callSid": call_sid, "listener_sid": str(made["listener_sid"])}


async def _password_call(stage: Stage) -> str:
    """The SID of a call that speaks a password, and is up."""
    sent = await stage.data("POST", "/v1/voice-otp/send", body=await a_password(stage))
    await stage.call_when(sent["call_sid"], "in-progress")
    return str(sent["call_sid"])


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert "a=ice-lite" in answer.data["sdp"].splitlines() and "a=sendonly" in answer.data["sdp"]
    listed = await stage.data("GET", answer.headers["Location"].rpartition("/")[0])
    made = {name: value for name, value in answer.data.items() if name != "sdp"}
    assert listed == {"call_sid": made["call_sid"], "listeners": [made]} and made["ended_at"] is None
    assert (await stage.ask("DELETE", answer.headers["Location"])).status == 204


async def _is_an_answer(stage: Stage, answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "application/sdp" and answer.raw.startswith(b"v=0\r\n")
    assert (await stage.ask("DELETE", answer.headers["Location"])).status == 204


CASES = (
    *row(
        f"POST {_LISTENERS}",
        ok(201, path={"callSid": answered_call}, body={"sdp": _SDP}, then=_is_listed),
        ok(
            201,
            name="of an offer that is the body",
            path={"callSid": answered_call},
            body=_SDP.encode(),
            headers=_AS_SDP,
            then=_is_an_answer,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"callSid": answered_call},
            body={"sdp": 1, "colour": "red"},
            fields=("sdp", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="an offer that sends",
            path={"callSid": answered_call},
            body=_SENDS.encode(),
            headers=_AS_SDP,
            fields=("sdp",),
        ),
        refused(404, "NOT_FOUND", path={"callSid": _NOBODYS}, body={"sdp": _SDP}),
        refused(409, "CALL_ENDED", path={"callSid": ended_call}, body={"sdp": _SDP}),
        refused(409, "CONFLICT", path={"callSid": ringing_call}, body={"sdp": _SDP}),
        refused(
            409,
            "CONFLICT",
            name="a one-time password",
            path={"callSid": _password_call},
            body={"sdp": _SDP},
        ),
        foreign(403, "FORBIDDEN", path={"callSid": answered_call}, body={"sdp": _SDP}),
    ),
    *row(
        f"GET {_LISTENERS}",
        ok(path={"callSid": part(_listened, "callSid")}),
        refused(404, "NOT_FOUND", path={"callSid": _NOBODYS}),
        foreign(403, "FORBIDDEN", path={"callSid": answered_call}),
    ),
    *row(
        f"DELETE {_LISTENER}",
        ok(204, path=parts(_listened, "callSid", "listener_sid")),
        refused(404, "NOT_FOUND", path={"callSid": answered_call, "listener_sid": _NOBODYS}),
        foreign(403, "FORBIDDEN", path=parts(_listened, "callSid", "listener_sid")),
    ),
)
