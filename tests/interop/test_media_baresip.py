"""Audio that baresip receives through the server: each of its codecs, plain and encrypted, in both roles."""

from __future__ import annotations

from typing import Final

import pytest

from media.capabilities import built_codecs, has_srtp
from tests.interop.conftest import MakeBaresip, number, reach, trust
from tests.interop.hearing import heard_tone
from tests.interop.peers import HAVE_BARESIP, Baresip
from tests.sipp.exchange import Exchange

pytestmark = [
    pytest.mark.skipif(not HAVE_BARESIP, reason="baresip is not installed (Debian: baresip-core)"),
    pytest.mark.timeout(180),
]
encrypted = pytest.mark.skipif(not has_srtp(), reason="the engine was built without SRTP")

CALLER_HZ, CALLEE_HZ = 500, 900
LISTEN_S = 1.6
CODECS: Final = {
    "PCMU": ("PCMU", "pcmu/8000"),
    "PCMA": ("PCMA", "pcma/8000"),
    "G722": ("G722", "g722/16000"),
    "L16/8000": ("L16", "L16/8000/1"),
    "L16/16000": ("L16", "L16/16000/1"),
    "OPUS": ("OPUS", "opus/48000/2"),
}
"""By what we call them: the codec of a trunk, and the name that baresip has for it."""
_ALIKE = pytest.mark.long("another codec or policy")
NARROW: Final = {"PCMU", "PCMA", "G722", "L16/8000"}
"""Those with a clock of 8000: baresip has telephone events at no other."""


def connect(exchange: Exchange, caller: Baresip, callee: Baresip) -> None:
    caller.do("dial", number(exchange))
    callee.wait("CALL_INCOMING")
    callee.do("accept")
    callee.wait("CALL_ESTABLISHED")
    caller.wait("CALL_ESTABLISHED")


def end(caller: Baresip, callee: Baresip) -> None:
    """Hang up after a while; each side must have heard the other's tone and little else."""
    caller.pause(LISTEN_S)
    caller.do("hangup")
    callee.wait("CALL_CLOSED")
    for listener, speaker in ((caller, callee), (callee, caller)):
        # Its own record counts, since the tone it makes is only about the one it was asked for.
        said = heard_tone(speaker.folder, "*-enc.wav")
        heard = heard_tone(listener.folder, "*-dec.wav")
        assert abs(said.frequency_hz - heard.frequency_hz) < 5, (said, heard)
        assert heard.share > 0.9, heard


@pytest.mark.parametrize(
    ("caller_codec", "callee_codec"),
    [
        ("PCMU", "PCMU"),
        ("L16/16000", "G722"),
        ("OPUS", "PCMA"),
        *(pytest.param(codec, codec, marks=_ALIKE) for codec in CODECS if codec != "PCMU"),
        pytest.param("PCMU", "OPUS", marks=_ALIKE),
    ],
)
def test_tones_and_digits_cross_with_each_codec(
    clean: Exchange, baresip: MakeBaresip, caller_codec: str, callee_codec: str
) -> None:
    (calls_with, caller_name), (called_with, callee_name) = CODECS[caller_codec], CODECS[callee_codec]
    if not {calls_with, called_with} <= set(built_codecs()):
        pytest.skip("the engine was built without the codec")
    caller = baresip("alice", codecs=caller_name, tone_hz=CALLER_HZ)
    callee = baresip("callee", codecs=callee_name, tone_hz=CALLEE_HZ)
    trust(clean, caller.port, codecs=[calls_with])
    reach(clean, callee.port, codecs=[called_with])
    connect(clean, caller, callee)
    if {caller_codec, callee_codec} <= NARROW:
        # Its SDP names an address of the machine, but it sends from another: it is heard after 200 ms.
        caller.pause(0.5)
        caller.do("sndcode", "5")
        callee.wait("CALL_DTMF_START", param="5")
        caller.do("sndcode", "\x04")
        callee.wait("CALL_DTMF_END")
    end(caller, callee)


@encrypted
@pytest.mark.parametrize(
    ("caller_srtp", "policy", "callee_srtp"),
    [
        ("srtp-mand", "require", "srtp-mand"),
        # As callee it takes RTP/SAVPF in an offer and nothing else.
        pytest.param("srtp-mandf", "require", "srtp-mand", marks=_ALIKE),
        pytest.param("srtp", "sdes", "srtp", marks=_ALIKE),
        pytest.param("srtp-mand", "sdes", "", marks=_ALIKE),
        ("", "sdes", "srtp"),
    ],
)
def test_tones_cross_encrypted_and_stay_through_hold(
    clean: Exchange, baresip: MakeBaresip, caller_srtp: str, policy: str, callee_srtp: str
) -> None:
    caller = baresip("alice", encryption=caller_srtp, tone_hz=CALLER_HZ)
    callee = baresip("callee", encryption=callee_srtp, tone_hz=CALLEE_HZ)
    trust(clean, caller.port, srtp=policy)
    reach(clean, callee.port, srtp=policy)
    connect(clean, caller, callee)
    assert caller.secured() == bool(caller_srtp)
    assert callee.secured() == bool(callee_srtp)
    # What it hears after it was on hold it does not record: this is the time it listens to the callee.
    caller.pause(1.2)
    for command in ("hold", "resume"):
        caller.do(command)
        caller.pause(0.4)
    end(caller, callee)


@encrypted
@pytest.mark.parametrize(("srtp", "policy"), [("srtp-mand", "off"), ("", "require")])
def test_a_caller_who_cannot_agree_is_refused(
    clean: Exchange, baresip: MakeBaresip, srtp: str, policy: str
) -> None:
    caller = baresip("alice", encryption=srtp)
    trust(clean, caller.port, srtp=policy)
    caller.do("dial", number(clean))
    assert caller.wait("CALL_CLOSED")["param"].startswith("488")
