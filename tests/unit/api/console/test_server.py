"""The page of the server: for its operator alone, with settings and measurements but no secret."""

from __future__ import annotations

import pytest

from tests.support.api_facts import ACCOUNT, OTHER_ACCOUNT, insert_key
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_client, sign_in
from tests.unit.api.client import Client
from tests.unit.api.console.test_numbers import text_of

SERVER = "/console/server"
ADMIN_KEY = "vk_" + "o" * 43


async def scrape() -> bytes:
    return b"trunkline_calls_active 3.0\n"


@pytest.fixture
async def admin(stage: ApiStage) -> str:
    """A key of every scope."""
    await stage.write(lambda connection: insert_key(connection, ADMIN_KEY, "all", ["*"]))
    return ADMIN_KEY


async def test_the_operator_sees_settings_and_measurements(stage: ApiStage, admin: str) -> None:
    async with console_client(stage, operators=frozenset({ACCOUNT}), scrape=scrape) as web:
        person = await sign_in(web, admin)
        page = text_of(await person.get(SERVER))
        assert "TRUNKLINE_NODE" in page and 'data-metric="trunkline_calls_active"' in page
        assert "trunkline_calls_active 3.0" in text_of(await person.get(f"{SERVER}/metrics"))


@pytest.mark.parametrize("operators", [frozenset(), frozenset({OTHER_ACCOUNT})])
async def test_others_see_nothing_of_it(stage: ApiStage, admin: str, operators: frozenset[str]) -> None:
    async with console_client(stage, operators=operators, scrape=scrape) as web:
        person = await sign_in(web, admin)
        page = text_of(await person.get(SERVER))
        assert "TRUNKLINE_CONSOLE_OPERATORS" in page and "TRUNKLINE_NODE" not in page
        assert (await person.get(f"{SERVER}/metrics")).status == 403


async def test_it_needs_the_scope_admin(person: Person, web: Client) -> None:
    assert (await person.get(SERVER)).status == 403
    assert SERVER not in text_of(await person.get("/console/calls"))
    assert (await web.get(f"{SERVER}/metrics", key=None)).status == 303
