"""Serialisation of session descriptions (RFC 8866 5)."""

from __future__ import annotations

from media.sdp.model import Attribute, MediaDescription, SessionDescription

__all__ = ["write_session_description"]


def write_session_description(description: SessionDescription) -> bytes:
    """Serialise a description, with CRLF line ends."""
    lines = ["v=0", f"o={description.origin}", f"s={description.session_name or '-'}"]
    if description.connection is not None:
        lines.append(f"c={description.connection}")
    _bandwidths(lines, description.bandwidths)
    lines += [f"t={start} {stop}" for start, stop in description.times]
    _attributes(lines, description.attributes)
    for media in description.media:
        _media(lines, media)
    lines.append("")
    return "\r\n".join(lines).encode()


def _media(lines: list[str], media: MediaDescription) -> None:
    count = f"/{media.port_count}" if media.port_count != 1 else ""
    lines.append(f"m={media.kind} {media.port}{count} {media.protocol} {' '.join(media.formats)}")
    if media.connection is not None:
        lines.append(f"c={media.connection}")
    _bandwidths(lines, media.bandwidths)
    _attributes(lines, media.attributes)


def _bandwidths(lines: list[str], bandwidths: tuple[tuple[str, int], ...]) -> None:
    lines += [f"b={kind}:{value}" for kind, value in bandwidths]


def _attributes(lines: list[str], attributes: tuple[Attribute, ...]) -> None:
    lines += [f"a={name}" if value is None else f"a={name}:{value}" for name, value in attributes]
