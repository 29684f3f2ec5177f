"""Words by which people ask for no more messages, or for messages again."""

from typing import Final

__all__ = ["START_WORDS", "STOP_WORDS", "preference"]

STOP_WORDS: Final = frozenset(
    {"stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout", "opt out"}
)
START_WORDS: Final = frozenset({"start", "unstop", "subscribe", "optin", "opt in"})

_MAX_CHARS: Final = 20


def preference(text: str | None) -> bool | None:
    """
    Whether who wrote this wants messages; None when the text says nothing of it.

    Only a message that is nothing but such a word counts: "please stop calling me names" is no such wish.
    """
    if text is None or len(text) > _MAX_CHARS:
        return None
    word = " ".join(text.casefold().strip(" .!\t\r\n").split())
    if word in STOP_WORDS:
        return False
    return True if word in START_WORDS else None
