"""What PJSIP hears through the server: each codec it has, plain and encrypted, as caller and as callee."""

from __future__ import annotations

import re

import pytest

from media.abilities import built_codecs, has_srtp
from tests.interop.conftest import MakePjsua, connect, hang_up, number, reach, trust
from tests.interop.hearing import heard_tone
from tests.interop.peers import HAVE_PJSUA, Pjsua
from tests.sipp.exchange import Exchange

pytestmark = [
    pytest.mark.skipif(not HAVE_PJSUA, reason="pjsua2 is not installed (PyPI: pjsua2-python)"),
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


@pytest.mark.parametrize(
    ("caller_codec", "callee_codec"),
    [("PCMU", "PCMU"), ("PCMA", "PCMA"), ("G722", "G722"), ("G722", "PCMA"), ("PCMU", "G722")],
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
        ("optional", "sdes", "optional"),
        ("optional", "require", "mandatory"),
        ("mandatory", "sdes", "off"),
        ("off", "sdes", "optional"),
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
