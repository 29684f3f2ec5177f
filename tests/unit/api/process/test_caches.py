"""Caches have bounds, whatever comes, and are in the metrics."""

import importlib
import pkgutil
import tracemalloc
from collections.abc import Callable

import pytest

from api.process import caches
from callcontrol.directory.directory import plain_address
from callcontrol.e164 import CACHED_NUMBERS, read_number, to_e164
from callcontrol.routing.targets import parse_target
from callcontrol.trunks.number_format import dialled_numbers, number_in
from media.sdp import SessionDescription
from sip.location.rfc3263 import ip_version
from sip.message.fields import NameAddr, Via
from sip.message.uri import SipUri

_MOST_ENTRIES = 4096
_KIB = 1024
_OF_THE_PROGRAM = {
    "api.console.operations._endpoints",
    "api.console.rendering._environment",
    "api.console.rendering.texts_of",
    "api.http.app._patterns",
    "api.http.app.style_finder",
    "api.openapi.asyncapi.stream_documents",
    "api.schemas.base._written_forms",
    "api.schemas.base.field_names",
    "api.schemas.messaging.base._optional_names",
    "media.aio.agent_backpressure._readers",
}
"""Functions without a limit: what they are called with is the program's, not a caller's."""
_SDP = (
    "v=0\no=- {n} 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\nm=audio 4000 RTP/AVP 0\n{line}\n"
    "a=sendrecv\n"
)


def grown_kib(use: Callable[[int], object], *ends: int) -> list[float]:
    """Memory that more is held after calls with the numbers up to each end, in KiB."""
    found, number = [], 0
    tracemalloc.start()
    try:
        held, _ = tracemalloc.get_traced_memory()
        for end in ends:
            while number < end:
                use(number)
                number += 1
            before, (held, _) = held, tracemalloc.get_traced_memory()
            found.append((held - before) / _KIB)
    finally:
        tracemalloc.stop()
    return found


def test_each_cached_function_has_a_bound_and_is_found() -> None:
    """Also one of a module that is loaded late, such as that of a command."""
    for package in caches.PRODUCT:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if "migrations" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found = caches.functions()
    assert found["callcontrol.e164.to_e164"] is to_e164
    assert len(found) > 30
    limits = {name: function.cache_info().maxsize for name, function in found.items()}
    assert {name for name, limit in limits.items() if limit is None} == _OF_THE_PROGRAM
    assert {
        name: limit for name, limit in limits.items() if limit is not None and limit > _MOST_ENTRIES
    } == {}


HOSTILE: list[Callable[[str], object]] = [
    plain_address,
    ip_version,
    dialled_numbers,
    lambda text: number_in(text, None),
    lambda text: SipUri.parse(f"sip:{text}@example.com"),
    lambda text: NameAddr.parse(f"<sip:a@example.com>;tag={text}"),
    lambda text: Via.parse(f"SIP/2.0/UDP example.com;branch={text}"),
    lambda text: SessionDescription.parse(_SDP.format(n=1, line=f"a=x:{text[:2000]}").encode()),
]


@pytest.mark.parametrize("use", HOSTILE)
def test_long_texts_of_peers_are_not_kept(use: Callable[[str], object]) -> None:
    """4,096 texts of 4,000 characters would be 16 MiB."""
    [kib] = grown_kib(lambda number: use(f"{number:05d}" + "9" * 4000), 300)
    assert kib < 300


def test_numbers_that_come_once_fill_little_and_then_nothing() -> None:
    """Each call may have numbers of its own."""

    def use(number: int) -> None:
        text = f"+9198{number:08d}"
        assert read_number(text) == text
        parse_target(text, ("IN",))

    full_kib, _, more_kib = grown_kib(use, CACHED_NUMBERS, 2 * CACHED_NUMBERS, 3 * CACHED_NUMBERS)
    assert full_kib < 4096
    assert more_kib < full_kib / 8


@pytest.mark.parametrize(
    "line",
    ["a=rtcp:{}", "a=ssrc:{} cname:x", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{}", "k=base64:{}"],
)
def test_lines_of_one_call_alone_are_not_kept(line: str) -> None:
    """Each description has a port of its own for RTCP, and sources and keys, whatever line is the first."""
    common = caches.functions()["media.sdp.parser._common_lines"]
    before = common.cache_info().currsize
    for number in range(20):
        SessionDescription.parse(_SDP.format(n=number, line=line.format(40_000 + number)).encode())
    # The lines of the session are the same each time.
    assert common.cache_info().currsize <= before + 1
