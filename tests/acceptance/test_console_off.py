"""A server whose console is switched off: no page, no link, and no session that opens anything."""

from __future__ import annotations

from collections.abc import Iterator

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.shapes import assert_platform_error
from tests.support.server_process import ServerProcess, wait_until


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server without its console."""
    yield from start_server(tmp_path_factory, CONSOLE="0")


async def test_there_is_no_page_and_the_root_says_what_is_there(
    session: aiohttp.ClientSession, quiet: ServerProcess
) -> None:
    nobody = Api(session, quiet.url, None)
    for path in ("/", "/console", "/console/sign-in", "/console/calls", "/console/static/0/console.css"):
        error = assert_platform_error(await nobody.get(path), 404, "NOT_FOUND")
        assert "/docs" in error["message"], path
    assert_platform_error(await nobody.post("/console/sign-in", {"key": "x"}), 404, "NOT_FOUND")
    # What is for programs is there.
    (await nobody.get("/docs")).expect(200)
    (await Api(session, quiet.url, customers_of(quiet)().key).get("/v1/calls")).expect(200)


def test_no_link_is_printed(quiet: ServerProcess) -> None:
    assert wait_until(lambda: "  API key " in quiet.log()), quiet.log()
    lines = [line.strip() for line in quiet.log().splitlines()]
    assert not [line for line in lines if line.startswith("console ") or "token=" in line]
