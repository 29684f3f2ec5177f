"""The recording endpoints before the domain: keys and links, and what either opens."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.client import Client
from tests.unit.api.fakes import CALL_SID, ENDED_SID, NOWHERE, OTHER_CALL_SID, READER_KEY, Fakes
from tests.unit.api.fakes.recordings import VALID

FILE = f"/recordings/{ENDED_SID}.wav"
LINK = f"{FILE}?expires=1788000000&signature={VALID}"


@pytest.fixture
def recorded(fakes: Fakes, tmp_path: Path) -> Path:
    fakes.recordings.path = tmp_path / f"{ENDED_SID}.wav"
    fakes.recordings.path.write_bytes(b"RIFF....")
    return fakes.recordings.path


async def opens(client: Client, path: str, **options: Any) -> int:
    """A HEAD is answered with all that a GET has, but the file."""
    return (await client.request("HEAD", path, **options)).status


async def test_a_link_opens_without_a_key(client: Client, recorded: Path) -> None:
    assert await opens(client, LINK, key=None) == 200
    assert await opens(client, FILE, key=None) == 401


async def test_a_key_opens_without_a_link(client: Client, recorded: Path) -> None:
    assert await opens(client, FILE) == 200


@pytest.mark.parametrize(
    "query",
    [
        "expires=1788000000",
        f"signature={VALID}",
        "expires=1788000000&signature=",
        f"expires=1788000000&signature={VALID[:-1]}0",
        f"expires=1788000000&signature={VALID}&signature={VALID}",
        f"expires=1788000000&signature={VALID}&signature={VALID[:-1]}0",
        "expires=&signature=",
    ],
)
async def test_a_link_that_is_not_valid_is_refused_whatever_key_is_sent_with_it(
    client: Client, recorded: Path, query: str
) -> None:
    for options in ({"key": None}, {}):
        answer = await client.get(f"{FILE}?{query}", **options)
        assert (answer.status, answer.code) == (403, "FORBIDDEN")


async def test_a_valid_link_opens_whatever_key_is_sent_with_it(client: Client, recorded: Path) -> None:
    assert await opens(client, LINK, key=READER_KEY) == 200
    assert await opens(client, LINK, key="vp_nonsense") == 200


async def test_a_link_has_a_limit_of_its_own_and_takes_nothing_from_the_keys(
    client: Client, recorded: Path
) -> None:
    for _ in range(20):
        assert await opens(client, LINK, key=None) == 200
    answer = await client.get(LINK, key=None)
    assert (answer.status, answer.code) == (429, "RATE_LIMITED")
    assert await opens(client, FILE) == 200


async def test_the_proof_of_a_link_is_not_logged(
    client: Client, recorded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await client.request("HEAD", LINK, key=None)
    assert any(FILE in message for message in caplog.messages)
    assert not any(VALID in message for message in caplog.messages)


async def test_how_a_recording_is_sent(client: Client, recorded: Path) -> None:
    answer = await client.request("HEAD", LINK, key=None)
    assert answer.headers["Content-Type"] == "audio/wav"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{ENDED_SID}.wav"'
    assert answer.headers["Cache-Control"] == "private, no-cache"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["ETag"]


@pytest.mark.parametrize(
    "path", [f"/v1/calls/{ENDED_SID}/recording", f"/v1/masking/calls/{ENDED_SID}/recording"]
)
async def test_a_link_is_given_to_those_who_may_have_the_recording(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.data == {"url": LINK, "call_sid": ENDED_SID}


@pytest.mark.parametrize("call_sid", [CALL_SID, OTHER_CALL_SID, NOWHERE, "42"])
async def test_a_masked_recording_that_cannot_be_had_is_not_found(client: Client, call_sid: str) -> None:
    answer = await client.get(f"/v1/masking/calls/{call_sid}/recording")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_a_recording_is_deleted(client: Client, fakes: Fakes) -> None:
    answer = await client.delete(f"/v1/calls/{ENDED_SID}/recording")
    assert (answer.status, answer.body) == (204, b"")
    assert fakes.recordings.deleted == [ENDED_SID]
    for call_sid, expected in ((CALL_SID, 409), (OTHER_CALL_SID, 403), (NOWHERE, 404)):
        assert (await client.delete(f"/v1/calls/{call_sid}/recording")).status == expected
    assert (await client.delete(f"/v1/calls/{ENDED_SID}/recording", key=READER_KEY)).status == 403
