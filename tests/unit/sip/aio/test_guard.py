"""The guard between the network and a user agent, on virtual time."""

import re
from collections.abc import Callable

import pytest

from sip import Response, Secret, serialise
from sip.aio import Guard, InboundSession, Screened, ScreenVerdict
from sip.aio.transport import Address
from sip.effects import Purpose
from sip.message.message import reply
from sip.protection.rate_limits import ProtectionSettings
from tests.support.sip_agents import SDP, RawPeer, make_network
from tests.support.sip_agents import Agent as PlainAgent
from tests.support.sip_network import Network

GATEWAY = ("192.0.2.1", 5060)
SERVER = ("192.0.2.2", 5060)
STRANGER = ("198.51.100.7", 5060)


class Scene:
    """A guarded server, its one gateway, and a stranger."""

    def __init__(self, network: Network, server: PlainAgent) -> None:
        self.network = network
        self.server = server
        self.stranger = self.peer(STRANGER)
        self.gateway = self.peer(GATEWAY)

    @property
    def guard(self) -> Guard:
        assert self.server.ua.guard is not None
        return self.server.ua.guard

    def peer(self, address: Address) -> RawPeer:
        return RawPeer(self.network, address, SERVER)

    def advance(self, seconds: float = 0.05) -> None:
        self.network.clock.advance(seconds)

    def ask(self, peer: RawPeer, method: str, for_s: float = 60, **fields: str | bytes) -> list[int]:
        """Send a request; the statuses of all that comes back in a time."""
        before = len(peer.received)
        peer.send(peer.request(method, branch=f"{method}{self.network.clock.time()}", **fields))
        self.advance(for_s)
        return [message.status for message in peer.received[before:]]  # type: ignore[union-attr]


async def make_scene(
    settings: ProtectionSettings | None = None,
    screen: Callable[[str], ScreenVerdict] = lambda host: (
        ScreenVerdict.ACCEPT if host == GATEWAY[0] else ScreenVerdict.FORBID
    ),
) -> Scene:
    network = make_network()
    guard = Guard(settings or ProtectionSettings(), lambda host: host == GATEWAY[0])
    server = PlainAgent(network, SERVER, screen=lambda source, request: screen(source.host), guard=guard)
    await server.start()
    return Scene(network, server)


REQUESTS = ["INVITE", "REGISTER", "OPTIONS", "BYE", "CANCEL", "SUBSCRIBE", "FROBNICATE"]


@pytest.mark.parametrize("method", REQUESTS)
async def test_a_stranger_is_told_the_same_whatever_it_asks(method: str) -> None:
    scene = await make_scene()
    assert scene.ask(scene.stranger, method) == [403]
    answer = scene.stranger.received[0]
    names = [entry[1] for entry in answer.headers.entries]
    assert names == ["Via", "From", "To", "Call-ID", "CSeq", "Content-Length"]
    await scene.server.ua.close()


@pytest.mark.parametrize("method", REQUESTS)
async def test_a_stranger_is_told_nothing_by_setting(method: str) -> None:
    scene = await make_scene(ProtectionSettings(answer_unknown_sources=False))
    assert scene.ask(scene.stranger, method) == []
    await scene.server.ua.close()


async def test_a_stranger_is_told_once_in_an_interval() -> None:
    scene = await make_scene()
    for count in range(8):
        scene.stranger.send(scene.stranger.request("OPTIONS", branch=f"o{count}"))
        scene.advance(1)
    assert len(scene.stranger.received) == 1
    scene.advance(5)
    assert scene.ask(scene.stranger, "OPTIONS") == [403]
    await scene.server.ua.close()


async def test_a_stranger_never_gets_more_bytes_than_it_sent() -> None:
    scene = await make_scene()
    bare = (
        b"OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 198.51.100.7;branch=z9hG4bK1;rport\r\n"
        b"From: <sip:a>;tag=1\r\nTo: <sip:b>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\n\r\n"
    )
    scene.stranger.send(bare)
    scene.advance(60)
    assert scene.stranger.received == []
    scene.stranger.send(bare.replace(b"\r\n\r\n", b"\r\nSubject: " + b"x" * 100 + b"\r\n\r\n"))
    scene.advance(60)
    (answer,) = scene.stranger.received
    assert len(serialise(answer)) <= len(bare) + 110
    await scene.server.ua.close()


async def test_a_strangers_rubbish_is_not_answered_and_leads_to_a_ban() -> None:
    scene = await make_scene()
    broken = serialise(scene.stranger.request("OPTIONS", branch="b")).replace(b"CSeq: 1", b"CSeq: x")
    for _ in range(21):
        scene.stranger.send(broken)
        scene.advance(0.5)
    assert scene.stranger.received == []
    assert list(scene.guard.banned) == [STRANGER[0]]
    scene.gateway.send(broken)
    scene.advance(1)
    _, source, target, answer = scene.network.wire[-1]
    assert (source, target) == (SERVER, GATEWAY)
    assert answer.startswith(b"SIP/2.0 400 ")
    await scene.server.ua.close()


