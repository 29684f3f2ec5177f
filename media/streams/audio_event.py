"""Description of the messages of a speech model that hold audio, for whoever plays them without parsing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from media._engine import AudioConverter

# By the numbers of `AudioEvent::Kind` in audio_event.hpp.
_AUDIO, _EQUAL, _AT_LEAST, _ALONE = 1, 2, 3, 4


@dataclass(frozen=True, slots=True, eq=False)
class AudioEvent:
    """
    Messages of JSON that are audio, and from which nothing else need be learned.

    Members are named by their place: each name from the outermost object inwards behind a slash, `0` for the
    first element of a list.

    Attributes:
        audio: Place of the audio, a string in base64.
        equal: Members that have these values.
        at_least: Members that are whole numbers, at least so large.
        alone: Objects and lists without any other member or element; empty for the message itself.
        in_binary: True if binary frames may be such messages, too.
        converter: Converts the audio to the format of the stream; also used in decoding other messages. None
            if it has that format.
        whole: True if nothing of a message waits for the next.
    """

    audio: str
    equal: Mapping[str, str | int]
    at_least: Mapping[str, int] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    in_binary: bool = False
    converter: AudioConverter | None = None
    whole: bool = False

    def members(self) -> list[tuple[str, int, str, int]]:
        """Return place, kind, text and least number of all members, as the engine takes them."""
        return [
            (self.audio, _AUDIO, "", 0),
            *((place, _EQUAL, json.dumps(value), 0) for place, value in self.equal.items()),
            *((place, _AT_LEAST, "", least) for place, least in self.at_least.items()),
            *((place, _ALONE, "", 0) for place in self.alone),
        ]


# Text before and after the base64 of each frame of audio, both empty where audio is binary; or a description.
Envelope = tuple[bytes, bytes] | AudioEvent
