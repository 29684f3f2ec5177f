"""
Vendors of speech models that mean harm, on whole calls: the call ends as specified, memory stays bounded, and
a call of somebody else in the same process goes on as if nothing were the matter.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from media.streams import MODEL_DIALECTS
from sip import Ended, Failed
from tests.integration.test_hostile_agents import MIB, Stage, beside_a_neighbour, hostile, resident_bytes
from tests.support.domain import OWN_NUMBER

OTHERS = sorted(MODEL_DIALECTS.keys() - {"openai"})
HARM = [
    ("garbage", 1008),
    ("commands", 1008),
    ("huge_frame", 1009),
    ("huge_message", 1009),
    ("half_frame", 4408),
    ("no_pong", 4408),
    ("never_reads", 4408),
    ("tiny_frames", 1008),
]


def served(kind: str, vendor: str) -> AbstractAsyncContextManager[tuple[str, asyncio.StreamReader]]:
    """A hostile vendor, by the address that it has."""
    return hostile(kind, vendor, scheme="http" if vendor == "ultravox" else "ws")


def bind(stage: Stage, vendor: str, url: str) -> None:
    model: dict[str, Any] = {"provider": vendor, "model": "m", "api_key": "key", "url": url, "max_retries": 0}
    stage.world.bind(target="model", model=model)


@pytest.mark.parametrize(
    ("vendor", "kind", "code"),
    [
        *(("openai", kind, code) for kind, code in HARM),
        *(
            pytest.param(vendor, kind, code, marks=pytest.mark.long("the same harm by another vendor"))
            for vendor in OTHERS
            for kind, code in HARM
            if kind in ("commands", "never_reads")
        ),
    ],
)
async def test_a_vendor_that_cannot_be_borne_ends_its_own_call_alone(
    tmp_path: Path, vendor: str, kind: str, code: int
) -> None:
    async with beside_a_neighbour(tmp_path) as stage, served(kind, vendor) as (url, _):
        bind(stage, vendor, url)
        before, memory = len(stage.neighbour.frames()), resident_bytes()
        a = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await a.wait(Ended)
        record = await stage.ended()
        assert (record.hangup_cause, record.hangup_source) == ("STREAM_DISCONNECTED", "stream")
        assert stage.world.published("stream.failed")["data"]["close_code"] == code
        await stage.neighbour.unharmed(before)
        assert resident_bytes() - memory < 64 * MIB


EARLY = ("mute_server", "endless_handshake", "slow_handshake")


@pytest.mark.parametrize(
    ("vendor", "kind"),
    [
        *(("gemini", kind) for kind in EARLY),
        *(
            pytest.param("ultravox", kind, marks=pytest.mark.long("the same harm to a request by HTTP"))
            for kind in EARLY
        ),
    ],
)
async def test_a_handshake_that_comes_to_nothing_leaves_the_caller_unanswered(
    tmp_path: Path, vendor: str, kind: str
) -> None:
    async with beside_a_neighbour(tmp_path) as stage, served(kind, vendor) as (url, _):
        memory = resident_bytes()
        bind(stage, vendor, url)
        before = len(stage.neighbour.frames())
        a = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        failed = await a.wait(Failed)
        assert isinstance(failed, Failed) and failed.status == 480
        assert (await stage.ended()).hangup_cause == "STREAM_DISCONNECTED"
        await stage.neighbour.unharmed(before)
        assert resident_bytes() - memory < 64 * MIB