async def test_a_scanner_meets_silence_for_a_minute() -> None:
    scene = await make_scene()
    assert scene.ask(scene.stranger, "OPTIONS", User_Agent="friendly-scanner") == []
    scene = await make_scene()
    scene.stranger.send(scene.stranger.request("OPTIONS", branch="s", User_Agent="sipcli/1.8"))
    scene.advance(59)
    scene.stranger.send(scene.stranger.request("OPTIONS", branch="t"))
    scene.advance(0.9)
    assert scene.stranger.received == []
    scene.advance(1)
    assert scene.ask(scene.stranger, "OPTIONS") == [403]
    await scene.server.ua.close()


async def test_gateways_get_the_answers_they_always_got() -> None:
    scene = await make_scene()
    assert scene.ask(scene.gateway, "OPTIONS", User_Agent="friendly-scanner") == [200]
    assert scene.ask(scene.gateway, "BYE", To="<sip:x@y>;tag=1") == [481]
    assert scene.ask(scene.gateway, "FROBNICATE") == [501]
    await scene.server.ua.close()


async def test_who_is_called_may_speak_within_the_call_however_much() -> None:
    """The peer of a call out is no gateway by its address: it was found by name."""
    scene = await make_scene()
    side = scene.server.call(STRANGER)
    scene.advance()
    invite = scene.stranger.requests("INVITE")[0]
    scene.stranger.respond(invite, 200, body=SDP)
    scene.advance()
    dialog = {
        "From": f"{invite.headers.get('To')};tag=peer",
        "To": str(invite.headers.get("From")),
        "Call_ID": invite.call_id,
    }
    for count in range(100):
        info = scene.stranger.request("INFO", branch=f"i{count}", CSeq=f"{count + 1} INFO", **dialog)
        scene.stranger.send(info)
    scene.advance()
    assert len(scene.stranger.responses("INFO", 200)) == 100
    scene.stranger.send(scene.stranger.request("BYE", branch="bye", CSeq="200 BYE", **dialog))
    scene.advance()
    assert "Ended" in side.names
    await scene.server.ua.close()


async def test_a_banned_source_that_is_called_is_heard_again() -> None:
    scene = await make_scene()
    scene.ask(scene.stranger, "OPTIONS", User_Agent="sipvicious")
    scene.server.call(STRANGER)
    scene.advance()
    scene.stranger.respond(scene.stranger.requests("INVITE")[0], 486)
    scene.advance()
    assert len(scene.stranger.requests("ACK")) == 1
    await scene.server.ua.close()


async def test_whom_the_screen_accepts_is_known_from_then_on() -> None:
    scene = await make_scene(screen=lambda host: ScreenVerdict.ACCEPT)
    scene.server.answer = lambda session: InboundSession.reject(session, 486)
    assert scene.ask(scene.stranger, "OPTIONS") == [403]
    assert 486 in scene.ask(scene.stranger, "INVITE", body=SDP)
    assert scene.ask(scene.stranger, "OPTIONS") == [200]
    await scene.server.ua.close()


async def test_nothing_is_left_behind_when_it_closes() -> None:
    scene = await make_scene()
    scene.ask(scene.stranger, "OPTIONS")
    assert scene.network.clock.scheduled == 1
    await scene.server.ua.close()
    assert scene.network.clock.scheduled == 0


def wait(scene: Scene, waited_s: float, for_s: float) -> None:
    for _ in range(round(for_s * 10)):
        scene.guard.note_wait(waited_s)
        scene.advance(0.1)


async def test_messages_that_wait_in_the_socket_refuse_new_calls_until_they_wait_no_more() -> None:
    scene = await make_scene()
    scene.server.answer = lambda session: InboundSession.reject(session, 486)
    wait(scene, 0.5, 4)
    assert scene.guard.share < 0.05
    assert scene.ask(scene.gateway, "INVITE", body=SDP) == [503]
    assert scene.guard.rejected == {"overload": 1}
    assert scene.server.ua.transactions == 0
    wait(scene, 0.0, 6)
    assert scene.guard.share == 1.0
    assert 486 in scene.ask(scene.gateway, "INVITE", body=SDP, Call_ID="another")
    await scene.server.ua.close()


async def test_what_waits_while_the_program_starts_is_no_overload() -> None:
    scene = await make_scene()
    scene.guard.starting = True
    wait(scene, 1.0, 2)
    assert (scene.guard.share, scene.guard.pressed) == (1.0, False)
    scene.guard.starting = False
    wait(scene, 1.0, 2)
    assert scene.guard.pressed, "once it is there, it is"
    await scene.server.ua.close()


