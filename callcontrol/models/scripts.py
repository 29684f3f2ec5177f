"""Scripts of the built-in voice agent: nodes with sentences, expected input, and branches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

DEFAULT_TURNS: Final = 50

DIGITS: Final = "digits"
SPEECH: Final = "speech"
NONE: Final = "none"
FAILED: Final = "failed"
OUTCOMES: Final = (DIGITS, SPEECH, NONE, FAILED)
"""Names that ``on`` may have besides keys: any other keys, speech, no input, and failure of all retries."""


@dataclass(frozen=True, slots=True)
class Listening:
    """
    Input that a node accepts after it has spoken, or during it if that may be interrupted.

    Keys are complete with ``num_digits`` of them, with ``finish_on_key``, or when no other follows for
    ``timeout_s``. Input without a branch is asked for again ``retries`` times, with ``retry_say`` or the
    node's own words. ``variable`` names the variable that holds the keys from then on.
    """

    num_digits: int = 1
    finish_on_key: str = "#"
    timeout_s: float = 5.0
    barge_in: bool = True
    retries: int = 1
    retry_say: str | None = None
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Target of a node's transfer of the call, as in the script; both fields may contain variables."""

    to: str
    caller_id: str | None = None
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Node:
    """
    One node: a text to say, and one action after it.

    ``on`` maps input, or a failed transfer, to the next node. Without ``listening``, ``forwarding`` and
    ``then`` it hangs up.
    """

    say: str = ""
    listening: Listening | None = None
    forwarding: Forwarding | None = None
    then: str | None = None
    on: Mapping[str, str] = field(default_factory=dict)

    @property
    def hears_speech(self) -> bool:
        """True if speech of the party has a branch."""
        return SPEECH in self.on

    def leads_to(self) -> Iterator[str]:
        """The nodes that may follow."""
        if self.then is not None:
            yield self.then
        yield from self.on.values()


@dataclass(frozen=True, slots=True)
class Script:
    """A script that can be run: every node that is named exists."""

    nodes: Mapping[str, Node]
    start: str
    max_turns: int = DEFAULT_TURNS

    @property
    def hears_speech(self) -> bool:
        """True if any node has a branch for speech."""
        return any(node.hears_speech for node in self.nodes.values())
