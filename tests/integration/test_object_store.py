"""Recordings in an S3 store: a real client, a real server of the protocol, whole servers of ours."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from api.process.config import ConfigError
from api.process.failures import StartFailed
from api.process.server import Server
from callcontrol.calls.recording import recording_file
from callcontrol.recordings.aio.s3 import S3ObjectStore, open_s3
from callcontrol.recordings.objects import ObjectFolder, StoreFailed, StoreRefused
from callcontrol.webhooks.store import deliveries
from tests.support.loopback_server import loopback_settings
from tests.support.object_store import SECRET_KEY, S3Service, running_s3
from tests.support.ports import free_port
from tests.support.postgres import running_postgres
from tests.support.recording_desk import Desk, served
from tests.support.waiting import until

pytestmark = pytest.mark.real_time(reason="the store is a server in a thread")

READY = "call.recording.ready"
# Where nobody listens: events are counted by their rows.
WEBHOOK = "http://127.0.0.1:9/calls"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Service]:
    with running_s3(monkeypatch) as service:
        yield service


@pytest.fixture
async def store(s3: S3Service) -> S3ObjectStore:
    return await open_s3(ObjectFolder(await asyncio.to_thread(s3.bucket), "calls"))


# --- the client ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size_bytes", [1, 100_000, 12_000_000])
async def test_a_file_comes_back_as_it_was(store: S3ObjectStore, tmp_path: Path, size_bytes: int) -> None:
    file, url = tmp_path / "a.wav", store.folder.url("a")
    content = os.urandom(size_bytes)
    file.write_bytes(content)
    await store.put(url, str(file))
    found = await store.find(url)
    assert found is not None and (found.size_bytes, found.name) == (size_bytes, "a.wav")
    assert found.tag and '"' not in found.tag
    assert await store.read(found, 0, size_bytes) == content
    assert await store.read(found, size_bytes // 2, size_bytes) == content[size_bytes // 2 :]
    file.write_bytes(b"another")
    await store.put(url, str(file))
    with pytest.raises(StoreFailed):
        await store.read(found, 0, 1)
    for _ in range(2):
        await store.delete(url)
    assert await store.find(url) is None
    with pytest.raises(FileNotFoundError):
        await store.put(url, str(tmp_path / "missing.wav"))


async def test_a_bucket_is_tried_and_nothing_is_left_in_it(s3: S3Service, store: S3ObjectStore) -> None:
    await store.check("local")
    assert s3.keys(store.folder.bucket) == []


async def test_a_bucket_that_does_not_exist(s3: S3Service, tmp_path: Path) -> None:
    missing = await open_s3(ObjectFolder("no-such-bucket", ""))
    with pytest.raises(StoreRefused, match="the bucket no-such-bucket does not exist"):
        await missing.check("local")
    file = tmp_path / "a.wav"
    file.write_bytes(b"RIFF")
    with pytest.raises(StoreRefused, match="does not exist"):
        await missing.put(missing.folder.url("a"), str(file))


async def test_a_store_that_is_away(s3: S3Service, store: S3ObjectStore) -> None:
    await asyncio.to_thread(s3.stop)
    for request in (store.check("local"), store.find(store.folder.url("a")), store.delete("s3://bbb/a")):
        with pytest.raises(StoreFailed) as failure:
            await request
        assert not isinstance(failure.value, StoreRefused)
        text = f"{failure.value} {failure.value!r}"
        assert "127.0.0.1" in text and SECRET_KEY not in text and "\n" not in str(failure.value)


async def test_a_store_that_refuses_these_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=403, text="<Error><Code>AccessDenied</Code></Error>")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    sock = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, sock).start()
    service = S3Service()
    for name, value in service.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{sock.getsockname()[1]}")
    refused = await open_s3(ObjectFolder("bucket", ""))
    with pytest.raises(StoreRefused, match="403"):
        await refused.check("local")
    await runner.cleanup()


async def test_keys_may_be_in_the_shared_file(
    s3: S3Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"[voice]\naws_access_key_id = AKIAFILE\naws_secret_access_key = {SECRET_KEY}\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "voice")
    opened = await open_s3(ObjectFolder(await asyncio.to_thread(s3.bucket), ""))
    await opened.check("local")
    assert SECRET_KEY not in repr(opened) + repr(vars(opened))


# --- the start ----------------------------------------------------------------------------------------------


def test_without_the_setting_the_library_is_not_imported() -> None:
    program = "import sys, api.process.server, api.cli.serve; sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_setting_that_is_no_bucket_names_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"TRUNKLINE_RECORDINGS_STORE.*is not s3://BUCKET") as refusal:
        loopback_settings(tmp_path, RECORDINGS_STORE=f"s3://key:{SECRET_KEY}@bucket/")
    assert SECRET_KEY not in str(refusal.value)


async def start_of(tmp_path: Path, bucket: str) -> None:
    server = Server(loopback_settings(tmp_path, RECORDINGS_STORE=f"s3://{bucket}/calls"))
    try:
        await server.start()
    finally:
        await server.stop()


async def test_a_wrong_bucket_ends_the_start(s3: S3Service, tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match=r"RECORDINGS_STORE=s3://no-such/calls: the bucket no-such does"):
        await start_of(tmp_path, "no-such")


async def test_a_missing_library_ends_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(StartFailed, match=r"RECORDINGS_STORE needs a library: pip install 'trunkline\[s3\]'"):
        await start_of(tmp_path, "bucket")


async def test_a_store_that_is_away_does_not_end_the_start(
    s3: S3Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.to_thread(s3.stop)
    await start_of(tmp_path, "bucket")
    assert any("does not answer; recordings wait on the disk" in message for message in caplog.messages)
    assert SECRET_KEY not in caplog.text


# --- whole servers ------------------------------------------------------------------------------------------


async def ready(desk: Desk, call_sid: str) -> int:
    """Number of events that the recording is ready."""
    read = desk.server.storage.database.read
    told = await read(lambda connection: deliveries.of_call(connection, call_sid))
    return [delivery.event.event for delivery in told].count(READY)


async def metric(desk: Desk, name: str) -> float:
    async with desk.http.get(f"{desk.server.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def is_uploaded(desk: Desk, call_sid: str) -> bool:
    return not (desk.server.settings.data_dir / "recordings" / recording_file(call_sid)).exists()


async def fetched(desk: Desk, call_sid: str) -> bytes:
    status, headers, audio = await desk.fetch(await desk.link(call_sid))
    assert (status, audio[:4], headers["Content-Length"]) == (200, b"RIFF", str(len(audio)))
    assert headers["Content-Disposition"] == f'attachment; filename="{call_sid}.wav"'
    assert headers["Cache-Control"] == "private, no-cache" and headers["Content-Type"] == "audio/wav"
    return audio


@pytest.fixture
async def bucket(s3: S3Service) -> str:
    return await asyncio.to_thread(s3.bucket)


@pytest.fixture
async def desk(s3: S3Service, bucket: str, tmp_path: Path) -> AsyncIterator[Desk]:
    async with served(tmp_path / "data", RECORDINGS_STORE=f"s3://{bucket}/calls") as running:
        yield running


async def test_a_recording_is_served_from_the_store_until_it_is_deleted(
    desk: Desk, s3: S3Service, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    call_sid = await desk.record(status_webhook_url=WEBHOOK)
    await until(lambda: s3.keys(bucket) == [f"calls/{call_sid}.wav"])
    await until(partial(is_uploaded, desk, call_sid))
    await until(partial(ready, desk, call_sid))
    audio = await fetched(desk, call_sid)
    link = await desk.link(call_sid)
    status, headers, part = await desk.fetch(link, Range="bytes=100-199")
    assert (status, part) == (206, audio[100:200])
    assert headers["Content-Range"] == f"bytes 100-199/{len(audio)}"
    status, headers, _ = await desk.fetch(link, Range=f"bytes={len(audio)}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(audio)}")
    status, headers, nothing = await desk.fetch(link, "HEAD")
    assert (status, headers["Content-Length"], nothing) == (200, str(len(audio)), b"")
    assert (await desk.ask("DELETE", f"/v1/calls/{call_sid}/recording"))[0] == 204
    assert s3.keys(bucket) == [] and (await desk.fetch(link))[0] == 404
    assert await metric(desk, "trunkline_recordings_uploaded_total") == 1.0
    assert SECRET_KEY not in caplog.text


async def test_calls_do_not_notice_that_the_store_is_away(desk: Desk, s3: S3Service, bucket: str) -> None:
    stored = await desk.record()
    await until(lambda: len(s3.keys(bucket)) == 1)
    await until(partial(is_uploaded, desk, stored))
    await asyncio.to_thread(s3.stop)
    call_sid = await desk.record(status_webhook_url=WEBHOOK)
    await until(partial(metric, desk, "trunkline_recording_upload_failures_total"))
    assert await metric(desk, "trunkline_recording_uploads_waiting") == 1.0
    audio = await fetched(desk, call_sid)
    assert await ready(desk, call_sid) == 0 and not is_uploaded(desk, call_sid)
    # What is in the store can be neither opened nor deleted, and after the request not be opened again.
    status, headers, _ = await desk.fetch(await desk.link(stored))
    assert (status, headers["Retry-After"]) == (503, "5")
    status, error = await desk.ask("DELETE", f"/v1/calls/{stored}/recording")
    assert (status, error["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert (await desk.ask("GET", f"/v1/calls/{stored}/recording"))[0] == 404
    await asyncio.to_thread(s3.start)
    await until(lambda: f"calls/{call_sid}.wav" in s3.keys(bucket))
    await until(partial(is_uploaded, desk, call_sid))
    assert await ready(desk, call_sid) == 1
    assert await fetched(desk, call_sid) == audio
    assert (await desk.ask("DELETE", f"/v1/calls/{stored}/recording"))[0] == 204
    assert s3.keys(bucket) == [f"calls/{call_sid}.wav"]


async def test_a_node_serves_and_deletes_what_another_has_recorded(
    s3: S3Service, bucket: str, tmp_path: Path
) -> None:
    with running_postgres() as postgres:
        shared: dict[str, Any] = {
            "DATABASE_URL": await postgres.url(),
            "SECRET_KEY": base64.b64encode(bytes(range(32))).decode(),
            "RECORDINGS_STORE": f"s3://{bucket}",
        }
        b_settings = {"NODE": "b", "HTTP_LISTEN": f"127.0.0.1:{free_port()}"}
        async with served(tmp_path / "b", **b_settings, **shared) as b:
            calls = [await b.record() for _ in range(2)]
            for call_sid in calls:
                await until(partial(is_uploaded, b, call_sid))
            audio = await fetched(b, calls[0])
            key, account_sid = b.key, b.account_sid
            a_settings = {"NODE": "a", "HTTP_LISTEN": f"127.0.0.1:{free_port()}", "SANDBOX_CARRIER": "0"}
            server = Server(loopback_settings(tmp_path / "a", rtp_ports=20, **a_settings, **shared))
            await server.start()
            a = Desk(server, b.http, account_sid, key)
            try:
                assert await fetched(a, calls[0]) == audio
                assert (await a.ask("DELETE", f"/v1/calls/{calls[0]}/recording"))[0] == 204
                assert s3.keys(bucket) == [f"{calls[1]}.wav"]
                assert (await b.ask("GET", f"/v1/calls/{calls[0]}/recording"))[0] == 404
                await b.server.stop()
                link = await a.link(calls[1])
                status, headers, part = await a.fetch(link, Range="bytes=44-99")
                assert (status, len(part)) == (206, 56), headers
                assert (await a.ask("DELETE", f"/v1/calls/{calls[1]}/recording"))[0] == 204
                assert s3.keys(bucket) == []
            finally:
                await server.stop()
