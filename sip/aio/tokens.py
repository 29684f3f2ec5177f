"""Randomness for the SIP core: tags, branches, Call-IDs, client nonces and retry delays."""

import os
import random

__all__ = ["Tokens"]

_TOKEN_CHARS = 20
_POOL_BYTES = 4000


class Tokens:
    """Source of unguessable tokens from a pool of system randomness, one system call for 400 tokens."""

    def __init__(self) -> None:
        self._pool = ""
        self._at = 0
        self._random = random.SystemRandom()

    def token(self) -> str:
        """Return 80 random bits as 20 hexadecimal digits."""
        at = self._at
        if at + _TOKEN_CHARS > len(self._pool):
            self._pool = os.urandom(_POOL_BYTES).hex()
            at = 0
        self._at = at + _TOKEN_CHARS
        return self._pool[at : at + _TOKEN_CHARS]

    def pick(self, low: float, high: float) -> float:
        """Return a random number between two bounds."""
        return self._random.uniform(low, high)
