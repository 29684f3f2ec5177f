"""The four transactions of the signalling engine, and their timers on a virtual clock."""

from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from fuzz.targets.sip import PLAIN
from sip._wire import (
    ACK,
    CANCEL,
    ENDED,
    REPEATED,
    REQUEST,
    RESPONSE,
    SEND,
    TIMED_OUT,
    UNSENT,
    Engine,
    SourceGuard,
)
from sip.aio.transaction_io import fields_of_request, trying_of
from sip.effects import Failure
from sip.message.message import Message, Request, Response, reply, serialise
from sip.message.parser import DEFAULT_LIMITS, READER, parse_carefully, parse_message
from sip.protection.rate_limits import ProtectionSettings
from sip.session import inbound, outbound
from sip.session.model import Event, State
from sip.timers import Timers

if TYPE_CHECKING:
    from sip._wire import Outputs

TIMERS = Timers()
TABLES: list[ModuleType] = [inbound, outbound]
"""Those of the transactions are in C++, where the compiler and `test_transactions.cpp` prove the same."""


def make_request(method: str) -> Request:
    request = parse_message(
        f"{method} sip:bob@example.net SIP/2.0\r\n"
        "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKa1\r\n"
        "Route: <sip:proxy.example.net;lr>\r\n"
        "Max-Forwards: 70\r\n"
        "From: <sip:alice@example.net>;tag=1\r\n"
        "To: <sip:bob@example.net>\r\n"
        "Call-ID: c1\r\n"
        f"CSeq: 7 {method}\r\n\r\n".encode()
    )
    assert isinstance(request, Request)
    return request


def response_to(request: Request, status: int) -> Response:
    return reply(request, status, to_tag="2")


class Driver:
    """Drives one transaction of an engine: keeps what it sends and reports, on a virtual clock."""

    def __init__(self, request: Request, *, client: bool, reliable: bool = False) -> None:
        self.engine = Engine(READER, DEFAULT_LIMITS, TIMERS, 100)
        self.reliable = reliable
        self.now = 0.0
        self.sent: list[tuple[float, bytes]] = []
        self.delivered: list[Message] = []
        self.failed: list[tuple[float, Failure]] = []
        self.done_at: float | None = None
        self.number = 0
        if client:
            wire, branch = serialise(request), request.via.branch or ""
            self.number = self.engine.start_client(
                wire, request.method, branch, (-1, "192.0.2.1", 5060, reliable), self.now
            )
            self.sent.append((self.now, wire))
        else:
            kind, self.number, message, answer, _ = self.take(request)
            assert kind == REQUEST and message is not None and answer is None
            assert serialise(message) == serialise(request)
        assert self.number

    def take(self, message: Message) -> tuple[int, int, Message | None, bytes | None, int]:
        return self.engine.receive(serialise(message), "192.0.2.1", 5060, -1, self.reliable, True, self.now)

    def receive(self, message: Message) -> None:
        kind, _, told, answer, _ = self.take(message)
        if answer is not None:
            self.sent.append((self.now, answer))
        if kind in (RESPONSE, ACK):
            assert told is not None and serialise(told) == serialise(message)
            self.delivered.append(told)

    def respond(self, response: Response) -> None:
        wire = serialise(response)
        if self.engine.respond(self.number, response.status, wire, self.now):
            self.sent.append((self.now, wire))

    def fail_transport(self) -> None:
        self.perform(self.engine.fail_transport(self.number, self.now))

    def perform(self, outputs: "Outputs") -> None:
        for kind, number, data in outputs:
            assert number == self.number
            if kind == SEND:
                assert data is not None
                self.sent.append((self.now, data))
                continue
            if kind != ENDED:
                self.failed.append((self.now, {TIMED_OUT: Failure.TIMEOUT, UNSENT: Failure.TRANSPORT}[kind]))
            assert self.engine.state_of(number) is None
            self.done_at = self.now

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self.engine.due_s <= end:
            self.now = max(self.now, self.engine.due_s)
            self.perform(self.engine.advance(self.now))
        self.now = end

    @property
    def times(self) -> list[float]:
        return [round(at, 3) for at, _ in self.sent]


@pytest.mark.parametrize("module", TABLES)
def test_rules_and_ignored_pairs_cover_everything_once(module: ModuleType) -> None:
    rules, ignored = set(module.RULES), set(module.IGNORED)
    assert rules | ignored == {(state, event) for state in State for event in Event}
    assert not rules & ignored


@pytest.mark.parametrize("module", TABLES)
def test_no_rule_goes_back(module: ModuleType) -> None:
    assert all(target >= state for (state, _), (target, _) in module.RULES.items())


@pytest.mark.parametrize("module", TABLES)
def test_the_last_state_ignores_all_but_late_answers(module: ModuleType) -> None:
    last = max(State)
    left = {event.name for state, event in module.RULES if state == last}
    assert left <= {"SUCCESS", "LATE_OFFER"}


