"""Requests that a SIP front forwards, on virtual time: whose they are is what the front says."""

from collections.abc import Sequence

import pytest

from sip import Response
from sip.aio import Guard, Screened, ScreenVerdict, Source
from sip.protection.rate_limits import ProtectionSettings
from tests.support.sip_agents import SDP, Agent, RawPeer, make_network

FRONT = ("192.0.2.1", 5060)
SERVER = ("192.0.2.2", 5060)
OTHER = ("198.51.100.7", 5060)
CARRIER = "203.0.113.5"


class Scene:
    """A server behind a front, which knows one carrier; and somebody who is no front."""

    def __init__(self, *, fronts: Sequence[str] = (f"{FRONT[0]}/32",)) -> None:
        self.network = make_network()
        self.guard = Guard(ProtectionSettings(fronts=tuple(fronts)), lambda host: host in (FRONT[0], CARRIER))
        self.seen: list[Source] = []
        self.server = Agent(self.network, SERVER, screen=self._screen, guard=self.guard)
        self.front = RawPeer(self.network, FRONT, SERVER)
        self.other = RawPeer(self.network, OTHER, SERVER)

    def _screen(self, source: Source, _: object) -> Screened:
        self.seen.append(source)
        return Screened(ScreenVerdict.ACCEPT if source.host == CARRIER else ScreenVerdict.FORBID)

    def ask(self, peer: RawPeer, method: str, named: str | None = None, for_s: float = 1) -> list[int]:
        """Send a request with what a front says of its source; the final statuses that come back."""
        before = len(peer.received)
        fields: dict[str, str | bytes] = {} if named is None else {"X_Trunkline_Source": named}
        if method == "INVITE":
            fields["body"] = SDP
        peer.send(peer.request(method, branch=f"{method}{self.network.clock.time()}", **fields))
        self.network.clock.advance(for_s)
        answers = [message for message in peer.received[before:] if isinstance(message, Response)]
        return [answer.status for answer in answers if answer.status >= 200]


async def scene_of(*, fronts: Sequence[str] = (f"{FRONT[0]}/32",)) -> Scene:
    scene = Scene(fronts=fronts)
    await scene.server.start()
    return scene


@pytest.mark.parametrize(
    ("named", "source"),
    [
        (f"udp:{CARRIER}:5090", Source(CARRIER, 5090, "udp")),
        (
            f"TLS:{CARRIER}:5061;name=Sip.Carrier.example;name=b.example",
            Source(CARRIER, 5061, "tls", frozenset({"sip.carrier.example", "b.example"})),
        ),
        (f"udp:{OTHER[0]}:5060", Source(*OTHER, "udp")),
        ("nonsense", Source("", 0, "nonsense")),
        (None, Source(*FRONT, "udp")),
    ],
)
async def test_a_call_is_of_whom_the_front_names(named: str | None, source: Source) -> None:
    scene = await scene_of()
    scene.ask(scene.front, "INVITE", named)
    assert scene.seen == [source]
    assert [agent.session.source for agent in scene.server.inbound] == (
        [(CARRIER, source.port)] if source.host == CARRIER else []
    )
    await scene.server.ua.close()


async def test_nobody_else_can_name_a_source() -> None:
    scene = await scene_of()
    assert scene.ask(scene.other, "INVITE", f"udp:{CARRIER}:5060") == [403]
    assert scene.seen == [Source(*OTHER, "udp")]
    await scene.server.ua.close()


async def test_without_fronts_the_field_means_nothing() -> None:
    scene = await scene_of(fronts=())
    scene.ask(scene.front, "INVITE", f"udp:{CARRIER}:5060")
    assert scene.seen == [Source(*FRONT, "udp")]
    await scene.server.ua.close()


@pytest.mark.parametrize("named", [f"udp:{OTHER[0]}:5060", "nonsense"])
async def test_a_flood_by_the_front_bans_who_floods(named: str) -> None:
    scene = await scene_of()
    for _ in range(150):
        scene.ask(scene.front, "INVITE", named, for_s=0.02)
    assert list(scene.guard.banned) == ["" if named == "nonsense" else OTHER[0]]
    assert scene.ask(scene.front, "OPTIONS") == [200]
    scene.ask(scene.front, "INVITE", f"udp:{CARRIER}:5060")
    assert [agent.session.source for agent in scene.server.inbound] == [(CARRIER, 5060)]
    await scene.server.ua.close()


async def test_a_stranger_behind_the_front_is_told_once_in_an_interval() -> None:
    scene = await scene_of()
    answers = [scene.ask(scene.front, "OPTIONS", f"udp:{OTHER[0]}:5060") for _ in range(5)]
    assert answers == [[403], [], [], [], []]
    assert scene.ask(scene.front, "OPTIONS", f"udp:{CARRIER}:5060") == [200]
    await scene.server.ua.close()
