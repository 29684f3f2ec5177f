"""
Names of recordings in an object store: ``s3://bucket/prefix/SID.wav``.

The row of a recording has the URL of its object in place of the path of its file, so that recordings stay
where they are when the setting changes.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

_SCHEME: Final = "s3://"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# Characters that are safe in the key of an object, and in a URL as they are.
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()-]+(?:/[A-Za-z0-9!_.*'()-]+)*")


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """Bucket and prefix that new recordings are uploaded to; ``prefix`` may be empty."""

    bucket: str
    prefix: str

    def url(self, sid: str) -> str:
        """URL of the object of a call or message."""
        # Commands read the settings without what calls need.
        from callcontrol.calls.recording import recording_file

        return self.named(recording_file(sid))

    def named(self, name: str) -> str:
        """URL of an object in the folder."""
        return _SCHEME + "/".join(part for part in (self.bucket, self.prefix, name) if part)

    def __str__(self) -> str:
        return _SCHEME + "/".join(part for part in (self.bucket, self.prefix) if part)


def parse_object_folder(text: str) -> ObjectFolder:
    """Read ``s3://bucket/prefix``; errors never repeat it, as somebody may have put a key there."""
    bucket, _, prefix = text.removeprefix(_SCHEME).partition("/")
    prefix = prefix.removesuffix("/")
    named = _BUCKET.fullmatch(bucket) is not None and (not prefix or _PREFIX.fullmatch(prefix) is not None)
    if not text.startswith(_SCHEME) or not named or {".", ".."} & set(prefix.split("/")):
        raise ValueError(
            "is not s3://BUCKET or s3://BUCKET/PREFIX; keys, region and endpoint are in AWS_ variables"
        )
    return ObjectFolder(bucket, prefix)


def is_object(path: str) -> bool:
    """Return True for the URL of an object, False for the path of a file."""
    return path.startswith(_SCHEME)


def bucket_and_key(url: str) -> tuple[str, str]:
    """Split the URL of an object."""
    bucket, _, key = url.removeprefix(_SCHEME).partition("/")
    return bucket, key


class StoreFailed(Exception):
    """The object store cannot be reached, or refuses; the message is for the log of the operator."""


class StoreRefused(StoreFailed):
    """The bucket does not exist, or its owner refuses access to these credentials."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it is now; ``tag`` is its entity tag, without quotation marks."""

    url: str
    size_bytes: int
    tag: str
    modified_at: datetime

    @property
    def name(self) -> str:
        """File name of the recording."""
        return self.url.rpartition("/")[2]


class ObjectStore(Protocol):
    """
    Object store of recordings.

    Every method raises ``StoreFailed`` if the store does not do it within seconds, or refuses.
    """

    folder: ObjectFolder

    async def put(self, url: str, path: str) -> None:
        """
        Upload a file; an object of this name is replaced.

        Raises:
            FileNotFoundError: There is no such file.
        """

    async def find(self, url: str) -> StoredObject | None:
        """Describe an object; None if there is none."""

    async def read(self, found: StoredObject, start: int, end: int) -> bytes:
        """Read the bytes from ``start`` to before ``end``; fails if the object is another by now."""

    async def delete(self, url: str) -> None:
        """Delete an object; one that does not exist is no error."""
