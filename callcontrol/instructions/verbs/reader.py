"""Reader of lists of verbs, and the table of verbs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from callcontrol.calls.plan import Step
from callcontrol.instructions.verbs.control import (
    digit_steps,
    read_answer,
    read_hangup,
    read_redirect,
    read_reject,
    read_send_digits,
)
from callcontrol.instructions.verbs.dialling import (
    CONFERENCE_FIELDS,
    DIAL_FIELDS,
    STREAM_FIELDS,
    read_conference,
    read_dial,
    read_stream,
    stream_steps,
)
from callcontrol.instructions.verbs.speaking import (
    GATHER_FIELDS,
    PAUSE_FIELDS,
    PLAY_FIELDS,
    RECORD_FIELDS,
    SAY_FIELDS,
    read_gather,
    read_pause,
    read_play,
    read_record,
    read_say,
)
from callcontrol.instructions.verbs.values import VerbValues

MAX_VERBS: Final = 50


class VerbReader(VerbValues):
    """Reads verbs and collects errors in ``errors``."""

    def read(self, path: str, verbs: object) -> list[Step]:
        """
        The steps of a list of verbs, as far as they are valid.

        Raises:
            Forbidden: A number may not be dialled.
        """
        if not isinstance(verbs, Sequence) or isinstance(verbs, str | bytes) or len(verbs) > MAX_VERBS:
            self.wrong(path, f"must be a list of at most {MAX_VERBS} verbs")
            return []
        steps: list[Step] = []
        for index, verb in enumerate(verbs):
            steps += self._verb(f"{path}[{index}]", verb)
        return steps

    def digits(self, path: str, digits: object) -> list[Step]:
        """The step that sends digits; none if they are invalid."""
        return digit_steps(self, path, digits)

    def stream(self, url: object, fields: Mapping[str, object], prefix: str, url_path: str) -> list[Step]:
        """The step that connects a voice agent, with ``fields`` as in ``choose_stream``."""
        return stream_steps(self, url, fields, prefix, url_path)

    def _verb(self, path: str, verb: object) -> Sequence[Step]:
        if not isinstance(verb, Mapping):
            self.wrong(path, "must be an object with the field verb")
            return []
        name = verb.get("verb")
        known = VERBS.get(name) if isinstance(name, str) else None
        if known is None:
            self.wrong(f"{path}.verb", f"must be one of {', '.join(VERBS)}")
            return []
        fields, read = known
        for field in verb:
            if field != "verb" and field not in fields:
                self.wrong(f"{path}.{str(field)[:100]}", f"is not a field of {name}")
        return read(self, path, verb)


ReadVerb = Callable[[VerbValues, str, Mapping[str, Any]], Sequence[Step]]
_NONE: Final[frozenset[str]] = frozenset()
VERBS: Final[Mapping[str, tuple[frozenset[str], ReadVerb]]] = {
    "answer": (_NONE, read_answer),
    "play": (PLAY_FIELDS, read_play),
    "say": (SAY_FIELDS, read_say),
    "pause": (PAUSE_FIELDS, read_pause),
    "gather": (GATHER_FIELDS, read_gather),
    "record": (RECORD_FIELDS, read_record),
    "dial": (DIAL_FIELDS, read_dial),
    "conference": (CONFERENCE_FIELDS, read_conference),
    "stream": (STREAM_FIELDS, read_stream),
    "send_digits": (frozenset({"digits"}), read_send_digits),
    "redirect": (frozenset({"url", "method"}), read_redirect),
    "reject": (frozenset({"status"}), read_reject),
    "hangup": (_NONE, read_hangup),
}
"""By name: the fields that a verb may have, and its reader."""
