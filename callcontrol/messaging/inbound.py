"""Words that opt a contact out of messages, or in again."""

from typing import Final

__all__ = ["START_WORDS", "STOP_WORDS", "preference"]

STOP_WORDS: Final = frozenset(
    {"stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout", "opt out"}
)
START_WORDS: Final = frozenset({"start", "unstop", "subscribe", "optin", "opt in"})

_MAX_CHARS: Final = 20


def preference(text: str | None) -> bool | None:
    """
    True if the sender opts in, False if the sender opts out, None when the text says neither.

    Only a message that consists of one of the words counts: "please stop calling me names" does not opt out.
    """
    if text is None or len(text) > _MAX_CHARS:
        return None
    word = " ".join(text.casefold().strip(" .!\t\r\n").split())
    if word in STOP_WORDS:
        return False
    return True if word in START_WORDS else None
