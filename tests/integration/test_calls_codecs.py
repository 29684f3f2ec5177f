"""Bridged calls whose parties speak other codecs, encrypted or not: each hears the other's tone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.records.quality import leg_quality
from callcontrol.models import CallStatus, LegQuality
from media.capabilities import built_codecs, has_srtp
from media.types import SrtpUse
from sip import Answered, Failed
from sip.aio import Listen, TlsSettings, UserAgentSettings
from tests.support.certificates import Authority
from tests.support.domain import CALLEE, OWN_NUMBER, make_carrier, make_gateway
from tests.support.phone import Phone, PhoneCall
from tests.support.world import World, running

ALL = ("PCMU", "PCMA", "G722", "L16", "OPUS")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


async def second_phone(world: World, *codecs: str, **policy: Any) -> Phone:
    """A telephone behind a trunk of its own, the callee's; both trunks take all codecs."""
    phone = Phone(world.far_engine, codecs=codecs)
    await phone.start()
    world.phones.append(phone)
    world.directory.put(
        carriers=[
            make_carrier(codecs=ALL),
            make_carrier("carrier-2", **{"prefixes": (CALLEE,), "codecs": ALL, **policy}),
        ],
        gateways=[make_gateway("gateway-b", port=phone.port, carrier_sid="carrier-2")],
    )
    return phone


async def bridged(world: World, second: Phone, *codecs: str) -> tuple[PhoneCall, PhoneCall]:
    world.forward()
    a = world.phone.call(OWN_NUMBER, world.port, codecs=codecs)
    await a.wait(Answered)
    return a, await second.next_call()


async def hear_each_other(a: PhoneCall, b: PhoneCall) -> None:
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)


def codec_of(call: PhoneCall) -> str:
    remote = call.open().remote
    assert remote is not None
    return remote.codec


@pytest.mark.parametrize(
    ("a_codec", "b_codec"),
    [
        ("G722", "PCMA"),
        ("OPUS", "PCMU"),
        ("PCMU", "OPUS"),
        ("L16", "G722"),
        ("G722", "OPUS"),
        ("OPUS", "L16"),
    ],
)
async def test_parties_of_two_codecs_hear_each_other(world: World, a_codec: str, b_codec: str) -> None:
    if not {a_codec, b_codec} <= set(built_codecs()):
        pytest.skip("the engine was built without one of them")
    a, b = await bridged(world, await second_phone(world, b_codec), a_codec)
    assert (codec_of(a), codec_of(b)) == (a_codec, b_codec)
    await hear_each_other(a, b)
    assert world.control.transcoded_streams == 2
    a.hang_up()
    await world.ended()


@pytest.mark.parametrize("codec", ["PCMA", "G722", "L16", "OPUS"])
async def test_parties_of_one_codec_are_relayed(world: World, codec: str) -> None:
    """The callee would rather have another one; what the caller speaks is offered first."""
    if codec not in built_codecs():
        pytest.skip("the engine was built without it")
    a, b = await bridged(world, await second_phone(world, *ALL), codec)
    assert (codec_of(a), codec_of(b)) == (codec, codec)
    await hear_each_other(a, b)
    assert world.control.transcoded_streams == 0
    a.hang_up()
    await world.ended()


