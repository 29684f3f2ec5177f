"""Neither party of a masked call learns the other's number: every byte sent to each of them is searched."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.process.server import Server
from tests.support.customers import add_customer
from tests.support.handset import Handset, Trunk
from tests.support.loopback_server import loopback_settings
from tests.support.phone import eventually
from tests.support.spellings import found_in
from tests.support.waiting import look_again

A, B = "9811120043", "9822230057"
OTHER = "9833340068"
MASKED = "+918047555001"
PATIENCE_S = 40.0

# What lets the most through: identities believed, histories, headers and redirections passed on.
_TALKATIVE = {
    "trusts_identity": True,
    "forwards_history": True,
    "forwarded_headers": ("X-Caller", "X-Order"),
    "allows_refer": True,
    "follows_redirects": True,
}


def marker(number: str) -> str:
    """A word that stands in all that a party says, beside the number."""
    return "hush" + "".join(chr(ord("a") + int(digit)) for digit in number)


def dress(handset: Handset) -> None:
    """Make a telephone say its number wherever a message has room for it."""
    number, word = handset.number, marker(handset.number)
    e164 = f"+91{number}"
    handset.tag = f"{number}{word}"
    handset.headers = [
        ("P-Asserted-Identity", f'"{word}" <sip:{e164}@127.0.0.1>'),
        ("P-Preferred-Identity", f"<sip:{e164}@127.0.0.1>"),
        ("Remote-Party-ID", f'"{number}" <sip:{e164}@127.0.0.1>;party=called;{word}=1'),
        ("Diversion", f"<sip:{e164}@127.0.0.1>;reason=unconditional;{word}=1"),
        ("History-Info", f"<sip:{e164}@127.0.0.1>;index=1;{word}=1"),
        ("P-Called-Party-ID", f"<sip:{e164}@127.0.0.1>"),
        ("User-Agent", f"{word}/{number}"),
        ("Server", f"{word}/{number}"),
        ("Organization", f"{word} {number}"),
        ("Subject", f"{word} {number}"),
        ("Call-Info", f"<http://{number}.example/{word}>;purpose=info"),
        ("Reason", f'Q.850;cause=17;text="{number} {word}"'),
        ("Warning", f'399 {word} "{number}"'),
        ("User-to-User", f"{number.encode().hex()};encoding=hex"),
        ("X-Caller", f"{e164} {word}"),
        ("X-Order", base64.b64encode(f"{e164} {word}".encode()).decode()),
        ("Session-ID", f"{word}{number}"),
    ]
    handset.session_lines = [f"a=x-number:{number}", f"a=ssrc:1 cname:{word}{number}", f"a=tool:{word}"]
    items = [(1, f"{word}@{number}"), (2, number), (4, e164), (7, word)]
    handset.description = b"".join(bytes([kind, len(text)]) + text.encode() for kind, text in items)


class Masked:
    """A server, and a trunk behind which both parties are."""

    def __init__(
        self, server: Server, trunk: Trunk, http: aiohttp.ClientSession, key: str, number_id: str
    ) -> None:
        self.server = server
        self.trunk = trunk
        self.number_id = number_id
        self._http = http
        self._key = key

    @property
    def sip_port(self) -> int:
        addresses = self.server.control.user_agent.addresses
        return next(item.port for item in addresses if item.transport == self.trunk.protocol)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._key}"}
        async with self._http.request(method, self.server.url + path, json=body, headers=headers) as got:
            answer = await got.json(content_type=None)
            return got.status, (answer or {}).get("data", answer)

    async def connect(self, **body: Any) -> str:
        """Connect A and B; returns the SID of the call."""
        status, made = await self.ask("POST", "/v1/masking/calls", {"party_a": A, "party_b": B, **body})
        assert status == 201, made
        assert made["masked_number"] == MASKED
        return str(made["call_sid"])

    async def ended(self, call_sid: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, call = await self.ask("GET", f"/v1/masking/calls/{call_sid}")
                if call["status"] in {"completed", "failed", "no-answer"}:
                    return dict(call)
                await look_again()

    def leaks(self) -> list[str]:
        """Return each text that somebody was sent with a number that is not theirs."""
        found = []
        for handset in self.trunk.handsets:
            assert handset.heard
            for number in {A, B} - {handset.number}:
                found += [leak for data in handset.heard for leak in _leaks(data, number)]
        found += [leak for data in self.trunk.outside for number in (A, B) for leak in _leaks(data, number)]
        return found


def _leaks(data: bytes, number: str) -> list[str]:
    shown = [*found_in(data, number), *([marker(number)] if marker(number).encode() in data else [])]
    return [f"{', '.join(shown)} of {number} in {data!r}"] if shown else []


@asynccontextmanager
async def masked_stage(
    folder: Path, protocol: str = "udp", gateways: int = 1, policy: Mapping[str, Any] | None = None
) -> AsyncIterator[Masked]:
    server = Server(loopback_settings(folder, SANDBOX_CARRIER="0", TRUSTED_SOURCES="127.0.0.0/8"))
    trunk = Trunk(protocol)
    await server.start()
    await trunk.start()
    storage = server.storage
    refusing = [Trunk(protocol) for _ in range(gateways - 1)]
    for other in refusing:
        await other.start()
    ports = [(protocol, "127.0.0.1", item.port) for item in (*refusing, trunk)]
    await storage.trunks.add_platform_carrier("trunk", ports, policy={**_TALKATIVE, **(policy or {})})
    customer = await add_customer(storage, MASKED)
    trunk.dress = dress
    for other in refusing:
        other.dress = dress
        other.scripts = {A: _fails_over, B: _fails_over}
    try:
        async with aiohttp.ClientSession() as http:
            stage = Masked(server, trunk, http, customer.key, customer.phone_number_id)
            yield stage
            assert await eventually(lambda: server.control.active_calls == 0)
            for other in refusing:
                trunk.handsets += other.handsets
                other.handsets = []
            assert stage.leaks() == []
    finally:
        for item in (trunk, *refusing):
            await item.close()
        await server.stop()


async def _fails_over(handset: Handset) -> None:
    await handset.reject(503)


async def _never(_: Handset) -> None:
    """Say nothing but what any telephone says by itself."""


async def _rings(handset: Handset) -> None:
    await handset.progress(180)


async def _rings_and_answers(handset: Handset) -> None:
    await handset.progress(181)
    await handset.progress(180)
    await handset.progress(183, early=True)
    await handset.answer()


def _hears_reports(handset: Handset) -> bool:
    return any(len(data) > 8 and data[0] >> 6 == 2 and 200 <= data[1] <= 207 for data in handset.heard)


async def _talks_about_itself(handset: Handset, other: str) -> None:
    """Everything that one side of a call may say about itself while it is up."""
    number, word = handset.number, marker(handset.number)
    about = f"{number} {word}".encode()
    await handset.ask("INVITE", handset._session().replace(b"sendrecv", b"sendonly"), "application/sdp")
    await handset.ask("INVITE", handset._session(), "application/sdp")
    await handset.ask("UPDATE")
    await handset.ask("INFO", b"Signal=5\r\nDuration=160\r\n", "application/dtmf-relay")
    await handset.ask("INFO", about, "text/plain")
    await handset.ask("MESSAGE", about, "text/plain")
    await handset.ask("OPTIONS")
    await handset.ask("NOTIFY", about, "message/sipfrag", [("Event", "refer")])
    status = await handset.ask(
        "REFER",
        headers=[
            ("Refer-To", f"<sip:+91{other}@127.0.0.1?Replaces=x&X-Caller={number}>"),
            ("Referred-By", f"<sip:+91{number}@127.0.0.1>"),
        ],
    )
    assert status >= 300, "a party transfers nobody"


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
async def test_a_call_in_full(tmp_path: Path, protocol: str) -> None:
    async with masked_stage(tmp_path, protocol) as stage:
        stage.trunk.scripts = {A: _rings_and_answers, B: _rings_and_answers}
        call_sid = await stage.connect(max_duration_sec=7200)
        a, b = await stage.trunk.handset(A), await stage.trunk.handset(B)
        await a.answered()
        await b.answered()
        await _talks_about_itself(a, B)
        await _talks_about_itself(b, A)
        assert await eventually(lambda: _hears_reports(a) and _hears_reports(b), PATIENCE_S)
        await b.hang_up([("Reason", f'Q.850;cause=16;text="{B}"')])
        await a.ended()
        assert (await stage.ended(call_sid))["status"] == "completed"


@pytest.mark.parametrize("identity", ["ppi", "rpid", "none"])
async def test_identities_of_every_kind_are_the_masked_number(tmp_path: Path, identity: str) -> None:
    policy = {"identity_header": identity, "diversion": MASKED, "tech_prefix": "77#"}
    async with masked_stage(tmp_path, policy=policy) as stage:
        call_sid = await stage.connect()
        a, b = await stage.trunk.handset(A), await stage.trunk.handset(B)
        await b.answered()
        for handset in (a, b):
            shown = str(handset.offered.headers.get("From"))
            assert MASKED in shown or MASKED.removeprefix("+") in shown
        await a.hang_up()
        await b.ended()
        await stage.ended(call_sid)


_ENDS = {
    "busy": (486, ()),
    "declined": (603, ()),
    "unavailable": (480, ()),
    "not found": (404, ()),
    "failed": (500, ()),
    "no codec": (488, ()),
    "redirected": (302, (("Contact", f"<sip:+91{B}@127.0.0.1:1>;q=0.5, <tel:+91{OTHER}>"),)),
}


@pytest.mark.parametrize("how", _ENDS)
@pytest.mark.parametrize("party", [A, B])
async def test_a_party_that_refuses(tmp_path: Path, how: str, party: str) -> None:
    status, headers = _ENDS[how]

    async def refuses(handset: Handset) -> None:
        await handset.progress(183, early=True)
        await handset.reject(status, headers)

    async with masked_stage(tmp_path) as stage:
        stage.trunk.scripts = {party: refuses}
        call = await stage.ended(await stage.connect())
        assert call["status"] in {"failed", "no-answer"}


async def test_a_gateway_that_fails_over(tmp_path: Path) -> None:
    async with masked_stage(tmp_path, gateways=2) as stage:
        call_sid = await stage.connect()
        b = await stage.trunk.handset(B)
        await b.answered()
        await b.hang_up()
        assert (await stage.ended(call_sid))["status"] == "completed"


async def test_a_caller_that_gives_up_while_the_other_rings(tmp_path: Path) -> None:
    async with masked_stage(tmp_path) as stage:
        stage.trunk.scripts = {B: _rings}
        call_sid = await stage.connect()
        a, b = await stage.trunk.handset(A), await stage.trunk.handset(B)
        await a.answered()
        await a.hang_up([("Reason", f'SIP;cause=200;text="{A}"')])
        await b.ended()
        assert any(request.method == "CANCEL" for request in b.requests)
        assert (await stage.ended(call_sid))["status"] == "no-answer"


async def _session(stage: Masked, **body: Any) -> None:
    """Connect A and B by their calls to the masked number."""
    status, made = await stage.ask("POST", "/v1/masking/numbers", {"number": MASKED})
    assert status in {200, 201}, made
    status, made = await stage.ask("POST", "/v1/masking/sessions", {"party_a": A, "party_b": B, **body})
    assert status == 201 and made["masked_number"] == MASKED, made


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
@pytest.mark.parametrize(("caller", "callee"), [(A, B), (B, A)])
async def test_a_call_to_the_masked_number(tmp_path: Path, protocol: str, caller: str, callee: str) -> None:
    async with masked_stage(tmp_path, protocol) as stage:
        stage.trunk.scripts = {callee: _rings_and_answers}
        await _session(stage)
        calling = await stage.trunk.call(stage.sip_port, caller, MASKED)
        called = await stage.trunk.handset(callee)
        await calling.answered()
        await called.answered()
        assert MASKED in str(called.offered.headers.get("From"))
        await _talks_about_itself(calling, callee)
        await _talks_about_itself(called, caller)
        assert await eventually(lambda: _hears_reports(calling) and _hears_reports(called), PATIENCE_S)
        await calling.hang_up([("Reason", f'Q.850;cause=16;text="{caller}"')])
        await called.ended()


@pytest.mark.parametrize("how", _ENDS)
async def test_a_call_to_the_masked_number_that_is_refused(tmp_path: Path, how: str) -> None:
    status, headers = _ENDS[how]

    async def refuses(handset: Handset) -> None:
        await handset.progress(181)
        await handset.progress(183, early=True)
        await handset.reject(status, headers)

    async with masked_stage(tmp_path) as stage:
        stage.trunk.scripts = {B: refuses, OTHER: refuses}
        await _session(stage)
        calling = await stage.trunk.call(stage.sip_port, A, MASKED)
        await calling.ended()
        assert calling.statuses()[-1] >= 400


async def test_a_stranger_learns_of_nobody(tmp_path: Path) -> None:
    async with masked_stage(tmp_path) as stage:
        await _session(stage)
        calling = await stage.trunk.call(stage.sip_port, OTHER, MASKED)
        await calling.ended()
        assert calling.statuses()[-1] in {404, 480}


async def test_the_search_finds_what_a_plain_call_shows(tmp_path: Path) -> None:
    """A call that is forwarded and not masked shows its caller: the search would find what is not masked."""
    async with masked_stage(tmp_path) as stage:
        binding = {"target": "forward", "forward_to": f"+91{B}"}
        path = f"/v1/phone-numbers/{stage.number_id}/inbound"
        assert (await stage.ask("PUT", path, binding))[0] == 200
        a = await stage.trunk.call(stage.sip_port, A, MASKED)
        b = await stage.trunk.handset(B)
        await b.answered()
        await a.answered()
        await b.hang_up()
        await a.ended()
        leaks = stage.leaks()
        assert any(b"From" in data and _leaks(data, A) for data in b.heard) and leaks
        stage.trunk.handsets.clear()
