"""The verb that changes a track: a sound that the party hears beside everything else."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from callcontrol.calls.plan import Dub, Play, Say, Step, TrackAction
from callcontrol.instructions.verbs.speaking import read_play, read_say
from callcontrol.instructions.verbs.values import VerbValues

ACTIONS: Final[tuple[TrackAction, ...]] = get_args(TrackAction)
MAX_NAME_CHARS: Final = 64
MIN_GAIN_DB: Final = -50.0
MAX_GAIN_DB: Final = 18.0
DUB_FIELDS: Final = frozenset({"action", "track", "url", "text", "language", "voice", "loop", "gain"})

_NAME: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{1,{MAX_NAME_CHARS}}}")
_SPEECH_FIELDS: Final = ("text", "language", "voice")
_GOES_WITH: Final[Mapping[str, tuple[TrackAction, ...]]] = {
    "url": ("add", "play"),
    **dict.fromkeys(_SPEECH_FIELDS, ("add", "say")),
    **dict.fromkeys(("loop", "gain"), ("add", "play", "say")),
}


def read_dub(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that changes a track."""
    count = len(values.errors)
    action, track = verb.get("action"), verb.get("track")
    given = {name for name, value in verb.items() if value is not None}
    if not isinstance(track, str) or not _NAME.fullmatch(track):
        values.wrong(f"{path}.track", f"must be a name of 1 to {MAX_NAME_CHARS} printable characters")
    loop, gain_db = values.flag(path, verb, "loop", False), _gain_db(values, path, verb.get("gain"))
    if action not in ACTIONS:
        values.wrong(f"{path}.action", f"must be one of {', '.join(ACTIONS)}")
        return []
    for name in sorted(given):
        if action not in _GOES_WITH.get(name, ACTIONS):
            values.wrong(f"{path}.{name}", "does not go with this action")
    sound = _sound(values, path, action, {name: verb[name] for name in given})
    dub = Dub(action, str(track), sound, loop, gain_db)
    return [dub] if len(values.errors) == count else []


def _sound(values: VerbValues, path: str, action: TrackAction, given: Mapping[str, Any]) -> Play | Say | None:
    """Read the sound of the actions that have one; ``add`` needs none."""
    speaks = action == "say" or (action == "add" and any(name in given for name in _SPEECH_FIELDS))
    if action in ("silence", "remove"):
        return None
    if speaks and action == "add" and "url" in given:
        values.wrong(f"{path}.text", "cannot be combined with url")
        return None
    found: Sequence[Play | Say] = ()
    if speaks:
        found = read_say(values, path, {name: given[name] for name in _SPEECH_FIELDS if name in given})
    elif action == "play" or "url" in given:
        found = read_play(values, path, {name: given[name] for name in ("url",) if name in given})
    return found[0] if found else None


def _gain_db(values: VerbValues, path: str, given: object) -> float:
    if given is None:
        return 0.0
    if isinstance(given, int | float) and not isinstance(given, bool) and MIN_GAIN_DB <= given <= MAX_GAIN_DB:
        return float(given)
    values.wrong(f"{path}.gain", f"must be {MIN_GAIN_DB:g} to {MAX_GAIN_DB:g} decibels")
    return 0.0
