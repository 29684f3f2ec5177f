"""Real PJSIP endpoints call each other through the server."""

from __future__ import annotations

import pytest

from tests.interop.conftest import MakePjsua, connect, hang_up, number, reach
from tests.sipp.exchange import Exchange
from tests.support.needs import needs_pjsua

pytestmark = [
    needs_pjsua,
    pytest.mark.timeout(180),
]


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_call_is_answered_and_heard(clean: Exchange, pjsua: MakePjsua, transport: str) -> None:
    caller, callee = pjsua("alice", transport=transport), pjsua("callee", transport=transport)
    reach(clean, callee.port, transport)
    connect(clean, caller, callee, transport)
    hang_up(caller, "c", callee, "in1")
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["hangup_source"]) == ("completed", "caller")


def test_hold_and_resume_by_either_side(clean: Exchange, pjsua: MakePjsua) -> None:
    caller, callee = pjsua("alice"), pjsua("callee")
    reach(clean, callee.port)
    connect(clean, caller, callee)
    for side, call, other, other_call in ((caller, "c", callee, "in1"), (callee, "in1", caller, "c")):
        side.do("hold", call=call)
        side.wait("transaction", method="INVITE", code=200, role="client")
        other.wait_for_silence(other_call)
        side.do("resume", call=call)
        side.wait("transaction", method="INVITE", code=200, role="client")
        side.wait_for_audio(call)
        other.wait_for_audio(other_call)
    hang_up(callee, "in1", caller, "c")


@pytest.mark.parametrize("method", ["rfc2833", "info"])
def test_digits_reach_the_other_side(clean: Exchange, pjsua: MakePjsua, method: str) -> None:
    caller, callee = pjsua("alice"), pjsua("callee")
    reach(clean, callee.port)
    connect(clean, caller, callee)
    caller.do("digits", call="c", digits="17#", method=method)
    assert [callee.wait("digit")["digit"] for _ in range(3)] == ["1", "7", "#"]
    callee.do("digits", call="in1", digits="42*", method=method)
    assert [caller.wait("digit")["digit"] for _ in range(3)] == ["4", "2", "*"]
    hang_up(caller, "c", callee, "in1")


@pytest.mark.parametrize(("code", "status"), [(486, "busy"), (603, "busy"), (480, "no-answer")])
def test_the_callee_declines(clean: Exchange, pjsua: MakePjsua, code: int, status: str) -> None:
    caller, callee = pjsua("alice"), pjsua("callee")
    reach(clean, callee.port)
    caller.do("call", call="c", uri=number(clean))
    callee.wait("incoming")
    callee.do("hangup", call="in1", code=code)
    assert caller.wait("state", state="DISCONNECTED")["code"] == code
    [call], _ = clean.calls(per_page=1)
    assert call["status"] == status


def test_the_caller_gives_up(clean: Exchange, pjsua: MakePjsua) -> None:
    caller, callee = pjsua("alice"), pjsua("callee")
    reach(clean, callee.port)
    caller.do("call", call="c", uri=number(clean))
    callee.wait("incoming")
    callee.do("answer", call="in1", code=180)
    caller.wait("state", state="EARLY", code=180)
    caller.do("hangup", call="c")
    callee.wait("state", state="DISCONNECTED")
    assert caller.wait("state", state="DISCONNECTED")["code"] == 487


@pytest.mark.parametrize("command", ["reinvite", "update"])
def test_the_session_is_renewed_by_either_side(clean: Exchange, pjsua: MakePjsua, command: str) -> None:
    caller, callee = pjsua("alice"), pjsua("callee")
    reach(clean, callee.port)
    connect(clean, caller, callee)
    method = {"reinvite": "INVITE", "update": "UPDATE"}[command]
    for side, call in ((caller, "c"), (callee, "in1")):
        side.do(command, call=call)
        assert side.wait("transaction", method=method, role="client")["code"] == 200
        side.wait_for_audio(call)
    hang_up(caller, "c", callee, "in1")


@pytest.mark.parametrize("side", ["caller", "callee"])
@pytest.mark.parametrize("use", ["optional", "required"])
def test_reliable_provisional_responses(clean: Exchange, pjsua: MakePjsua, side: str, use: str) -> None:
    """The early media of the callee reaches the caller, acknowledged by PRACK where that is wanted."""
    caller = pjsua("alice", rel100=use if side == "caller" else "off")
    callee = pjsua("callee", rel100=use if side == "callee" else "off")
    reach(clean, callee.port)
    caller.do("call", call="c", uri=number(clean))
    callee.wait("incoming", call="in1")
    callee.do("answer", call="in1", code=183)
    caller.wait("state", state="EARLY", code=183)
    caller.wait_for_audio("c")
    callee.do("answer", call="in1")
    caller.wait("state", call="c", state="CONFIRMED")
    callee.wait_for_audio("in1")
    hang_up(caller, "c", callee, "in1")
    acknowledged = [
        event for event in (caller if side == "caller" else callee).seen if event.get("method") == "PRACK"
    ]
    assert [event["code"] for event in acknowledged][:1] == [200]


