"""Object stores of tests: one in memory, and the S3 service of moto in a thread of this process."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from callcontrol.recordings.objects import ObjectFolder, StoredObject, StoreFailed
from tests.support.ports import free_port

FOLDER = ObjectFolder("recordings", "calls")
SECRET_KEY = "a-secret-that-nobody-must-see"
MODIFIED = datetime(2026, 8, 1, 12, 30, tzinfo=UTC)


@dataclass
class FakeStore:
    """Objects in memory; `away` makes every request fail, `gate` holds uploads up before their end."""

    folder: ObjectFolder = FOLDER
    objects: dict[str, bytes] = field(default_factory=dict)
    away: bool = False
    gate: asyncio.Event | None = None
    defect: Exception | None = None
    attempts: list[float] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    async def put(self, url: str, path: str) -> None:
        self.attempts.append(asyncio.get_running_loop().time())
        content = await asyncio.to_thread(Path(path).read_bytes)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.defect is not None:
                raise self.defect
            self._ask()
            self.objects[url] = content
        finally:
            self.running -= 1

    async def find(self, url: str) -> StoredObject | None:
        self._ask()
        content = self.objects.get(url)
        return None if content is None else StoredObject(url, len(content), "tag-1", MODIFIED)

    async def read(self, found: StoredObject, start: int, end: int) -> bytes:
        self._ask()
        return self.objects[found.url][start:end]

    async def delete(self, url: str) -> None:
        self._ask()
        self.objects.pop(url, None)

    def _ask(self) -> None:
        if self.away:
            raise StoreFailed("the store is away")


class S3Service:
    """An S3 service on a port of its own; what it holds outlives `stop` and `start`."""

    def __init__(self) -> None:
        self._port = free_port()
        self._server: ThreadedMotoServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def bucket(self) -> str:
        """Create a bucket."""
        name = f"b{uuid.uuid4().hex}"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request).close()
        return name

    def keys(self, bucket: str) -> list[str]:
        """Keys of the objects in a bucket."""
        from moto.s3.models import s3_backends

        for backends in s3_backends.values():
            if bucket in backends["aws"].buckets:
                return sorted(backends["aws"].buckets[bucket].keys.keys())
        raise KeyError(bucket)

    def environment(self) -> dict[str, str]:
        """Variables by which a server finds it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIATEST",
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }


@contextlib.contextmanager
def running_s3(patch: pytest.MonkeyPatch) -> Iterator[S3Service]:
    """Start a service, and name it in the environment of this process."""
    service = S3Service()
    service.start()
    for name, value in service.environment().items():
        patch.setenv(name, value)
    try:
        yield service
    finally:
        service.stop()
