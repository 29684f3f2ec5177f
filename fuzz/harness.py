"""
Fuzz targets, and the mutations that feed them.

No coverage feedback is needed: a target tells the outcomes of its inputs
apart, and an input with a new outcome joins the corpus.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

__all__ = ["Finding", "Fuzzer", "Target", "load_targets"]

MAX_INPUT_BYTES = 8192
MAX_CORPUS = 2000
SLOW_S = 1.0
"""Processor time one input may take; a parser that needs more invites denial of service."""

VECTORS = Path(__file__).parents[1] / "tests" / "vectors"


@dataclass(frozen=True)
class Target:
    """
    One parser under test.

    ``check`` runs it on an input, verifies the round trip with plain
    ``assert``, and returns a short word for what happened. ``permitted`` are
    the exceptions that are an answer and not a finding.
    """

    name: str
    check: Callable[[bytes], str]
    permitted: tuple[type[Exception], ...]
    seeds: Sequence[bytes]
    dictionary: Sequence[bytes] = ()
    module: str = ""
    """Module that defines the target; set by the harness."""


@dataclass(frozen=True)
class Finding:
    """An input that made a target misbehave."""

    target: str
    data: bytes
    error: BaseException


@dataclass
class Fuzzer:
    """Feeds one target; the same seed gives the same inputs."""

    target: Target
    seed: int
    executions: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.seed}:{self.target.name}")
        self._corpus = list(self.target.seeds) or [b""]

    def run(self, *, until: float | None = None, executions: int | None = None) -> Finding | None:
        """Run until the monotonic time or the number of executions; the first finding ends it."""
        for data in self._inputs():
            if until is not None and time.monotonic() >= until:
                return None
            if executions is not None and self.executions >= executions:
                return None
            if (finding := self.execute(data)) is not None:
                return finding
        raise AssertionError("inputs never end")

    def execute(self, data: bytes) -> Finding | None:
        """Run one input and remember it when its outcome is new."""
        self.executions += 1
        start = time.process_time()
        try:
            outcome = self.target.check(data)
        except self.target.permitted as error:
            outcome = f"{type(error).__name__}: {getattr(error, 'reason', error)}"
        except Exception as error:
            return Finding(self.target.name, data, error)
        if time.process_time() - start > SLOW_S:
            return Finding(self.target.name, data, TimeoutError(f"more than {SLOW_S} s of processor time"))
        if outcome not in self.outcomes and len(self._corpus) < MAX_CORPUS:
            self._corpus.append(data)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        return None

    def mutated(self, seed: bytes) -> bytes:
        """An input made of this one by a few mutations."""
        data = bytearray(seed)
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            self._mutate(data)
        return bytes(data[:MAX_INPUT_BYTES])

    def _inputs(self) -> Iterator[bytes]:
        yield from self.target.seeds
        while True:
            yield self.mutated(self._random.choice(self._corpus))

    def _mutate(self, data: bytearray) -> None:
        rng = self._random
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 4, 16, 64)))
        piece = bytes(data[start:end])
        kind = rng.randrange(8)
        if kind == 0:
            data[start:end] = rng.randbytes(rng.randrange(4))
        elif kind == 1:
            del data[start:end]
        elif kind == 2:
            data[start:end] = piece * rng.choice((2, 3, 50))
        elif kind == 3 and self.target.dictionary:
            data[start:end] = rng.choice(self.target.dictionary)
        elif kind == 4:
            self._splice(data, start)
        elif kind == 5:
            self._swap_lines(data)
        elif kind == 6:
            data[start:end] = rng.choice(NASTY)
        else:
            data[start:end] = bytes(byte ^ (1 << rng.randrange(8)) for byte in piece)

    def _splice(self, data: bytearray, at: int) -> None:
        other = self._random.choice(self._corpus)
        start = self._random.randrange(len(other) + 1)
        data[at:] = other[start : start + self._random.choice((8, 64, MAX_INPUT_BYTES))]

    def _swap_lines(self, data: bytearray) -> None:
        lines = bytes(data).splitlines(keepends=True)
        if len(lines) < 2:
            return
        one, two = self._random.randrange(len(lines)), self._random.randrange(len(lines))
        if self._random.random() < 0.5:
            lines[one], lines[two] = lines[two], lines[one]
        else:
            lines.insert(one, lines[two])
        data[:] = b"".join(lines)


# What breaks parsers of any text protocol.
NASTY: tuple[bytes, ...] = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n ",
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\xc2\xb2",
    b"\xc2\x85",
    b" ",
    b"\t",
    b'"',
    b"\\",
    b'\\"',
    b"<",
    b">",
    b";",
    b",",
    b"=",
    b":",
    b"@",
    b"?",
    b"%",
    b"%00",
    b"%0d%0a",
    b"-1",
    b"0",
    b"65536",
    b"2147483648",
    b"99999999999999999999",
)


def load_targets(only: str | None = None) -> dict[str, Target]:
    """
    All targets by name: the ``TARGETS`` of every module in ``fuzz/targets``.

    With ``only`` its own module is loaded and no other: what another imports need not be counted.
    """
    package = importlib.import_module("fuzz.targets")
    targets: dict[str, Target] = {}
    for module in pkgutil.iter_modules(package.__path__, "fuzz.targets."):
        if only is not None and module.name != only:
            continue
        for target in importlib.import_module(module.name).TARGETS:
            if target.name in targets:
                raise ValueError(f"two fuzz targets are named {target.name}")
            targets[target.name] = replace(target, module=module.name)
    return targets
