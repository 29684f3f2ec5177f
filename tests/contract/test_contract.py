"""Every row of the endpoint list over HTTP: success, each named refusal, no key, another account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from api.http.endpoint import Endpoint
from api.routes import ENDPOINTS
from tests.contract import (
    chapter_agents,
    chapter_assistant,
    chapter_assistant_access,
    chapter_calls,
    chapter_campaigns,
    chapter_chat,
    chapter_contacts,
    chapter_jambonz,
    chapter_keys,
    chapter_listeners,
    chapter_masking,
    chapter_masklogs,
    chapter_mcp,
    chapter_messages,
    chapter_messaging_webhooks,
    chapter_model_keys,
    chapter_money,
    chapter_numbers,
    chapter_otp,
    chapter_recordings,
    chapter_sandbox,
    chapter_sessions,
    chapter_streams,
    chapter_subscriptions,
    chapter_templates,
    chapter_tools,
    chapter_trunks,
    chapter_twilio,
    chapter_twilio_conferences,
    chapter_twilio_messages,
    chapter_twilio_recordings,
    chapter_webrtc,
    edges,
)
from tests.contract.cases import Case
from tests.contract.rows import PUBLIC, Row, missing, read_rows, row_of, unshown
from tests.contract.stage import Stage, staged

ROWS = read_rows()
CHAPTERS = (
    chapter_calls,
    chapter_listeners,
    chapter_sandbox,
    chapter_webrtc,
    chapter_mcp,
    chapter_subscriptions,
    chapter_numbers,
    chapter_trunks,
    chapter_otp,
    chapter_tools,
    chapter_money,
    chapter_keys,
    chapter_streams,
    chapter_model_keys,
    chapter_agents,
    chapter_assistant,
    chapter_assistant_access,
    chapter_recordings,
    chapter_messages,
    chapter_masking,
    chapter_sessions,
    chapter_masklogs,
    chapter_jambonz,
    chapter_twilio,
    chapter_twilio_conferences,
    chapter_twilio_messages,
    chapter_twilio_recordings,
    chapter_contacts,
    chapter_chat,
    chapter_messaging_webhooks,
    chapter_campaigns,
    chapter_templates,
)
CASES: tuple[Case, ...] = tuple(case for chapter in CHAPTERS for case in chapter.CASES)
ROUTED = {row_of(endpoint): endpoint for endpoint in ENDPOINTS}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with staged(tmp_path_factory.mktemp("contract")) as running:
        yield running


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_every_row_is_served_and_shown(row: Row) -> None:
    assert row.name in ROUTED, "the specification has an endpoint that is not served"
    assert missing(row, CASES) == []


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=row_of)
async def test_what_an_endpoint_declares_is_shown(endpoint: Endpoint[Any, Any]) -> None:
    assert unshown(endpoint, CASES) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
async def test_case(stage: Stage, case: Case) -> None:
    await case.run(stage)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=row_of)
async def test_what_every_endpoint_does_alike(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    await edges.without_key(stage, endpoint)
    await edges.with_a_lesser_key(stage, endpoint)
    await edges.with_a_key_of_all_services(stage, endpoint)
    await edges.with_what_it_does_not_know(stage, endpoint)
    await edges.with_a_body_it_does_not_take(stage, endpoint)
    await edges.with_a_request_id(stage, endpoint)
    await edges.with_head(stage, endpoint)
    await edges.with_a_slash_at_its_end(stage, endpoint)


@pytest.mark.parametrize("name", sorted(PUBLIC))
async def test_rows_for_anybody_need_no_key(stage: Stage, name: str) -> None:
    method, path = name.split(" ")
    for spelled in (path, f"{path}/"):
        answer = await stage.ask(method, spelled, key="")
        assert answer.status == 200, answer
        if path == "/integrations":
            assert answer.body.keys() == {"docs", "endpoints", "service", "version"}


async def test_every_case_is_of_a_row_that_is_served() -> None:
    assert {case.row for case in CASES} <= ROUTED.keys()
