"""ICMP errors end attempts at a dead port, and nothing else."""

import socket
import struct

import pytest

from sip import Answered, Destination, Failed, SipUri
from sip.aio.icmp import IP_RECVERR, IPV6_RECVERR, QUOTED_BYTES, IcmpError, read_errors, take_error
from sip.aio.transport import Address
from tests.support.sip_agents import SDP
from tests.support.sip_stage import ALICE, RAW, Stage, make_stage

DEAD = ("192.0.2.77", 5060)
REASON = "Connection refused"


@pytest.fixture
async def stage() -> Stage:
    return await make_stage()


def sent(stage: Stage, target: Address, method: str) -> list[bytes]:
    """Datagrams that Alice has sent to an address, with one method."""
    return [
        data
        for _, source, to, data in stage.network.wire
        if source == ALICE and to == target and data.startswith(method.encode() + b" ")
    ]


def refuse(
    stage: Stage, target: Address, method: str, *, quoted: bytes | None = None, remote: Address | None = None
) -> None:
    """Report an ICMP error of the last such datagram to Alice, or of another one."""
    if quoted is None:
        quoted = sent(stage, target, method)[-1][:QUOTED_BYTES]
    take_error(stage.alice.ua.layer, IcmpError(remote or target, quoted, REASON))


async def test_the_second_error_ends_an_invite(stage: Stage) -> None:
    alice = stage.alice.call(DEAD)
    refuse(stage, DEAD, "INVITE")
    stage.advance(0.45)
    assert alice.names == []
    stage.advance(0.1)
    assert len(sent(stage, DEAD, "INVITE")) == 2
    refuse(stage, DEAD, "INVITE")
    failed = alice.last(Failed)
    assert (failed.status, failed.cause, failed.reason) == (503, "transport", REASON)
    stage.finish()
    assert len(sent(stage, DEAD, "INVITE")) == 2


async def test_the_second_error_ends_every_request_to_the_port(stage: Stage) -> None:
    """Linux sends six errors at once and then one a second, however many requests a dead port gets."""
    raw = stage.raw(stage.alice)
    calls = [stage.alice.call(DEAD) for _ in range(20)]
    others = [stage.alice.call((DEAD[0], 5070)), stage.alice.call(RAW)]
    refuse(stage, DEAD, "INVITE")
    stage.advance(0.55)
    refuse(stage, DEAD, "INVITE")
    assert [call.names for call in calls] == [["Failed"]] * 20
    assert {call.last(Failed).cause for call in calls} == {"transport"}
    assert [call.names for call in others] == [[], []], "another port says nothing of this one"
    raw.respond(raw.requests("INVITE")[-1], 486)
    stage.advance(5.0)
    assert others[0].last(Failed).cause == "timeout"
    stage.finish()


async def test_a_request_that_was_just_sent_survives_the_errors_of_another(stage: Stage) -> None:
    """The peer may be back, or the errors forged by someone beyond it who sees the branch of his own call."""
    raw = stage.raw(stage.alice)
    old = stage.alice.call(RAW)
    refuse(stage, RAW, "INVITE")
    stage.advance(0.55)
    quoted = sent(stage, RAW, "INVITE")[-1]
    new = stage.alice.call(RAW)
    for _ in range(3):
        refuse(stage, RAW, "INVITE", quoted=quoted)
    assert (old.names, new.names) == (["Failed"], [])
    stage.advance(0.1)
    raw.respond(raw.requests("INVITE")[-1], 200, body=SDP)
    stage.advance()
    assert new.names == ["Answered"]
    new.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_the_end_of_others_counts_as_the_first_error(stage: Stage) -> None:
    stage.alice.call(DEAD)
    refuse(stage, DEAD, "INVITE")
    stage.advance(0.55)
    quoted = sent(stage, DEAD, "INVITE")[-1]
    later = stage.alice.call(DEAD)
    refuse(stage, DEAD, "INVITE", quoted=quoted)
    refuse(stage, DEAD, "INVITE")
    assert later.names == [], "a second error, but none of a repetition"
    stage.advance(0.55)
    refuse(stage, DEAD, "INVITE")
    assert later.last(Failed).cause == "transport"
    stage.finish()


