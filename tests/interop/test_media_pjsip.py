"""Audio that PJSIP receives through the server: each of its codecs, plain and encrypted, in both roles."""

from __future__ import annotations

import re

import pytest

from media.capabilities import built_codecs, has_srtp
from tests.interop.conftest import MakePjsua, connect, hang_up, number, reach, trust
from tests.interop.hearing import heard_tone
from tests.interop.peers import Pjsua
from tests.sipp.exchange import Exchange
from tests.support.needs import needs_pjsua

pytestmark = [
    needs_pjsua,
    pytest.mark.timeout(180),
]
encrypted = pytest.mark.skipif(not has_srtp(), reason="the engine was built without SRTP")

CALLER_HZ, CALLEE_HZ = 500, 900
LISTEN_S = 1.6


def check_heard(caller: Pjsua, callee: Pjsua) -> None:
    """Each side heard the other's tone and little else; the calls are over."""
    for folder, hertz in ((caller.folder, CALLEE_HZ), (callee.folder, CALLER_HZ)):
        tone = heard_tone(folder)
        assert abs(tone.frequency_hz - hertz) < 10, tone
        assert tone.share > 0.9, tone


def suites(caller: Pjsua) -> list[str]:
    """The suites that PJSIP says its media is under; what it keeps a log of."""
    logs = "".join(path.read_text(errors="replace") for path in caller.folder.glob("pjsua-*.log"))
    return re.findall(r"SRTP[^\n]*?(AES_\w+_HMAC_SHA1_\d\d)", logs)


def round_trip_ms(dump: str) -> float:
    """The average round trip that PJSIP has measured; 0 before its reports were answered."""
    found = re.search(r"RTT msec +: +\S+ +(\S+)", dump)
    return float(found[1]) if found else 0.0


def wait_for_reports(side: Pjsua, call: str) -> None:
    """Wait until a report of ours has answered one of PJSIP, which come about every 5 s."""
    side.poll(lambda: side.do("dump", call=call), "dump", lambda event: round_trip_ms(str(event["text"])) > 0)


def check_secrecy(exchange: Exchange) -> None:
    """The trace of the newest call shows that there were keys, if there were, and none of them."""
    [call], _ = exchange.calls(per_page=1)
    reply = exchange.server.request("GET", f"/v1/calls/{call['call_sid']}/trace", exchange.account.api_key)
    messages = [entry["message"] for entry in reply.data["messages"]]
    shown = [found for message in messages for found in re.findall(r"inline:\S+", message)]
    assert set(shown) == {"inline:(withheld)"}


_ALIKE = pytest.mark.long("another codec or policy")


@pytest.mark.parametrize(
    ("caller_codec", "callee_codec"),
    [
        ("PCMA", "PCMA"),
        ("PCMU", "G722"),
        pytest.param("PCMU", "PCMU", marks=_ALIKE),
        pytest.param("G722", "G722", marks=_ALIKE),
        pytest.param("G722", "PCMA", marks=_ALIKE),
    ],
)
def test_tones_and_digits_cross_with_each_codec(
    clean: Exchange, pjsua: MakePjsua, caller_codec: str, callee_codec: str
) -> None:
    if not {caller_codec, callee_codec} <= set(built_codecs()):
        pytest.skip("the engine was built without the codec")
    caller = pjsua("alice", codecs=[caller_codec], tone_hz=CALLER_HZ)
    callee = pjsua("callee", codecs=[callee_codec], tone_hz=CALLEE_HZ)
    trust(clean, caller.port, codecs=[caller_codec])
    reach(clean, callee.port, codecs=[callee_codec])
    connect(clean, caller, callee)
    caller.do("digits", call="c", digits="5#")
    assert [callee.wait("digit")["digit"] for _ in range(2)] == ["5", "#"]
    caller.pause(LISTEN_S)
    hang_up(caller, "c", callee, "in1")
    check_heard(caller, callee)


@encrypted
@pytest.mark.parametrize(
    ("caller_srtp", "policy", "callee_srtp"),
    [
        ("mandatory", "require", "mandatory"),
        ("off", "sdes", "optional"),
        pytest.param("optional", "sdes", "optional", marks=_ALIKE),
        pytest.param("optional", "require", "mandatory", marks=_ALIKE),
        pytest.param("mandatory", "sdes", "off", marks=_ALIKE),
    ],
)
def test_tones_cross_encrypted_and_stay_through_hold(
    clean: Exchange, pjsua: MakePjsua, caller_srtp: str, policy: str, callee_srtp: str
) -> None:
    caller = pjsua("alice", srtp=caller_srtp, tone_hz=CALLER_HZ)
    callee = pjsua("callee", srtp=callee_srtp, tone_hz=CALLEE_HZ)
    trust(clean, caller.port, srtp=policy if caller_srtp != "off" else "sdes")
    reach(clean, callee.port, srtp=policy)
    connect(clean, caller, callee)
    for command in ("hold", "resume"):
        caller.do(command, call="c")
        caller.wait("transaction", method="INVITE", code=200, role="client")
    caller.wait_for_audio("c")
    caller.do("digits", call="c", digits="7")
    assert callee.wait("digit")["digit"] == "7"
    caller.pause(LISTEN_S)
    assert bool(suites(caller)) == (caller_srtp != "off")
    assert bool(suites(callee)) == (callee_srtp != "off")
    hang_up(callee, "in1", caller, "c")
    check_heard(caller, callee)
    check_secrecy(clean)


@pytest.mark.parametrize("srtp", ["off", pytest.param("mandatory", marks=encrypted)])
def test_reports_cross_both_ways(clean: Exchange, pjsua: MakePjsua, srtp: str) -> None:
    policy = "require" if srtp == "mandatory" else "off"
    caller, callee = pjsua("alice", srtp=srtp), pjsua("callee", srtp=srtp)
    trust(clean, caller.port, srtp=policy)
    reach(clean, callee.port, srtp=policy)
    connect(clean, caller, callee)
    wait_for_reports(caller, "c")
    wait_for_reports(callee, "in1")
    hang_up(caller, "c", callee, "in1")
    [call], _ = clean.calls(per_page=1)
    assert [leg["encrypted"] for leg in call["quality"]["legs"]] == [srtp == "mandatory"] * 2
    for leg in call["quality"]["legs"]:
        # What PJSIP said of what it received.
        assert leg["sent"]["packet_loss_pct"] is not None


@encrypted
@pytest.mark.parametrize(("srtp", "policy"), [("mandatory", "off"), ("off", "require")])
def test_a_caller_who_cannot_agree_is_refused(
    clean: Exchange, pjsua: MakePjsua, srtp: str, policy: str
) -> None:
    caller = pjsua("alice", srtp=srtp)
    trust(clean, caller.port, srtp=policy)
    caller.do("call", call="c", uri=number(clean))
    assert caller.wait("state", call="c", state="DISCONNECTED")["code"] == 488


@encrypted
@pytest.mark.parametrize(("srtp", "policy"), [("mandatory", "off"), ("off", "require")])
def test_a_callee_who_cannot_agree_gets_no_call(
    clean: Exchange, pjsua: MakePjsua, srtp: str, policy: str
) -> None:
    caller, callee = pjsua("alice"), pjsua("callee", srtp=srtp)
    reach(clean, callee.port, srtp=policy)
    caller.do("call", call="c", uri=number(clean))
    ended = caller.wait("state", call="c", state="DISCONNECTED")
    assert ended["code"] >= 400