def test_a_trunk_that_has_to_show_its_password(clean: Exchange, pjsua: MakePjsua) -> None:
    callee = pjsua("callee")
    reach(clean, callee.port)
    clean.server.add_carrier(
        "passworded",
        "udp:127.0.0.9:5060",
        inbound=True,
        inbound_auth_username="trunk7",
        inbound_auth_password="correct horse",
    )
    caller = pjsua("trunk7", password="correct horse", address="127.0.0.8")
    connect(clean, caller, callee)
    hang_up(caller, "c", callee, "in1")
    stranger = pjsua("trunk8", password="wrong horse", address="127.0.0.8")
    stranger.do("call", call="c", uri=number(clean))
    assert stranger.wait("state", state="DISCONNECTED")["code"] in (401, 403)


@pytest.mark.long(reason="a session timer of 90 s")
def test_the_session_timer_is_renewed_on_both_legs(clean: Exchange, pjsua: MakePjsua) -> None:
    """With the least interval there is, 90 s, each refresher renews after half of it and the call goes on."""
    caller = pjsua("alice", timer="always", session_expires_s=90)
    callee = pjsua("callee", timer="optional")
    reach(clean, callee.port, session_expires_s=90)
    connect(clean, caller, callee)
    for side in (caller, callee):
        found = side.wait("transaction", timeout_s=75, code=200, method="UPDATE")
        assert found["role"] in ("client", "server")
    caller.wait_for_audio("c")
    callee.wait_for_audio("in1")
    hang_up(caller, "c", callee, "in1")
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["hangup_source"]) == ("completed", "caller")


def trust(exchange: Exchange, port: int) -> None:
    """Know an endpoint as a trunk that may transfer its calls."""
    exchange.server.add_carrier(
        f"caller-{port}", f"udp:127.0.0.1:{port}", inbound=True, outbound=True, allows_refer=True
    )


@pytest.mark.parametrize("by", ["caller", "callee"])
def test_a_blind_transfer(clean: Exchange, pjsua: MakePjsua, by: str) -> None:
    caller, callee, third = pjsua("alice"), pjsua("callee"), pjsua("carol")
    for endpoint in (caller, third):
        trust(clean, endpoint.port)
    reach(clean, callee.port, allows_refer=True)
    connect(clean, caller, callee)
    first, call, stays, stays_call = (
        (caller, "c", callee, "in1") if by == "caller" else (callee, "in1", caller, "c")
    )
    first.do("transfer", call=call, target=f"sip:carol@127.0.0.1:{third.port}")
    third.wait("incoming", call="in1")
    third.do("answer", call="in1")
    assert first.wait("transfer", call=call, final=True)["code"] == 200
    third.wait_for_audio("in1")
    stays.wait_for_audio(stays_call)
    first.do("hangup", call=call)
    first.wait("state", call=call, state="DISCONNECTED")
    third.wait_for_audio("in1")
    hang_up(third, "in1", stays, stays_call)


def test_a_transfer_to_somebody_busy_leaves_the_call_as_it_was(clean: Exchange, pjsua: MakePjsua) -> None:
    caller, callee, third = pjsua("alice"), pjsua("callee"), pjsua("carol")
    for endpoint in (caller, third):
        trust(clean, endpoint.port)
    reach(clean, callee.port)
    connect(clean, caller, callee)
    caller.do("transfer", call="c", target=f"sip:carol@127.0.0.1:{third.port}")
    third.wait("incoming", call="in1")
    third.do("hangup", call="in1", code=486)
    assert caller.wait("transfer", call="c", final=True)["code"] == 486
    caller.wait_for_audio("c")
    callee.wait_for_audio("in1")
    hang_up(callee, "in1", caller, "c")


def test_an_attended_transfer(clean: Exchange, pjsua: MakePjsua) -> None:
    """A party with two calls joins their other ends and leaves."""
    caller, callee, third = pjsua("alice"), pjsua("callee"), pjsua("carol")
    trust(clean, caller.port)
    reach(clean, callee.port)
    connect(clean, caller, callee)
    reach(clean, third.port)
    caller.do("hold", call="c")
    callee.wait_for_silence("in1")
    caller.do("call", call="d", uri=number(clean))
    third.wait("incoming", call="in1")
    third.do("answer", call="in1")
    caller.wait("state", call="d", state="CONFIRMED")
    third.wait_for_audio("in1")
    caller.do("transfer_to_call", call="c", other="d")
    assert caller.wait("transfer", call="c", final=True)["code"] == 200
    callee.wait_for_audio("in1")
    third.wait_for_audio("in1")
    hang_up(third, "in1", callee, "in1")
