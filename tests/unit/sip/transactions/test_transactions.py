"""The four transaction machines: their tables, and their timers on a virtual clock."""

from collections.abc import Sequence
from enum import IntEnum
from types import ModuleType
from typing import Any

import pytest

from sip.effects import Arm, Deliver, Done, Effect, Fail, Failure, Send
from sip.message.message import Request, Response, reply
from sip.message.parser import parse_message
from sip.session import inbound, outbound
from sip.session import model as session_model
from sip.timers import Timers
from sip.transactions import invite_client, invite_server, non_invite_client, non_invite_server
from sip.transactions.invite_client import InviteClientTransaction
from sip.transactions.invite_server import InviteServerTransaction
from sip.transactions.non_invite_client import NonInviteClientTransaction
from sip.transactions.non_invite_server import NonInviteServerTransaction

TIMERS = Timers()
TABLES: list[tuple[ModuleType, type[IntEnum], type[IntEnum]]] = [
    (module, module.State, module.Event)
    for module in (invite_client, invite_server, non_invite_client, non_invite_server)
] + [(module, session_model.State, session_model.Event) for module in (inbound, outbound)]


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
    """Runs one machine alone: performs its effects and keeps its timers on a virtual clock."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.now = 0.0
        self.sent: list[tuple[float, bytes]] = []
        self.delivered: list[Any] = []
        self.failed: list[tuple[float, Failure]] = []
        self.done_at: float | None = None
        self.timers: list[tuple[float, int]] = []
        self.perform(machine.start())

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.append((self.now, effect.data))
            elif isinstance(effect, Arm):
                self.timers.append((self.now + effect.delay_s, effect.event))
            elif isinstance(effect, Deliver):
                self.delivered.append(effect.message)
            elif isinstance(effect, Fail):
                self.failed.append((self.now, effect.failure))
            elif isinstance(effect, Done):
                assert self.machine.state.name == "TERMINATED"
                self.done_at = self.now

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted(timer for timer in self.timers if timer[0] <= end):
            self.timers.remove(due[0])
            self.now = due[0][0]
            self.perform(self.machine.trigger(due[0][1]))
        self.now = end

    @property
    def times(self) -> list[float]:
        return [round(at, 3) for at, _ in self.sent]


@pytest.mark.parametrize(("module", "states", "events"), TABLES, ids=lambda v: getattr(v, "__name__", ""))
def test_rules_and_ignored_pairs_cover_everything_once(
    module: ModuleType, states: type[IntEnum], events: type[IntEnum]
) -> None:
    rules, ignored = set(module.RULES), set(module.IGNORED)
    assert rules | ignored == {(state, event) for state in states for event in events}
    assert not rules & ignored


@pytest.mark.parametrize(("module", "states", "events"), TABLES, ids=lambda v: getattr(v, "__name__", ""))
def test_no_rule_goes_back(module: ModuleType, states: type[IntEnum], events: type[IntEnum]) -> None:
    assert all(target >= state for (state, _), (target, _) in module.RULES.items())


@pytest.mark.parametrize(("module", "states", "events"), TABLES, ids=lambda v: getattr(v, "__name__", ""))
def test_the_last_state_ignores_all_but_late_answers(
    module: ModuleType, states: type[IntEnum], events: type[IntEnum]
) -> None:
    last = max(states)
    left = {event.name for state, event in module.RULES if state == last}
    assert left <= {"SUCCESS", "LATE_OFFER"}


class TestInviteClient:
    """RFC 3261 17.1.1, RFC 6026 7.2."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("INVITE")
        return Driver(InviteClientTransaction(request, TIMERS, reliable=reliable)), request

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
        driver.perform(driver.machine.receive(response_to(request, 180)))
        driver.advance(600)
        assert driver.times == [0, 0.5]
        assert driver.failed == []
        assert [response.status for response in driver.delivered] == [180]

    def test_a_failure_is_acknowledged_each_time_and_delivered_once(self) -> None:
        driver, request = self.make()
        for _ in range(3):
            driver.perform(driver.machine.receive(response_to(request, 486)))
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
        driver.perform(driver.machine.receive(response_to(request, 486)))
        driver.advance(0)
        assert driver.done_at == 0

    def test_every_2xx_is_delivered_until_timer_m(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.receive(response_to(request, 200)))
        driver.advance(31.9)
        driver.perform(driver.machine.receive(response_to(request, 200)))
        driver.advance(1)
        driver.perform(driver.machine.receive(response_to(request, 200)))
        assert len(driver.delivered) == 2
        assert driver.done_at == 32.0
        assert len(driver.sent) == 1, "the ACK of a 2xx is not the transaction's affair"

    def test_transport_failure_before_any_response(self) -> None:
        driver, _ = self.make()
        driver.perform(driver.machine.fail_transport())
        assert driver.failed == [(0, Failure.TRANSPORT)]
        assert driver.done_at == 0

    def test_abandoned_it_is_silent_but_still_hears(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.trigger(invite_client.Event.ABANDON))
        driver.advance(10)
        assert driver.times == [0]
        driver.perform(driver.machine.receive(response_to(request, 180)))
        assert len(driver.delivered) == 1


