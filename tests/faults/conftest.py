"""Fixtures shared by several modules of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.faults import reports
from tests.faults.hosts import Host
from tests.faults.lengths import CHOSEN, SOAK
from tests.faults.pair import Pair
from tests.faults.shim import Shim
from tests.support.postgres import running_postgres


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shim]:
    """Steers the faults inside the server of `host`."""
    made = Shim(tmp_path_factory.mktemp("shim"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory, shim: Shim) -> Iterator[Host]:
    """A server on SQLite; every test leaves it as it was."""
    with Host(tmp_path_factory.mktemp("host"), shim.environment) as running:
        yield running


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers on one PostgreSQL and one object store; every test leaves them as they were."""
    with running_postgres() as postgres:
        url = asyncio.run(postgres.url())
        with Pair(tmp_path_factory.mktemp("pair"), url, postgres.folder) as running:
            yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Report a long version: what ran, for how long, and what was measured."""
    if not SOAK:
        return (yield)
    module = item.getparent(pytest.Module)
    names: dict[str, Any] = vars(module.obj) if module is not None else {}
    reports.begin(f"{item.path.name}::{item.name}", getattr(item, "obj", item).__doc__ or "")
    failure: str | None = None
    try:
        return (yield)
    except pytest.skip.Exception:
        reports.drop()
        raise
    except BaseException as error:
        failure = f"{type(error).__name__}: {error}".splitlines()[0]
        raise
    finally:
        # Some lengths are asked for by a module that the test's own one imports from.
        asked = {names.get("__name__"), *(getattr(value, "__module__", None) for value in names.values())}
        lengths = (CHOSEN.get(of or "", {}) for of in asked)
        reports.finish(failure, {name: value for found in lengths for name, value in found.items()})
