"""Calls with an internal fault under them: nothing is left, and the record has its end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.events.media import DigitReceived
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.errors import ServiceUnavailable
from callcontrol.models import Binding, CallStatus
from sip import Answered, Confirmed, Ended, Failed
from tests.support.domain import CALLEE, OWN_NUMBER, make_number
from tests.support.phone import PhoneCall, eventually
from tests.support.world import World, running

_ADDED_LATE = "+918047112233"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


def fail(*_: object, **__: object) -> Any:
    raise RuntimeError("defect")


def only_runner(world: World) -> CallRunner:
    (runner,) = world.control._runners.values()
    return runner


async def forwarded(world: World) -> tuple[PhoneCall, PhoneCall]:
    """Both parties of a forwarded call that is up."""
    world.forward()
    world.phone.on_call = ring_and_answer
    a = world.phone.call(OWN_NUMBER, world.port)
    await a.wait(Answered)
    b = await world.phone.next_call(2)
    await b.wait(Confirmed)
    return a, b


@pytest.mark.parametrize("part", ["hang_up", "release"])
async def test_sessions_that_could_not_be_ended_in_order_are_ended_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    a, b = await forwarded(world)
    media = only_runner(world)._performer.media
    monkeypatch.setattr(media, {"hang_up": "close", "release": "close_all"}[part], fail)
    b.hang_up()
    await a.wait(Ended)
    monkeypatch.undo()
    media.close_all()
    record = await world.ended()
    assert (record.status, record.hangup_source, record.price_paise) == (CallStatus.COMPLETED, "callee", 100)


async def test_the_end_is_written_when_telling_of_it_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = await forwarded(world)
    monkeypatch.setattr(only_runner(world)._performer, "event", fail)
    a.hang_up()
    record = await world.ended()
    assert (record.status, record.price_paise) == (CallStatus.COMPLETED, 100)


async def test_a_defect_before_the_record_is_inserted_refuses_the_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.forward()
    monkeypatch.setattr(world.records, "insert", fail)
    a = world.phone.call(OWN_NUMBER, world.port)
    failure = await a.wait(Failed)
    assert isinstance(failure, Failed) and failure.status == 503
    assert await eventually(lambda: world.control.active_calls == 0)
    assert world.control._capacity.calls == 0


async def test_a_task_that_fails_ends_its_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.control._audio, "fetch", fail)
    await world.place({"verb": "play", "url": "https://customer.example/hello.wav"})
    b = await world.phone.next_call()
    await b.wait(Ended)
    assert (await world.ended()).hangup_cause == "NORMAL_TEMPORARY_FAILURE"


async def test_a_flood_of_digits_drowns_nothing_else(world: World) -> None:
    await forwarded(world)
    runner = only_runner(world)
    for _ in range(5000):
        runner.post(DigitReceived(0, "1", 100))
    runner.post(HangupRequested("api", NORMAL_CLEARING))
    record = await world.ended()
    assert record.hangup_source == "api"
    assert world.records.event_names().count("call.dtmf") == 1000


async def test_a_caller_who_gives_up_while_the_directory_is_looked_at_is_not_called_back(
    world: World,
) -> None:
    looked = asyncio.Event()
    binding = Binding(target="forward", forward_to=CALLEE)

    async def refresh() -> None:
        await looked.wait()
        world.directory.put(numbers=[make_number(_ADDED_LATE, binding=binding)])

    object.__setattr__(world.control._services, "refresh", refresh)
    a = world.phone.call(_ADDED_LATE, world.port)
    assert await eventually(lambda: world.control.user_agent.sessions == 1)
    a.session.hangup()
    assert await eventually(lambda: world.control.user_agent.sessions == 0)
    looked.set()
    assert await eventually(lambda: not world.control._tasks)
    assert not world.records.records


async def test_a_directory_that_cannot_be_looked_at_refuses_the_caller(world: World) -> None:
    object.__setattr__(world.control._services, "refresh", fail)
    a = world.phone.call(_ADDED_LATE, world.port)
    failure = await a.wait(Failed)
    assert isinstance(failure, Failed) and failure.status == 503


async def test_a_database_that_fails_at_the_end_keeps_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise ServiceUnavailable("The database is away.")

    async with running(tmp_path) as world:
        monkeypatch.setattr(world.records, "flush", away)
        await world.control.drain(0.0)
        await world.control.close()
        assert world.control.engine.stats().ports_total == 0
