"""Cache of speech on disk."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from pathlib import Path

from media.audio import Clip, WavError, read_wav, write_wav

__all__ = ["SpeechStore"]

logger = logging.getLogger(__name__)

# Target share of the limit, so that not every new sentence causes a clean-up.
_KEPT_SHARE = 0.9


class SpeechStore:
    """
    A folder of spoken sentences, named by a digest that does not reveal them.

    All methods block on the disk, so call them in a thread. Since this is a cache, a file that cannot be read
    or written counts as missing.
    """

    def __init__(self, directory: Path, capacity_bytes: int) -> None:
        self._directory = directory
        self._capacity_bytes = capacity_bytes

    def get(self, digest: str) -> Clip | None:
        """Return the sentence of a digest, or None; a broken file is removed."""
        path = self._path(digest)
        try:
            clip = read_wav(path.read_bytes())
        except OSError:
            return None
        except WavError:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return clip

    def put(self, digest: str, clip: Clip) -> None:
        """Store a sentence; the least recently used are removed when the folder is too large."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A reader sees the whole file or none.
            with tempfile.NamedTemporaryFile(dir=self._directory, suffix=".part", delete=False) as file:
                file.write(write_wav(clip))
            os.replace(file.name, self._path(digest))
            self._tidy()
        except OSError as error:
            logger.warning("cannot cache speech on disk: %s", error.strerror)

    def _path(self, digest: str) -> Path:
        return self._directory / f"{digest}.wav"

    def _tidy(self) -> None:
        """Remove the least recently used files when the folder is too large."""
        found = []
        for path in self._directory.glob("*.wav"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self._capacity_bytes:
            return
        for _, size, path in sorted(found):
            if total <= self._capacity_bytes * _KEPT_SHARE:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