class TestInviteClient:
    """RFC 3261 17.1.1, RFC 6026 7.2."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("INVITE")
        return Driver(request, client=True, reliable=reliable), request

    def test_repeats_and_gives_up_without_a_response(self) -> None:
        driver, _ = self.make()
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5]
        assert driver.failed == [(32.0, Failure.TIMEOUT)]
        assert driver.done_at == 32.0

    def test_never_repeats_over_a_stream(self) -> None:
        driver, _ = self.make(reliable=True)
        driver.advance(60)
        assert driver.times == [0]
        assert driver.failed == [(32.0, Failure.TIMEOUT)]

    def test_a_provisional_response_stops_repeating_and_lets_it_ring(self) -> None:
        driver, request = self.make()
        driver.advance(0.7)
        driver.receive(response_to(request, 180))
        driver.advance(600)
        assert driver.times == [0, 0.5]
        assert driver.failed == []
        assert [message.status for message in driver.delivered if isinstance(message, Response)] == [180]

    def test_a_failure_is_acknowledged_each_time_and_delivered_once(self) -> None:
        driver, request = self.make()
        for _ in range(3):
            driver.receive(response_to(request, 486))
            driver.advance(1)
        acks = [parse_message(data) for _, data in driver.sent[1:]]
        assert len(acks) == 3
        assert len(driver.delivered) == 1
        ack = acks[0]
        assert isinstance(ack, Request)
        assert ack.method == "ACK"
        assert ack.cseq.number == 7
        assert ack.to.tag == "2"
        assert ack.via.branch == "z9hG4bKa1"
        assert ack.headers.get("Route") == "<sip:proxy.example.net;lr>"
        driver.advance(60)
        assert driver.done_at == 32.0

    def test_a_failure_over_a_stream_ends_it_at_once(self) -> None:
        driver, request = self.make(reliable=True)
        driver.receive(response_to(request, 486))
        driver.advance(0)
        assert driver.done_at == 0

    def test_every_2xx_is_delivered_until_timer_m(self) -> None:
        driver, request = self.make()
        driver.receive(response_to(request, 200))
        driver.advance(31.9)
        driver.receive(response_to(request, 200))
        driver.advance(1)
        driver.receive(response_to(request, 200))
        assert len(driver.delivered) == 2
        assert driver.done_at == 32.0
        assert len(driver.sent) == 1, "the ACK of a 2xx is not the transaction's affair"

    def test_transport_failure_before_any_response(self) -> None:
        driver, _ = self.make()
        driver.fail_transport()
        assert driver.failed == [(0, Failure.TRANSPORT)]
        assert driver.done_at == 0

    def test_abandoned_it_is_silent_but_still_hears(self) -> None:
        driver, request = self.make()
        driver.engine.abandon(driver.number, driver.now)
        driver.advance(10)
        assert driver.times == [0]
        driver.receive(response_to(request, 180))
        assert len(driver.delivered) == 1


INVITES = [data for data in PLAIN if data.startswith(b"INVITE ")]


@pytest.mark.parametrize("data", INVITES)
@pytest.mark.parametrize("source", [("192.0.2.1", 5060), ("198.51.100.7", 40_000)])
def test_the_100_of_the_engine_is_the_one_that_python_writes(data: bytes, source: tuple[str, int]) -> None:
    """RFC 3261 8.2.6: Via with its source, From, To, Call-ID and CSeq byte for byte."""
    assert INVITES
    engine = Engine(READER, DEFAULT_LIMITS, TIMERS, 100)
    kind, number, request, _, _ = engine.receive(data, *source, -1, False, True, 0.0)
    assert kind == REQUEST and isinstance(request, Request)
    [(_, _, trying)] = engine.advance(TIMERS.trying_s)
    assert trying == serialise(reply(request, 100))
    careful = parse_carefully(data)
    careful.headers.stamp_via(*source)
    assert request == careful


@pytest.mark.parametrize("data", INVITES)
@pytest.mark.parametrize("first_is_plain", [True, False])
def test_a_message_that_is_not_plain_matches_one_that_is(data: bytes, first_is_plain: bool) -> None:
    """A proxy may fold the lines of a repetition, or of its CANCEL."""
    engine = Engine(READER, DEFAULT_LIMITS, TIMERS, 100)
    request = parse_carefully(data)
    assert isinstance(request, Request)
    flow = (-1, "192.0.2.1", 5060, False)
    if first_is_plain:
        number = engine.receive(data, "192.0.2.1", 5060, -1, False, True, 0.0)[1]
        kind, found, _ = engine.take_request(fields_of_request(request), b"", flow, True, 0.0)
    else:
        number = engine.take_request(fields_of_request(request), trying_of(request), flow, True, 0.0)[1]
        kind, found, *_ = engine.receive(data, "192.0.2.1", 5060, -1, False, True, 0.0)
    assert number and (kind, found) == (REPEATED, number)
    cancel = data.replace(b"INVITE sip", b"CANCEL sip", 1).replace(b" INVITE\r\n", b" CANCEL\r\n", 1)
    assert engine.receive(cancel, "192.0.2.1", 5060, -1, False, True, 0.0)[:2] == (CANCEL, number)


class TestInviteServer:
    """RFC 3261 17.2.1, RFC 6026 7.1."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("INVITE")
        return Driver(request, client=False, reliable=reliable), request

    def statuses(self, driver: Driver) -> list[int]:
        found = [parse_message(data) for _, data in driver.sent]
        return [message.status for message in found if isinstance(message, Response)]

    def test_sends_100_when_the_user_is_slow(self) -> None:
        driver, _ = self.make()
        driver.advance(1)
        assert driver.times == [0.2]
        assert self.statuses(driver) == [100]

    def test_sends_no_100_after_a_quick_response(self) -> None:
        driver, request = self.make()
        driver.respond(response_to(request, 180))
        driver.advance(1)
        assert self.statuses(driver) == [180]

    def test_answers_a_repetition_with_the_last_response(self) -> None:
        driver, request = self.make()
        driver.receive(request)
        driver.respond(response_to(request, 183))
        driver.receive(request)
        assert self.statuses(driver) == [100, 183, 183]

    def test_repeats_a_failure_until_the_ack(self) -> None:
        driver, request = self.make()
        driver.respond(response_to(request, 486))
        driver.advance(4)
        driver.receive(make_request("ACK"))
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5]
        assert driver.done_at == 9.0, "timer I"

    def test_gives_up_on_the_ack_at_timer_h(self) -> None:
        driver, request = self.make()
        driver.respond(response_to(request, 486))
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]
        assert driver.done_at == 32.0

    def test_a_failure_over_a_stream_is_not_repeated(self) -> None:
        driver, request = self.make(reliable=True)
        driver.respond(response_to(request, 486))
        driver.advance(10)
        assert driver.times == [0]
        driver.receive(make_request("ACK"))
        driver.advance(0)
        assert driver.done_at == 10.0

    def test_after_a_2xx_repetitions_are_absorbed_and_the_user_may_repeat_it(self) -> None:
        driver, request = self.make()
        driver.respond(response_to(request, 200))
        driver.receive(request)
        assert len(driver.sent) == 1
        driver.respond(response_to(request, 200))
        assert len(driver.sent) == 2
        driver.advance(60)
        assert driver.done_at == 32.0

    def test_an_ack_with_the_branch_of_the_invite_reaches_the_user(self) -> None:
        driver, request = self.make()
        driver.respond(response_to(request, 200))
        driver.receive(make_request("ACK"))
        assert [message.method for message in driver.delivered if isinstance(message, Request)] == ["ACK"]


