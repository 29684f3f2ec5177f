"""The registrations of a process follow the carriers of its directory."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from callcontrol.models import Carrier
from callcontrol.nodes.duties import Duty
from callcontrol.trunks.aio.registrations import STARTS_PER_S, CarrierRegistrations
from sip import OutboundRegistration, RegistrationState
from sip.aio import RegistrationIO, UserAgent
from sip.registration import RegistrationStatus
from tests.support.domain import MemoryDirectory, make_carrier, make_gateway
from tests.support.waiting import holds_for, until

LOGIN: dict[str, Any] = {
    "requires_register": True,
    "register_username": "user",
    "register_password": "secret",
}


class FakeRun:
    """A registration whose registrar answers when a test says so."""

    def __init__(
        self, registration: OutboundRegistration, tell: Callable[[Any], None], after_s: float
    ) -> None:
        self.registration = registration
        self.after_s = after_s
        self.status = RegistrationStatus(RegistrationState.REGISTERING)
        self.expires_at_s: float | None = None
        self.service_route: tuple[str, ...] = ()
        self.stopping = self.ended = self.dropped = False
        self._tell = tell

    def stop(self) -> None:
        self.stopping = True

    def drop(self) -> None:
        self.dropped = True

    def become(self, state: RegistrationState, reason: str | None = None) -> None:
        self.status = RegistrationStatus(state, reason)
        self._tell(self)

    def end(self) -> None:
        self.ended = True
        self.become(RegistrationState.UNREGISTERED)


class FakeAgent:
    """A user agent that only remembers what it is to register."""

    def __init__(self) -> None:
        self.runs: list[FakeRun] = []

    def register(
        self, registration: OutboundRegistration, tell: Callable[[RegistrationIO], None], after_s: float
    ) -> FakeRun:
        self.runs.append(FakeRun(registration, tell, after_s))
        return self.runs[-1]


def begin(
    *carriers: Carrier, duty: Duty | None = None, front: str | None = None
) -> tuple[FakeAgent, MemoryDirectory, CarrierRegistrations]:
    agent, routes = FakeAgent(), MemoryDirectory()
    routes.put(carriers=list(carriers), gateways=[make_gateway()])
    registrar = CarrierRegistrations(cast(UserAgent, agent), routes, duty, front)
    registrar.start()
    return agent, routes, registrar


async def test_a_carrier_is_registered_when_it_is_added() -> None:
    agent, routes, registrar = begin(make_carrier())
    assert agent.runs == []
    routes.put(carriers=[make_carrier(**LOGIN)])
    (run,) = agent.runs
    assert str(run.registration.aor) == "<sip:user@127.0.0.1:5080>"
    run.become(RegistrationState.REGISTERED)
    assert [view.state for view in registrar.views("carrier-1")] == [RegistrationState.REGISTERED]
    routes.put(carriers=[make_carrier(**LOGIN, name="another name")])
    assert len(agent.runs) == 1 and not run.stopping


async def test_a_change_is_registered_once_the_former_binding_is_gone() -> None:
    agent, routes, _ = begin(make_carrier(**LOGIN))
    routes.put(carriers=[make_carrier(**LOGIN, register_expires_s=600)])
    (run,) = agent.runs
    assert run.stopping
    run.end()
    assert [item.registration.expires_s for item in agent.runs] == [3600, 600]


async def test_a_carrier_that_is_switched_off_is_taken_back() -> None:
    agent, routes, registrar = begin(make_carrier(**LOGIN))
    routes.put(carriers=[make_carrier(**LOGIN, is_active=False)])
    (run,) = agent.runs
    assert run.stopping
    run.end()
    assert len(agent.runs) == 1 and registrar.views() == []


async def test_many_begin_one_after_another() -> None:
    agent, _, _ = begin(make_carrier(**LOGIN, registrars=tuple(f"192.0.2.{n}" for n in range(1, 9))))
    waits = [run.after_s for run in agent.runs]
    assert len(waits) == 8 and waits == sorted(waits)
    # Time passes between the first and the last.
    assert waits[-1] >= 4 / STARTS_PER_S


async def test_one_that_is_set_up_wrongly_keeps_no_other_away() -> None:
    agent, routes, registrar = begin(make_carrier(**LOGIN, register_from_domain="no domain"))
    assert agent.runs == []
    (view,) = registrar.views("carrier-1")
    assert view.state is RegistrationState.REJECTED and view.reason is not None
    routes.put(carriers=[make_carrier("carrier-2", **LOGIN, registrars=("192.0.2.1",))])
    assert len(agent.runs) == 1


async def test_at_the_end_all_are_taken_back() -> None:
    agent, routes, registrar = begin(make_carrier(**LOGIN))
    (run,) = agent.runs
    run.stop = run.end  # type: ignore[method-assign]
    await registrar.stop()
    routes.put(carriers=[make_carrier(**LOGIN, register_expires_s=600)])
    assert len(agent.runs) == 1


async def test_the_end_is_waited_for_even_when_there_was_none_to_take_back_before() -> None:
    agent, routes, registrar = begin(make_carrier(**LOGIN))
    routes.put(carriers=[make_carrier(**LOGIN, is_active=False)])
    agent.runs[0].end()
    routes.put(carriers=[make_carrier(**LOGIN)])
    stopping = asyncio.create_task(registrar.stop())
    await holds_for(0.02, lambda: not stopping.done())
    agent.runs[1].end()
    await stopping


async def test_the_service_route_of_the_gateways_own_registrar() -> None:
    carrier = make_carrier(**LOGIN, registrars=("192.0.2.1", "192.0.2.2"))
    agent, _, registrar = begin(carrier)
    for run in agent.runs:
        run.service_route = (f"<sip:edge-of-{run.registration.destination.host};lr>",)
    assert registrar.service_route(carrier, make_gateway(host="192.0.2.2")) == ("<sip:edge-of-192.0.2.2;lr>",)
    assert registrar.service_route(carrier, make_gateway(host="192.0.2.9")) == ("<sip:edge-of-192.0.2.1;lr>",)
    assert registrar.service_route(make_carrier("other"), make_gateway()) == ()


# --- several servers ----------------------------------------------------------------------------------------


async def test_a_server_without_the_duty_registers_nowhere() -> None:
    agent, _, registrar = begin(make_carrier(**LOGIN), duty=Duty("registrations", held=False))
    assert agent.runs == [] and registrar.views() == []
    (view,) = registrar.views("carrier-1")
    assert view.state is RegistrationState.UNREGISTERED
    assert view.reason == "another server registers the trunks; ask that one"


async def test_a_server_that_gets_the_duty_registers() -> None:
    duty = Duty("registrations", held=False)
    agent, _, registrar = begin(make_carrier(**LOGIN), duty=duty)
    duty.assign(True)
    (run,) = agent.runs
    run.become(RegistrationState.REGISTERED)
    assert [view.state for view in registrar.views()] == [RegistrationState.REGISTERED]


async def test_a_server_that_loses_the_duty_sends_nothing_more() -> None:
    """It does not unregister: the binding is the same as that of the server that has the duty now."""
    duty = Duty("registrations")
    agent, routes, registrar = begin(make_carrier(**LOGIN), duty=duty)
    (run,) = agent.runs
    duty.assign(False)
    assert run.dropped and not run.stopping
    routes.put(carriers=[make_carrier(**LOGIN, register_expires_s=600)])
    assert len(agent.runs) == 1 and registrar.views() == []
    await registrar.stop()
    duty.assign(True)
    assert len(agent.runs) == 1


async def test_a_server_that_drains_unregisters_before_it_leaves_the_duty() -> None:
    left: list[bool] = []

    async def release(name: str) -> None:
        left.append(agent.runs[0].ended)

    duty = Duty("registrations", release=release)
    agent, _, registrar = begin(make_carrier(**LOGIN), duty=duty)
    stopping = asyncio.create_task(registrar.stop())
    await until(lambda: agent.runs[0].stopping)
    agent.runs[0].end()
    await stopping
    assert left == [True] and not duty.held


async def test_calls_of_a_registered_trunk_come_by_the_front() -> None:
    front = "192.0.2.50:5070"
    agent, routes, _ = begin(make_carrier(**LOGIN, outbound_proxy=front), front=front)
    assert str(agent.runs[0].registration.contact) == "sip:user@192.0.2.50:5070"
    routes.put(carriers=[make_carrier(**LOGIN, outbound_proxy="proxy.carrier.example")])
    agent.runs[0].end()
    assert agent.runs[1].registration.contact is None
