"""
A recogniser that needs neither a network nor a key: it understands a few English words, in Deepgram's form.

    scripts/library-environment pocketsphinx .cache/words
    .cache/words/bin/python -m examples.word_recognizer --port 9300
    TRUNKLINE_RECOGNIZER_URL=ws://127.0.0.1:9300/v1/listen make run

The small model that the package pocketsphinx ships hears them, and nothing else: words that it may hear are
arguments, such as `yes no sales`. It is for tests and demonstrations; whoever connects is heard.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pocketsphinx import Decoder

from fixtures.recognizer import Happened, Listener, RecognizerEndpoint, result

WORDS = (
    *("yes", "no", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("hello", "good morning", "thank you", "sales", "service", "help", "stop"),
)

_RATE = 16_000
_PART_MS = 100
_LOUD = 500
_MAX_PARTS = 300


def grammar_of(words: Sequence[str]) -> str:
    """Return the grammar of any of these words, in any order."""
    choice = " | ".join(" ".join(part for part in word.lower().split() if part.isalpha()) for word in words)
    return f"#JSGF V1.0;\ngrammar words;\npublic <said> = ({choice})+;\n"


def doubled(samples: array[int]) -> array[int]:
    """Return samples at twice the rate, those between two in their middle."""
    following = [*samples[1:], samples[-1]]
    pairs = zip(samples, following, strict=True)
    return array("h", [value for one, two in pairs for value in (one, (one + two) // 2)])


class WordListener:
    """
    Understands the words of one connection.

    Silence of `endpointing_ms` ends an utterance, or half a minute.
    """

    def __init__(self, decoder: Decoder, rate: int, endpointing_ms: int) -> None:
        self._decoder = decoder
        self._is_narrow = rate < _RATE
        self._part_bytes = rate * _PART_MS // 1000 * 2
        self._quiet_parts = max(3, endpointing_ms // _PART_MS)
        self._audio = bytearray()
        self._before = b""
        self._parts = self._quiet = 0
        self._told = False

    def hear(self, pcm: bytes) -> list[Happened]:
        """Return what has happened after more audio."""
        self._audio += pcm
        found: list[Happened] = []
        while len(self._audio) >= self._part_bytes:
            part = array("h", bytes(self._audio[: self._part_bytes]))
            del self._audio[: self._part_bytes]
            found += self._part(doubled(part) if self._is_narrow else part)
        return found

    def end(self) -> list[Happened]:
        """Return the words that the end of the audio cut off, if there are any."""
        return self._over() if self._parts else []

    def _part(self, samples: array[int]) -> list[Happened]:
        loud, pcm = max(map(abs, samples)) >= _LOUD, samples.tobytes()
        before, self._before = self._before, pcm
        if not self._parts and not loud:
            return []
        if not self._parts:
            self._decoder.start_utt()
            # The beginning of a word is quiet.
            if before:
                self._decoder.process_raw(before)
        self._parts += 1
        self._quiet = 0 if loud else self._quiet + 1
        self._decoder.process_raw(pcm)
        if self._quiet >= self._quiet_parts or self._parts >= _MAX_PARTS:
            return self._over()
        words = self._words()
        if self._told or not words:
            return []
        self._told = True
        return [("begun", words)]

    def _over(self) -> list[Happened]:
        self._decoder.end_utt()
        self._parts = self._quiet = 0
        self._told = False
        words = self._words()
        return [("over", words)] if words else []

    def _words(self) -> str:
        found = self._decoder.hyp()
        return "" if found is None else str(found.hypstr)


class WordRecognizer(RecognizerEndpoint):
    """The endpoint; each connection has a decoder of its own, of some ten megabytes."""

    def __init__(self, words: Sequence[str] = WORDS) -> None:
        super().__init__(None)
        self._grammar = grammar_of(words)

    def listener(self, rate: int, endpointing_ms: int) -> Listener:
        """Make what understands a connection."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "words.gram"
            path.write_text(self._grammar)
            decoder = Decoder(jsgf=str(path), lm=None, loglevel="FATAL")
        return WordListener(decoder, rate, endpointing_ms)

    def results(self, happened: str, words: str) -> list[dict[str, Any]]:
        """Return the message of what has happened."""
        is_over = happened == "over"
        return [result(words, final=is_over, over=is_over)]


async def main() -> None:
    """Listen until the program is stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=9300)
    parser.add_argument("words", nargs="*", default=WORDS)
    given = parser.parse_args()
    recognizer = WordRecognizer(given.words)
    try:
        recognizer.listener(_RATE, 0)
    except RuntimeError:
        parser.error("each word must be in the dictionary of the package pocketsphinx, as letters")
    async with recognizer.running(given.port) as endpoint:
        print(f"TRUNKLINE_RECOGNIZER_URL={endpoint.url}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