async def test_under_severe_overload_a_strangers_invite_is_not_even_read() -> None:
    scene = await make_scene()
    wait(scene, 2.0, 2)
    scene.stranger.send(scene.stranger.request("INVITE", branch="i", body=SDP))
    scene.advance(0.05)
    assert scene.stranger.received == []
    assert scene.guard.rejected == {"overload": 1}
    scene.advance(5)
    assert scene.ask(scene.stranger, "INVITE", body=SDP) == [403]
    await scene.server.ua.close()


async def test_who_is_refused_while_there_is_no_time_is_not_even_told() -> None:
    scene = await make_scene()
    scene.server.answer = lambda session: InboundSession.reject(session, 486)
    wait(scene, 0.3, 4)
    assert scene.guard.pressed
    for count in range(300):
        request = scene.gateway.request("INVITE", branch=f"i{count}", body=SDP, Call_ID=f"call{count}")
        scene.gateway.send(request)
    scene.advance(0.05)
    refused, taken = len(scene.gateway.responses("INVITE", 503)), len(scene.server.inbound)
    # Looks are a tenth of a second apart: a tenth of the refusals of a second, and a fiftieth of the calls.
    assert (refused, taken) == (20, 6)
    assert scene.guard.rejected == {"overload": 20, "unread": 300 - 20 - 6}
    # What belongs to a dialog is served however much there is to do.
    within = scene.gateway.request("INVITE", branch="r", body=SDP, To="<sip:ua@example.net>;tag=x")
    scene.gateway.send(within)
    scene.advance(0.05)
    assert len(scene.gateway.responses("INVITE", 481)) == 1
    await scene.server.ua.close()


def wrong_answer(challenge: Response, number: int) -> str:
    """An Authorization that answers a challenge with a password that is wrong."""
    offered = challenge.headers.get("WWW-Authenticate") or ""
    fields = dict(re.findall(r'(\w+)="?([^",]*)"?', offered))
    return (
        f'Digest username="trunk", realm="{fields["realm"]}", nonce="{fields["nonce"]}", '
        f'algorithm={fields.get("algorithm", "MD5")}, uri="sip:ua@192.0.2.2:5060", qop=auth, '
        f'nc={number:08x}, cnonce="x", response="{number:032x}"'
    )


async def test_guessing_a_password_ends_in_silence() -> None:
    network = make_network()
    secret = Secret("trunk", "right")
    server = PlainAgent(
        network,
        SERVER,
        screen=lambda source, request: Screened(ScreenVerdict.CHALLENGE, secrets_of=lambda user: (secret,)),
        guard=Guard(ProtectionSettings(), lambda host: False),
    )
    await server.start()
    scene = Scene(network, server)
    # Whoever asks without a password, however often, is asked for one.
    for _ in range(30):
        assert scene.ask(scene.stranger, "INVITE", 2) == [401]
    guesses = 0
    while True:
        challenge = scene.stranger.responses("INVITE", 401)[-1]
        answer = scene.ask(
            scene.stranger, "INVITE", 2, Authorization=wrong_answer(challenge, guesses + 1), CSeq="2 INVITE"
        )
        if not answer:
            break
        assert answer == [401]
        guesses += 1
    assert guesses == 20
    assert scene.guard.rejected["credentials"] == 20
    assert scene.server.inbound == []
    await server.ua.close()


async def test_our_own_address_is_let_in_and_others_of_its_host_are_not() -> None:
    scene = await make_scene()
    scene.guard.own = STRANGER
    neighbour = scene.peer((STRANGER[0], 5070))
    now = scene.network.clock.time()
    for _ in range(30):
        scene.guard.protection.on_malformed(STRANGER[0], now)
    assert scene.ask(scene.stranger, "OPTIONS", for_s=1) == [200]
    assert scene.ask(neighbour, "OPTIONS", for_s=1) == []
    assert STRANGER[0] in scene.guard.banned


async def test_who_answers_in_a_message_that_is_not_plain_is_trusted_too() -> None:
    scene = await make_scene()
    layer = scene.server.ua.layer
    ask = scene.stranger.request("OPTIONS", branch="-")
    ask.headers.remove("Via")
    transaction = layer.start_client(ask, layer.transports[0].flow_to(GATEWAY), None, Purpose.INFO)
    answer = reply(transaction.request, 200, headers=[("Subject", "folded")])
    folded = serialise(answer).replace(b"folded", b"fol\r\n ded")
    layer.receive_admitted(folded, layer.transports[0].flow_to(STRANGER), known=False)
    assert scene.guard.protection.knows(STRANGER[0])
    await scene.server.ua.close()
