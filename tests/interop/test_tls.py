"""Real endpoints over TLS: each side shows a certificate of one authority and asks for the other's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from media.capabilities import has_srtp
from tests.interop.conftest import HELD_IN_SILENCE, MakeBaresip, MakePjsua, connect, hang_up, number, reach
from tests.interop.peers import HAVE_BARESIP
from tests.sipp.exchange import Exchange
from tests.support.certificates import Authority, Issued
from tests.support.needs import needs_pjsua

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def peer(authority: Authority) -> Issued:
    return authority.issue("peer", addresses=["127.0.0.1"])


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Exchange]:
    own = authority.issue("server", addresses=["127.0.0.1"])
    environment = {
        "TRUNKLINE_SIP_TLS_CA": str(authority.file),
        "TRUNKLINE_SIP_TLS_CLIENTS": "optional",
        **HELD_IN_SILENCE,
    }
    with Exchange(tmp_path_factory.mktemp("tls"), environment, (own.certificate, own.key)) as running:
        yield running


@needs_pjsua
def test_pjsip_calls_and_is_called(
    clean: Exchange, pjsua: MakePjsua, authority: Authority, peer: Issued
) -> None:
    secure = {
        "transport": "tls",
        "certificate": str(peer.certificate),
        "key": str(peer.key),
        "authority": str(authority.file),
    }
    caller, callee = pjsua("alice", **secure), pjsua("callee", **secure)
    reach(clean, callee.port, "tls")
    connect(clean, caller, callee, "tls")
    caller.do("hold", call="c")
    callee.wait_for_silence("in1")
    caller.do("resume", call="c")
    callee.wait_for_audio("in1")
    hang_up(callee, "in1", caller, "c")


@needs_pjsua
@pytest.mark.skipif(not has_srtp(), reason="the engine was built without SRTP")
def test_a_gateway_of_tls_and_srtp_gets_encrypted_media(
    clean: Exchange, pjsua: MakePjsua, authority: Authority, peer: Issued
) -> None:
    secure = {"certificate": str(peer.certificate), "key": str(peer.key), "authority": str(authority.file)}
    caller = pjsua("alice")
    callee = pjsua("callee", transport="tls", srtp="mandatory", **secure)
    reach(clean, callee.port, "tls/srtp")
    connect(clean, caller, callee)
    hang_up(caller, "c", callee, "in1")
    [call], _ = clean.calls(per_page=1)
    assert [leg["encrypted"] for leg in call["quality"]["legs"]] == [False, True]


@pytest.mark.skipif(not HAVE_BARESIP, reason="baresip is not installed (Debian: baresip-core)")
def test_baresip_calls_and_is_called(
    clean: Exchange, baresip: MakeBaresip, authority: Authority, peer: Issued, tmp_path: Path
) -> None:
    both = tmp_path / "peer.pem"
    both.write_bytes(peer.certificate.read_bytes() + peer.key.read_bytes())
    extra = f"sip_certificate\t{both}\nsip_cafile\t{authority.file}\n"
    caller = baresip("alice", transport="tls", extra=extra)
    callee = baresip("callee", transport="tls", extra=extra)
    reach(clean, callee.port + 1, "tls")  # It listens for TLS beside its port for UDP and TCP.
    caller.do("dial", number(clean, "tls"))
    callee.wait("CALL_INCOMING")
    callee.do("accept")
    caller.wait("CALL_ESTABLISHED")
    callee.wait("CALL_ESTABLISHED")
    caller.do("hangup")
    callee.wait("CALL_CLOSED")