@pytest.mark.skipif(not has_srtp(), reason="the engine was built without SRTP")
class TestEncrypted:
    @pytest.mark.parametrize(
        ("a_srtp", "b_srtp", "a_policy", "b_policy"),
        [
            ("off", "required", "off", "require"),
            ("required", "off", "sdes", "off"),
            ("required", "required", "require", "require"),
            ("optional", "off", "sdes", "sdes"),
        ],
    )
    async def test_each_leg_is_encrypted_as_its_trunk_says(
        self, world: World, a_srtp: SrtpUse, b_srtp: SrtpUse, a_policy: str, b_policy: str
    ) -> None:
        second = await second_phone(world, "PCMU", srtp=b_policy)
        world.directory.put(carriers=[make_carrier(codecs=ALL, srtp=a_policy)])
        world.phone.srtp, second.srtp = a_srtp, b_srtp
        a, b = await bridged(world, second, "PCMU")
        await hear_each_other(a, b)
        for call, encrypted in ((a, a_srtp != "off"), (b, b_srtp != "off")):
            remote = call.open().remote
            assert remote is not None and (remote.srtp_send is not None) is encrypted
        a.hang_up()
        await world.ended()

    async def test_a_gateway_of_tls_and_srtp(self, tmp_path: Path) -> None:
        """Its carrier says nothing of encryption."""
        authority = Authority(tmp_path)
        issued = authority.issue("localhost", addresses=["127.0.0.1"])
        tls = TlsSettings(issued.certificate, issued.key, authority.file)
        listens = [Listen("udp", "127.0.0.1", 0), Listen("tls", "127.0.0.1", 0)]
        async with running(tmp_path, sip_listens=listens, sip=UserAgentSettings(tls=tls)) as world:
            second = Phone(world.far_engine, codecs=("PCMA",), tls=tls)
            second.srtp = "required"
            await second.start()
            world.phones.append(second)
            gateway = make_gateway(
                "gateway-b", port=second.port, carrier_sid="carrier-2", protocol="tls/srtp"
            )
            world.directory.put(carriers=[make_carrier("carrier-2", prefixes=(CALLEE,))], gateways=[gateway])
            a, b = await bridged(world, second, "PCMU", "PCMA")
            assert b"RTP/SAVP " in b.request.body
            assert "SIP/2.0/TLS" in (b.request.headers.get("Via") or "")
            await hear_each_other(a, b)
            a.hang_up()
            quality = (await world.ended()).quality
            assert quality is not None
            assert [(leg.leg, leg.encrypted) for leg in quality.legs] == [("a", False), ("b", True)]

    async def test_a_callee_without_encryption_is_not_called_where_it_is_required(self, world: World) -> None:
        second = await second_phone(world, "PCMU", srtp="require")
        second.on_call = lambda call: call.reject(488)
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 488
        assert b"RTP/SAVP" in (await second.next_call()).request.body
        assert (await world.ended()).status is CallStatus.FAILED

    async def test_a_caller_without_encryption_is_refused_where_it_is_required(self, world: World) -> None:
        world.directory.put(carriers=[make_carrier(srtp="require")])
        world.forward()
        a = world.phone.call(OWN_NUMBER, world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 488
        assert failed.headers is not None and failed.headers.get("Warning")
        await world.ended()


async def test_the_record_tells_codec_encryption_and_quality_of_each_leg(world: World) -> None:
    second = await second_phone(world, "PCMA", srtp="sdes" if has_srtp() else "off")
    second.srtp = "optional" if has_srtp() else "off"
    a, b = await bridged(world, second, "G722")
    await hear_each_other(a, b)
    # What the far ends report of us comes with their reports, at random within some seconds.
    await a.until(lambda: all(leg.rtt_ms is not None and leg.sent.mos is not None for leg in legs_of(world)))
    a.hang_up()
    quality = (await world.ended()).quality
    assert quality is not None and (quality.codec, quality.encrypted) == ("G722", False)
    assert quality.mos is not None and quality.mos > 3.0 and quality.packet_loss_pct == 0.0
    first, other = quality.legs
    assert (first.leg, first.codec, first.encrypted) == ("a", "G722", False)
    assert (other.leg, other.codec, other.encrypted) == ("b", "PCMA", has_srtp())
    for leg in quality.legs:
        assert leg.rtt_ms is not None and leg.rtt_ms < 5000
        for direction in (leg.received, leg.sent):
            assert direction.mos is not None and direction.mos > 3.0
            assert direction.packet_loss_pct == 0.0
    assert world.control.quality.mos.count == 4


def legs_of(world: World) -> list[LegQuality]:
    """Return the known legs of the only call."""
    (runner,) = world.control._runners.values()
    return [leg_quality("x", media.remote, media.stream.stats()) for media in runner.media._legs.values()]
