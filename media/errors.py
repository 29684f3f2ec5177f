"""Errors of `media`, all derived from `MediaError`."""

from __future__ import annotations


class MediaError(Exception):
    """A request that the media engine could not fulfil."""


class PortsExhausted(MediaError):
    """No RTP port is left: all are in use or quarantined, or the process has no descriptors left."""


class StreamClosed(MediaError):
    """The stream was closed."""


class EngineClosed(MediaError):
    """The engine was not started, or was closed."""


class InvalidMedia(MediaError, ValueError):
    """An invalid value for audio, an address, a codec or a digit."""


class DtmfUnavailable(MediaError):
    """Digits cannot be sent: the stream is not connected, or too many wait already."""


class RecordingFailed(MediaError):
    """The file of a recording cannot be written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot record to {path}: {reason}")
        self.path = path
        self.reason = reason
