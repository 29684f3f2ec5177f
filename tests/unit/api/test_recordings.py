"""The recording endpoints before the domain: keys and links, and what either opens."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.recording import recording_url
from callcontrol.calls.records.store import calls
from callcontrol.masking.calls import PRODUCT
from callcontrol.models import CallStatus
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    ENDED_SID,
    MOMENT,
    NOWHERE,
    OTHER_CALL_SID,
    READER_KEY,
    call,
)
from tests.support.api_stage import ApiStage
from tests.unit.api.client import Client

RECORDED_SID = "55555555-4444-4444-8444-444444444444"
FILE = f"/recordings/{RECORDED_SID}.wav"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / f"{RECORDED_SID}.wav"
    path.write_bytes(b"RIFF....")
    return path


@pytest.fixture
async def recorded(stage: ApiStage, file: Path) -> Path:
    """The recording of a masked call that has ended; another call is still being recorded."""
    await stage.add_call(
        call(
            RECORDED_SID,
            status=CallStatus.COMPLETED,
            ended_at=MOMENT,
            recording_path=str(file),
            recording_url=recording_url(RECORDED_SID),
            recording_status="completed",
            product=PRODUCT,
        )
    )
    growing = call(status=CallStatus.IN_PROGRESS, recording_status="in-progress")
    await stage.write(partial(calls.update, rows=[calls.row_of(growing)]))
    return file


@pytest.fixture
async def link(recorded: Path, services: Services) -> str:
    return await services.recordings.link(ACCOUNT, RECORDED_SID)


def signature_of(link: str) -> str:
    (signature,) = parse_qs(urlsplit(link).query)["signature"]
    return signature


async def opens(client: Client, path: str, **options: Any) -> int:
    """A HEAD is answered with all that a GET has, but the file."""
    return (await client.request("HEAD", path, **options)).status


async def test_a_link_opens_without_a_key(client: Client, link: str) -> None:
    assert await opens(client, link, key=None) == 200
    assert await opens(client, FILE, key=None) == 401


async def test_a_key_opens_without_a_link(client: Client, recorded: Path) -> None:
    assert await opens(client, FILE) == 200


@pytest.mark.parametrize(
    "query",
    [
        "{expires}",
        "signature={valid}",
        "{expires}&signature=",
        "{expires}&signature={other}",
        "{expires}&signature={valid}&signature={valid}",
        "{expires}&signature={valid}&signature={other}",
        "expires=&signature=",
    ],
)
async def test_a_link_that_is_not_valid_is_refused_whatever_key_is_sent_with_it(
    client: Client, link: str, query: str
) -> None:
    valid, expires = signature_of(link), urlsplit(link).query.partition("&")[0]
    other = valid[:-1] + ("1" if valid.endswith("0") else "0")
    query = query.format(expires=expires, valid=valid, other=other)
    for options in ({"key": None}, {}):
        answer = await client.get(f"{FILE}?{query}", **options)
        assert (answer.status, answer.code) == (403, "FORBIDDEN")


async def test_a_valid_link_opens_whatever_key_is_sent_with_it(client: Client, link: str) -> None:
    assert await opens(client, link, key=READER_KEY) == 200
    assert await opens(client, link, key="vp_nonsense") == 200


async def test_a_link_has_a_limit_of_its_own_and_takes_nothing_from_the_keys(
    client: Client, link: str
) -> None:
    for _ in range(20):
        assert await opens(client, link, key=None) == 200
    answer = await client.get(link, key=None)
    assert (answer.status, answer.code) == (429, "RATE_LIMITED")
    assert await opens(client, FILE) == 200


async def test_the_proof_of_a_link_is_not_logged(
    client: Client, link: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await client.request("HEAD", link, key=None)
    assert any(FILE in message for message in caplog.messages)
    assert not any(signature_of(link) in message for message in caplog.messages)


async def test_how_a_recording_is_sent(client: Client, link: str) -> None:
    answer = await client.request("HEAD", link, key=None)
    assert answer.headers["Content-Type"] == "audio/wav"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{RECORDED_SID}.wav"'
    assert answer.headers["Cache-Control"] == "private, no-cache"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["ETag"]


async def test_a_part_outside_the_file_is_refused_with_a_code(client: Client, link: str) -> None:
    for asked in ("bytes=999-", "bytes=8-9", "bytes=5-2"):
        headers = {"Range": asked}
        answer = await client.get(link, key=None, headers=headers)
        assert (answer.status, answer.code) == (416, "RANGE_NOT_SATISFIABLE")
        assert answer.headers["Content-Range"] == "bytes */8"
        assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
        assert answer.headers["X-Request-Id"] and "Content-Disposition" not in answer.headers
        head = await client.request("HEAD", link, key=None, headers=headers)
        assert (head.status, head.headers["Content-Length"]) == (416, str(len(answer.body)))


@pytest.mark.parametrize("asked", ["bytes=-0", "bytes=-00", "bytes=0-1,3-4", "items=0-1"])
async def test_a_range_that_is_not_honoured_gets_the_file(client: Client, link: str, asked: str) -> None:
    answer = await client.request("HEAD", link, key=None, headers={"Range": asked})
    assert (answer.status, answer.headers["Content-Length"]) == (200, "8")
    assert "Content-Range" not in answer.headers


@pytest.mark.parametrize(
    "path", [f"/v1/calls/{RECORDED_SID}/recording", f"/v1/masking/calls/{RECORDED_SID}/recording"]
)
async def test_a_link_is_given_to_those_who_may_have_the_recording(
    client: Client, recorded: Path, path: str
) -> None:
    data = (await client.get(path)).data
    assert data.keys() == {"url", "call_sid"} and data["call_sid"] == RECORDED_SID
    assert data["url"].startswith(f"{FILE}?expires=") and await opens(client, data["url"], key=None) == 200


@pytest.mark.parametrize("call_sid", [CALL_SID, ENDED_SID, OTHER_CALL_SID, NOWHERE, "42"])
async def test_a_masked_recording_that_cannot_be_had_is_not_found(client: Client, call_sid: str) -> None:
    answer = await client.get(f"/v1/masking/calls/{call_sid}/recording")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_a_recording_is_deleted(client: Client, recorded: Path) -> None:
    answer = await client.delete(f"/v1/calls/{RECORDED_SID}/recording")
    assert (answer.status, answer.body) == (204, b"")
    assert list(recorded.parent.glob("*.wav")) == []
    for call_sid, expected in ((CALL_SID, 409), (OTHER_CALL_SID, 403), (NOWHERE, 404)):
        assert (await client.delete(f"/v1/calls/{call_sid}/recording")).status == expected
    assert (await client.delete(f"/v1/calls/{RECORDED_SID}/recording", key=READER_KEY)).status == 403