class TestInviteServer:
    """RFC 3261 17.2.1, RFC 6026 7.1."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("INVITE")
        return Driver(InviteServerTransaction(request, TIMERS, reliable=reliable)), request

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
        driver.perform(driver.machine.respond(response_to(request, 180)))
        driver.advance(1)
        assert self.statuses(driver) == [180]

    def test_answers_a_repetition_with_the_last_response(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.receive(request))
        driver.perform(driver.machine.respond(response_to(request, 183)))
        driver.perform(driver.machine.receive(request))
        assert self.statuses(driver) == [100, 183, 183]

    def test_repeats_a_failure_until_the_ack(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.respond(response_to(request, 486)))
        driver.advance(4)
        driver.perform(driver.machine.receive(make_request("ACK")))
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5]
        assert driver.done_at == 9.0, "timer I"

    def test_gives_up_on_the_ack_at_timer_h(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.respond(response_to(request, 486)))
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]
        assert driver.done_at == 32.0

    def test_a_failure_over_a_stream_is_not_repeated(self) -> None:
        driver, request = self.make(reliable=True)
        driver.perform(driver.machine.respond(response_to(request, 486)))
        driver.advance(10)
        assert driver.times == [0]
        driver.perform(driver.machine.receive(make_request("ACK")))
        driver.advance(0)
        assert driver.done_at == 10.0

    def test_after_a_2xx_repetitions_are_absorbed_and_the_user_may_repeat_it(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.respond(response_to(request, 200)))
        driver.perform(driver.machine.receive(request))
        assert len(driver.sent) == 1
        driver.perform(driver.machine.respond(response_to(request, 200)))
        assert len(driver.sent) == 2
        driver.advance(60)
        assert driver.done_at == 32.0

    def test_an_ack_with_the_branch_of_the_invite_reaches_the_user(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.respond(response_to(request, 200)))
        driver.perform(driver.machine.receive(make_request("ACK")))
        assert [message.method for message in driver.delivered] == ["ACK"]


class TestNonInviteClient:
    """RFC 3261 17.1.2."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        request = make_request("BYE")
        return Driver(NonInviteClientTransaction(request, TIMERS, reliable=reliable)), request

    def test_repeats_up_to_t2_and_gives_up(self) -> None:
        driver, _ = self.make()
        driver.advance(60)
        assert driver.times == [0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]
        assert driver.failed == [(32.0, Failure.TIMEOUT)]

    def test_a_provisional_response_makes_it_slow_but_does_not_stop_it(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.receive(response_to(request, 100)))
        driver.advance(60)
        assert driver.times == [0, 0.5, 4.5, 8.5, 12.5, 16.5, 20.5, 24.5, 28.5]
        assert driver.failed == [(32.0, Failure.TIMEOUT)]

    def test_the_final_response_is_delivered_once(self) -> None:
        driver, request = self.make()
        for _ in range(3):
            driver.perform(driver.machine.receive(response_to(request, 200)))
        driver.advance(60)
        assert len(driver.delivered) == 1
        assert driver.done_at == 5.0, "timer K"

    def test_over_a_stream_it_ends_at_once(self) -> None:
        driver, request = self.make(reliable=True)
        driver.perform(driver.machine.receive(response_to(request, 200)))
        driver.advance(0)
        assert driver.done_at == 0


class TestNonInviteServer:
    """RFC 3261 17.2.2."""

    def make(self, *, reliable: bool = False) -> tuple[Driver, Request]:
        return Driver(NonInviteServerTransaction(TIMERS, reliable=reliable)), make_request("BYE")

    def test_a_repetition_before_the_response_is_absorbed(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.receive(request))
        assert driver.sent == []

    def test_a_repetition_gets_the_same_response(self) -> None:
        driver, request = self.make()
        driver.perform(driver.machine.respond(response_to(request, 200)))
        driver.advance(10)
        driver.perform(driver.machine.receive(request))
        assert driver.sent[0][1] == driver.sent[1][1]
        driver.advance(60)
        assert driver.done_at == 32.0, "timer J"

    def test_over_a_stream_it_ends_at_once(self) -> None:
        driver, request = self.make(reliable=True)
        driver.perform(driver.machine.respond(response_to(request, 200)))
        driver.advance(0)
        assert driver.done_at == 0
