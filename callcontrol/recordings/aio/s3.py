"""
Object store with the S3 protocol; imports obstore, which the extra ``s3`` brings, when it is opened.

Endpoint, region and keys come from the environment, as for the tools of AWS; keys also from the shared
credentials file. The store is given no more than a few seconds for each request.
"""

import asyncio
import configparser
import os
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from callcontrol.recordings.objects import (
    ObjectFolder,
    StoredObject,
    StoreFailed,
    StoreRefused,
    bucket_and_key,
)

if TYPE_CHECKING:
    from obstore.store import S3Credential, S3Store

T = TypeVar("T")

_CLIENT: Final = {"connect_timeout": timedelta(seconds=3), "timeout": timedelta(seconds=20)}
_RETRIES: Final[Any] = {"max_retries": 1, "retry_timeout": timedelta(seconds=5)}
# A request takes seconds; one without an answer must not hold an upload for ever.
_REQUEST_S: Final = 30.0
_SLOWEST_BYTES_PER_S: Final = 100_000
# A file is in memory by these parts.
_PART_BYTES: Final = 5 * 1024 * 1024
_PARTS_AT_ONCE: Final = 2
_CREDENTIALS_VALID: Final = timedelta(minutes=15)
_MAX_REASON: Final = 300


class S3ObjectStore:
    """Recordings in buckets of an S3 service; new ones go to ``folder``."""

    def __init__(self, folder: ObjectFolder) -> None:
        self.folder = folder
        self._buckets: dict[str, S3Store] = {}

    async def check(self, node: str) -> None:
        """
        Write, read and delete an object, as recordings will be.

        Raises:
            StoreRefused: The bucket does not exist, or refuses one of these.
            StoreFailed: The store does not answer, or there are no keys.
        """
        import obstore

        store, key = self._at(self.folder.named(f".check-{node}"))
        try:
            await _timed(obstore.put_async(store, key, b"trunkline"))
            await _timed(obstore.head_async(store, key))
            await _timed(obstore.delete_async(store, key))
        except FileNotFoundError as error:
            raise StoreRefused(f"the bucket {self.folder.bucket} does not exist") from error

    async def put(self, url: str, path: str) -> None:
        """Upload a file; see ``ObjectStore``."""
        import obstore

        size_bytes = (await asyncio.to_thread(os.stat, path)).st_size
        store, key = self._at(url)
        upload = obstore.put_async(
            store,
            key,
            Path(path),
            attributes={"Content-Type": "audio/wav"},
            chunk_size=_PART_BYTES,
            max_concurrency=_PARTS_AT_ONCE,
        )
        try:
            await _timed(upload, _REQUEST_S + size_bytes / _SLOWEST_BYTES_PER_S)
        except FileNotFoundError as error:
            raise StoreRefused(f"the bucket of {url} does not exist") from error

    async def find(self, url: str) -> StoredObject | None:
        """Describe an object; see ``ObjectStore``."""
        import obstore

        store, key = self._at(url)
        try:
            found = await _timed(obstore.head_async(store, key))
        except FileNotFoundError:
            return None
        return StoredObject(url, found["size"], (found["e_tag"] or "").strip('"'), found["last_modified"])

    async def read(self, found: StoredObject, start: int, end: int) -> bytes:
        """Read a part of an object; see ``ObjectStore``."""
        import obstore

        store, key = self._at(found.url)
        options: Any = {"range": (start, end)}
        if found.tag:
            options["if_match"] = f'"{found.tag}"'
        try:
            return await _timed(_content(obstore.get_async(store, key, options=options)))
        except FileNotFoundError as error:
            raise StoreFailed(f"{found.url} was deleted while it was read") from error

    async def delete(self, url: str) -> None:
        """Delete an object; see ``ObjectStore``."""
        import obstore

        store, key = self._at(url)
        try:
            await _timed(obstore.delete_async(store, key))
        except FileNotFoundError:
            return

    def _at(self, url: str) -> tuple["S3Store", str]:
        bucket, key = bucket_and_key(url)
        if bucket not in self._buckets:
            self._buckets[bucket] = _open(bucket)
        return self._buckets[bucket], key


async def open_s3(folder: ObjectFolder) -> S3ObjectStore:
    """
    Open a store; nothing is asked of it yet.

    Raises:
        ImportError: The extra is not installed.
        StoreRefused: The environment has a value that cannot be used.
    """
    store = S3ObjectStore(folder)
    try:
        store._at(folder.named("any"))
    except ImportError:
        raise
    except Exception as error:  # The library has no class for them; it names the variable.
        raise StoreRefused(_reason(error)) from error
    return store


def _open(bucket: str) -> "S3Store":
    from obstore.store import S3Store

    # An address without TLS is the operator's own choice, for a store in the same network.
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT", "")
    client: Any = {**_CLIENT, "allow_http": endpoint.startswith("http://")}
    options: dict[str, Any] = {}
    if not os.environ.get("AWS_ACCESS_KEY_ID") and _read_credentials() is not None:
        options["credential_provider"] = _SharedCredentials()
    return S3Store(bucket, client_options=client, retry_config=_RETRIES, **options)


class _SharedCredentials:
    """Keys of the shared credentials file, read again every 15 minutes."""

    def __call__(self) -> "S3Credential":
        found = _read_credentials()
        if found is None:
            raise StoreFailed("the shared credentials file has no keys any more")
        return {
            "access_key_id": found["aws_access_key_id"],
            "secret_access_key": found["aws_secret_access_key"],
            "token": found.get("aws_session_token"),
            "expires_at": datetime.now(UTC) + _CREDENTIALS_VALID,
        }


def _read_credentials() -> Mapping[str, str] | None:
    """Section of the profile in the shared credentials file; None without keys."""
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials"
    parser = configparser.RawConfigParser()
    try:
        parser.read(path)
        section = parser[os.environ.get("AWS_PROFILE") or "default"]
    except (configparser.Error, KeyError, OSError, UnicodeDecodeError):
        return None
    return section if {"aws_access_key_id", "aws_secret_access_key"} <= section.keys() else None


async def _content(reply: Awaitable[Any]) -> bytes:
    return bytes(await (await reply).bytes_async())


async def _timed(request: Awaitable[T], limit_s: float = _REQUEST_S) -> T:
    """
    Wait for a request.

    Raises:
        FileNotFoundError: There is no such object, or no such bucket.
        StoreRefused: The store refuses access.
        StoreFailed: The store does not answer, or has another error.
    """
    from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError

    try:
        async with asyncio.timeout(limit_s):
            return await request
    except NotFoundError as error:
        raise FileNotFoundError(_reason(error)) from error
    except FileNotFoundError:
        raise
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoreRefused(_reason(error)) from error
    except TimeoutError:
        raise StoreFailed(f"no answer in {limit_s:g} s") from None
    except (BaseError, OSError) as error:
        raise StoreFailed(_reason(error)) from error


def _reason(error: Exception) -> str:
    """First line of an error, without the state of the client that follows."""
    return str(error).partition("\n")[0][:_MAX_REASON]