async def test_a_peer_that_is_back_for_the_repetition_gets_the_call(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    refuse(stage, RAW, "INVITE")
    stage.advance(0.6)
    raw.respond(raw.requests("INVITE")[-1], 200, body=SDP)
    stage.advance()
    assert alice.names == ["Answered"]
    alice.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_a_response_makes_errors_harmless(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    raw.respond(raw.requests("INVITE")[0], 180)
    stage.advance()
    for _ in range(3):
        refuse(stage, RAW, "INVITE")
    raw.respond(raw.requests("INVITE")[0], 486)
    stage.advance()
    assert alice.last(Failed).status == 486
    stage.finish()


async def test_an_error_must_quote_the_request_and_name_its_destination(stage: Stage) -> None:
    alice = stage.alice.call(DEAD)
    [data] = sent(stage, DEAD, "INVITE")
    branch = data.index(b"branch=") + len("branch=z9hG4bK")
    forged = data[:branch] + b"x" + data[branch + 1 :]
    for _ in range(3):
        refuse(stage, DEAD, "INVITE", remote=(DEAD[0], 5070))
        for quoted in (forged, data[: branch + 10], b"", data.replace(b"INVITE sip", b"OPTIONS sip", 1)):
            refuse(stage, DEAD, "INVITE", quoted=quoted)
    stage.advance(3.9)
    assert alice.names == []
    stage.advance(0.2)
    assert alice.last(Failed).cause == "timeout"
    for _ in range(2):
        refuse(stage, DEAD, "INVITE")  # Of a request that was given up.
    stage.finish()


async def test_within_a_call_only_silence_counts(stage: Stage) -> None:
    raw, alice, _ = stage.answered_by_raw()
    assert alice.names == ["Answered"]
    alice.session.reinvite(SDP)
    for _ in range(4):
        refuse(stage, RAW, "INVITE")
    stage.advance(1)
    [request, *_] = [invite for invite in raw.requests("INVITE") if invite.to.tag is not None]
    raw.respond(request, 200, body=SDP)
    stage.advance()
    assert "Ended" not in alice.names
    assert isinstance(alice.events[0], Answered)
    alice.session.hangup()
    for _ in range(4):
        refuse(stage, RAW, "BYE")
    stage.advance(3.6)
    assert len(raw.requests("BYE")) == 4, "at 0, 0.5, 1.5 and 3.5 s"
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_a_probe_ends_too(stage: Stage) -> None:
    uri = SipUri("sip", host=DEAD[0])
    answered = stage.alice.ua.probes.options(Destination("udp", *DEAD), uri)
    for at in range(2):
        refuse(stage, DEAD, "OPTIONS")
        stage.advance(0.5 * (1 - at))
    assert await answered is None
    assert len(sent(stage, DEAD, "OPTIONS")) == 2
    stage.finish()


async def test_a_quote_of_the_least_length_has_the_branch(stage: Stage) -> None:
    """ICMP messages have at most 576 bytes (RFC 1812 4.3.2.3), of which 520 are of the datagram."""
    headers = [("X-Filler", "x" * 400)]
    alice = stage.alice.call(DEAD, headers=headers)
    [data] = sent(stage, DEAD, "INVITE")
    assert len(data) > 520
    refuse(stage, DEAD, "INVITE", quoted=data[:520])
    stage.advance(0.55)
    refuse(stage, DEAD, "INVITE", quoted=data[:520])
    assert alice.last(Failed).cause == "transport"
    stage.finish()


class _Queue:
    """Stand-in for a socket with errors in its queue."""

    def __init__(self, level: int, kind: int, *errors: tuple[int, int, int, int]) -> None:
        self._level, self._kind = level, kind
        self._errors = list(errors)

    def recvmsg(self, size: int, control: int, flags: int) -> tuple[object, ...]:
        assert flags == socket.MSG_ERRQUEUE
        if not self._errors:
            raise BlockingIOError
        data = struct.pack("=IBBBBII", *self._errors.pop(0), 0, 0, 0)
        return b"quoted", [(self._level, self._kind, data)], flags, ("192.0.2.1", 5060)


@pytest.mark.parametrize(
    ("errno", "origin", "icmp_type", "code", "counts"),
    [
        (111, 2, 3, 3, True),  # Port unreachable.
        (113, 2, 3, 1, True),  # Host unreachable.
        (71, 2, 12, 0, True),  # Parameter problem.
        (90, 2, 3, 4, False),  # Fragmentation needed.
        (113, 2, 11, 0, False),  # Time exceeded.
        (111, 2, 4, 0, False),  # Source quench.
        (90, 1, 0, 0, False),  # Of our own system.
        (111, 3, 1, 4, True),  # Port unreachable, IPv6.
        (113, 3, 3, 0, False),  # Time exceeded, IPv6.
        (90, 3, 2, 0, False),  # Packet too big.
    ],
)
def test_which_errors_count(errno: int, origin: int, icmp_type: int, code: int, counts: bool) -> None:
    error = (errno, origin, icmp_type, code)
    queue = _Queue(socket.IPPROTO_IP, IP_RECVERR, error, (111, 2, 3, 3))
    if origin == 3:
        queue = _Queue(socket.IPPROTO_IPV6, IPV6_RECVERR, error, (111, 3, 1, 4))
    # Of a socket only recvmsg is used, which the stand-in has.
    found = [error.reason for error in read_errors(queue)]  # type: ignore[arg-type]
    assert len(found) == 1 + counts and found[-1] == REASON
