"""The page of the server: for its operator alone, with settings and measurements but no secret."""

from __future__ import annotations

import logging

import pytest

from api.process.call_lines import CallLines
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, OTHER_ACCOUNT, insert_key
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


async def test_the_operator_sees_who_is_banned(stage: ApiStage, admin: str) -> None:
    banned = {f"192.0.2.{number}": float(number) for number in range(60)}
    async with console_client(stage, operators=frozenset({ACCOUNT}), banned=lambda: banned) as web:
        page = text_of(await (await sign_in(web, admin)).get(SERVER))
    assert "192.0.2.59" in page and "192.0.2.10" in page
    assert "192.0.2.9<" not in page and "10 more are not shown" in page


async def test_the_operator_sees_the_log_lines_of_a_call(
    stage: ApiStage, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = CallLines({"dialog": CALL_SID}.get)
    end = lines.attach()
    logging.getLogger("sip").warning("<b>no answer</b>", extra={"call_id": "dialog"})
    end()
    logging.getLogger("sip").warning("too late", extra={"call_sid": CALL_SID})
    asked = f"{SERVER}/log?call={CALL_SID}"
    async with console_client(stage, operators=frozenset({ACCOUNT}), lines=lines) as web:
        person = await sign_in(web, admin)
        page = text_of(await person.get(asked))
        assert "sip: &lt;b&gt;no answer&lt;/b&gt;" in page and "too late" not in page
        assert "No line of this call" in text_of(await person.get(f"{SERVER}/log?call={ENDED_SID}"))
        assert (await person.get(f"{SERVER}/log?call=%3Cb%3E")).status == 200

        async def is_another(_: str) -> bool:
            return True

        monkeypatch.setattr(stage.storage.membership, "is_another", is_another)
        assert (await person.get(f"{SERVER}/log?call={ENDED_SID}")).status == 503
    async with console_client(stage, operators=frozenset({OTHER_ACCOUNT}), lines=lines) as web:
        assert (await (await sign_in(web, admin)).get(asked)).status == 403


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