class TestNonInviteClient:
    """RFC 3261 17.1.2."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("BYE")
        return Driver(request, client=True, reliable=reliable), request

    def test_repeats_up_to_t2_and_gives_up(self) -> None:
        driver, _ = self.make()
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]
        assert driver.failed == [(32.0, Failure.TIMEOUT)]

    def test_a_provisional_response_makes_it_slow_but_does_not_stop_it(self) -> None:
        driver, request = self.make()
        driver.receive(response_to(request, 100))
        driver.advance(60)
        assert driver.times == [0, 0.5, 4.5, 8.5, 12.5, 16.5, 20.5, 24.5, 28.5]
        assert driver.failed == [(32.0, Failure.TIMEOUT)]

    def test_the_final_response_is_delivered_once(self) -> None:
        driver, request = self.make()
        for _ in range(3):
            driver.receive(response_to(request, 200))
        driver.advance(60)
        assert len(driver.delivered) == 1
        assert driver.done_at == 5.0, "timer K"

    def test_over_a_stream_it_ends_at_once(self) -> None:
        driver, request = self.make(reliable=True)
        driver.receive(response_to(request, 200))
        driver.advance(0)
        assert driver.done_at == 0


class TestNonInviteServer:
    """RFC 3261 17.2.2."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("BYE")
        return Driver(request, client=False, reliable=reliable), request

    def test_a_repetition_before_the_response_is_absorbed(self) -> None:
        driver, request = self.make()
        driver.receive(request)
        assert driver.sent == []

    def test_a_repetition_gets_the_same_response(self) -> None:
        driver, request = self.make()
        driver.respond(response_to(request, 200))
        driver.advance(10)
        driver.receive(request)
        assert driver.sent[0][1] == driver.sent[1][1]
        driver.advance(60)
        assert driver.done_at == 32.0, "timer J"

    def test_over_a_stream_it_ends_at_once(self) -> None:
        driver, request = self.make(reliable=True)
        driver.respond(response_to(request, 200))
        driver.advance(0)
        assert driver.done_at == 0


def test_who_answers_a_request_of_ours_is_trusted_and_nobody_else() -> None:
    guard = SourceGuard(ProtectionSettings())
    driver = Driver(make_request("OPTIONS"), client=True)
    driver.engine.set_guard(guard)
    for host, request in (("192.0.2.7", "OPTIONS"), ("192.0.2.8", "BYE")):
        data = serialise(response_to(make_request(request), 200))
        driver.engine.receive(data, host, 5060, -1, False, False, driver.now)
    assert guard.known() == ["192.0.2.7"]
