"""Real baresips call each other through the server."""

from __future__ import annotations

import pytest

from tests.interop.conftest import MakeBaresip, MakePjsua, number, reach
from tests.interop.peers import HAVE_BARESIP, HAVE_PJSUA, Baresip
from tests.sipp.exchange import Exchange

pytestmark = [
    pytest.mark.skipif(not HAVE_BARESIP, reason="baresip is not installed (Debian: baresip-core)"),
    pytest.mark.timeout(180),
]


def connect(exchange: Exchange, caller: Baresip, callee: Baresip, transport: str = "udp") -> None:
    caller.do("dial", number(exchange, transport))
    callee.wait("CALL_INCOMING")
    callee.do("accept")
    callee.wait("CALL_ESTABLISHED")
    caller.wait("CALL_ESTABLISHED")


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("by", ["caller", "callee"])
def test_a_call_is_answered_and_ended(clean: Exchange, baresip: MakeBaresip, transport: str, by: str) -> None:
    caller, callee = baresip("alice", transport=transport), baresip("callee", transport=transport)
    reach(clean, callee.port, transport)
    connect(clean, caller, callee, transport)
    first, second = (caller, callee) if by == "caller" else (callee, caller)
    first.do("hangup")
    second.wait("CALL_CLOSED")
    [call], _ = clean.calls(per_page=1)
    assert (call["status"], call["hangup_source"]) == ("completed", by)


def test_hold_and_resume_by_either_side(clean: Exchange, baresip: MakeBaresip, pjsua: MakePjsua) -> None:
    if not HAVE_PJSUA:
        pytest.skip("pjsua2 is not installed: nobody to listen")
    caller, callee = baresip("alice"), pjsua("callee")
    reach(clean, callee.port)
    caller.do("dial", number(clean))
    callee.wait("incoming")
    callee.do("answer", call="in1")
    caller.wait("CALL_ESTABLISHED")
    callee.wait_for_audio("in1")
    caller.do("hold")
    callee.wait_for_silence("in1")
    caller.do("resume")
    callee.wait_for_audio("in1")
    callee.do("hangup", call="in1")
    caller.wait("CALL_CLOSED")


def test_digits_reach_the_other_side(clean: Exchange, baresip: MakeBaresip, pjsua: MakePjsua) -> None:
    if not HAVE_PJSUA:
        pytest.skip("pjsua2 is not installed: nobody to listen")
    caller, callee = baresip("alice"), pjsua("callee")
    reach(clean, callee.port)
    caller.do("dial", number(clean))
    callee.wait("incoming")
    callee.do("answer", call="in1")
    caller.wait("CALL_ESTABLISHED")
    for digit in "19#":
        caller.do("sndcode", digit)
        assert callee.wait("digit")["digit"] == digit
        caller.do("sndcode", "\x04")
    callee.do("digits", call="in1", digits="5")
    caller.wait("CALL_DTMF_START", param="5")
    caller.do("hangup")
    callee.wait("state", state="DISCONNECTED")


def test_the_caller_gives_up(clean: Exchange, baresip: MakeBaresip) -> None:
    caller, callee = baresip("alice"), baresip("callee")
    reach(clean, callee.port)
    caller.do("dial", number(clean))
    callee.wait("CALL_INCOMING")
    caller.wait("CALL_RINGING")
    caller.do("hangup")
    callee.wait("CALL_CLOSED")


def test_the_callee_declines(clean: Exchange, baresip: MakeBaresip) -> None:
    caller, callee = baresip("alice"), baresip("callee")
    reach(clean, callee.port)
    caller.do("dial", number(clean))
    callee.wait("CALL_INCOMING")
    callee.do("hangup")
    caller.wait("CALL_CLOSED")
    [call], _ = clean.calls(per_page=1)
    assert call["status"] == "busy"


def test_a_blind_transfer(clean: Exchange, baresip: MakeBaresip) -> None:
    caller, callee, third = baresip("alice"), baresip("callee"), baresip("carol")
    for endpoint in (caller, third):
        clean.server.add_carrier(
            f"caller-{endpoint.port}",
            f"udp:127.0.0.1:{endpoint.port}",
            inbound=True,
            outbound=True,
            allows_refer=True,
        )
    reach(clean, callee.port)
    connect(clean, caller, callee)
    caller.do("transfer", f"sip:carol@127.0.0.1:{third.port}")
    third.wait("CALL_INCOMING")
    third.do("accept")
    third.wait("CALL_ESTABLISHED")
    caller.wait("CALL_CLOSED")
    third.do("hangup")
    callee.wait("CALL_CLOSED")
