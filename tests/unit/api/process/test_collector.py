"""The garbage collector is off while modules load and a server starts, and on again afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from api import cli
from api.cli import parser
from api.process import run
from api.process.collector import collector_paused
from api.process.config import load_settings
from api.process.failures import StartFailed


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_is_off_within_the_block_alone() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_commands_load_without_it_and_run_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def command(*_: Any) -> int:
        seen.append(gc.isenabled())
        return 0

    def load_module(name: str) -> Any:
        assert name == "api.cli.health"
        seen.append(gc.isenabled())
        return SimpleNamespace(run=command)

    monkeypatch.setattr(parser, "import_module", load_module)
    assert cli.main(["health"]) == 0
    assert seen == [False, True]


async def test_a_server_starts_without_it_and_a_failed_start_turns_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    class Failing:
        def __init__(self, _: Any) -> None: ...

        async def start(self) -> None:
            seen.append(gc.isenabled())
            raise StartFailed("the port is taken")

    monkeypatch.setattr(run, "Server", Failing)
    with pytest.raises(StartFailed):
        await run.serve(load_settings({}))
    assert seen == [False]
    assert gc.isenabled()
