"""
CPU cost of codecs: `python -m benchmarks.codecs [--rounds N] [--bitrate BPS] [--loss PERCENT]`.

Processor time for 20 ms of sound in one direction: decoding, encoding, hiding a loss, and each transcoding
pair with the rate conversion between them. Each figure is the least of several rounds. Calls cross from
Python into the engine and back once for each step; the time of such a crossing is printed and left in.
"""

from __future__ import annotations

import argparse
import math
import random
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import machine
from media import _engine

CODECS = [("PCMU", 8000), ("PCMA", 8000), ("L16", 8000), ("L16", 16000), ("G722", 8000), ("OPUS", 48000)]
FRAMES = 250


@dataclass(frozen=True, slots=True)
class Bench:
    """One codec with five seconds of something like speech, as frames and as packets."""

    label: str
    name: str
    clock_hz: int
    options: Mapping[str, Any]
    frames: list[bytes]
    packets: list[bytes]

    @classmethod
    def of(cls, name: str, clock_hz: int, options: Mapping[str, Any]) -> Bench:
        encoder = _engine.Encoder(name, clock_hz, **options)
        frames = speech(encoder.rate_hz)
        packets = [encoder.encode(frame) for frame in frames]
        label = f"{name}/{clock_hz // 1000}" if name == "L16" else name
        return cls(label, name, clock_hz, options, frames, packets)

    def encoder(self) -> _engine.Encoder:
        return _engine.Encoder(self.name, self.clock_hz, **self.options)

    def decoder(self) -> _engine.Decoder:
        return _engine.Decoder(self.name, self.clock_hz)


def speech(rate_hz: int) -> list[bytes]:
    """Frames of a swaying pitch with harmonics, noise, and pauses; the same every time."""
    noise = random.Random(4)
    phase, values = 0.0, []
    for n in range(FRAMES * rate_hz // 50):
        at_s = n / rate_hz
        phase += 2 * math.pi * (140 + 20 * math.sin(9 * at_s)) / rate_hz
        voice = sum(math.sin(harmonic * phase) / harmonic for harmonic in range(1, 9))
        loudness = 3000 * max(0.0, math.sin(4 * at_s))
        values.append(round(loudness * voice + noise.uniform(-40, 40)))
    size = rate_hz // 50
    return [struct.pack(f"={size}h", *values[at : at + size]) for at in range(0, len(values), size)]


def least_us(make: Callable[[], Callable[[int], object]], rounds: int) -> float:
    """Processor time of one frame, in microseconds; every round has a new codec."""
    best = float("inf")
    for _ in range(rounds):
        work = make()
        begun_s = time.process_time()
        for n in range(FRAMES):
            work(n)
        best = min(best, time.process_time() - begun_s)
    return best / FRAMES * 1e6


def decoding(bench: Bench) -> Callable[[int], object]:
    decoder = bench.decoder()
    return lambda n: decoder.decode(bench.packets[n])


def encoding(bench: Bench) -> Callable[[int], object]:
    encoder = bench.encoder()
    return lambda n: encoder.encode(bench.frames[n])


def hiding(bench: Bench) -> Callable[[int], object]:
    """Every other packet lost."""
    decoder = bench.decoder()
    return lambda n: decoder.conceal(20) if n % 2 else decoder.decode(bench.packets[n])


def transcoding(first: Bench, second: Bench) -> Callable[[int], object]:
    decoder, encoder = first.decoder(), second.encoder()
    if decoder.rate_hz == encoder.rate_hz:
        return lambda n: encoder.encode(decoder.decode(first.packets[n]))
    converter = _engine.RateConverter(decoder.rate_hz, encoder.rate_hz)
    return lambda n: encoder.encode(converter.process(decoder.decode(first.packets[n])))


def crossing() -> Callable[[int], object]:
    """The cheapest thing that takes and returns a frame."""
    return lambda n: _engine.resample(b"\0" * 320, 8000, 8000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bitrate", type=int, default=32_000, help="of Opus, in bit/s")
    parser.add_argument("--loss", type=int, default=0, help="loss that Opus is told of, in percent")
    options = parser.parse_args()
    described = machine.describe()
    print(f"{described}\n{options.rounds} rounds of {FRAMES} frames, us per 20 ms of sound in one direction")
    print(f"one crossing between Python and the engine: {least_us(crossing, options.rounds):.2f}\n")
    opus = {"bitrate_bps": options.bitrate, "expected_loss_pct": options.loss}
    built = [pair for pair in CODECS if _engine.supports(*pair)]
    benches = [Bench.of(*pair, opus if pair[0] == "OPUS" else {}) for pair in built]
    print_singles(benches, options.rounds)
    print_pairs(benches, options.rounds)


def print_singles(benches: list[Bench], rounds: int) -> None:
    print(f"{'':8} {'decode':>8} {'encode':>8} {'half lost':>10} {'kbit/s':>8}")
    for bench in benches:
        times = [least_us(partial(work, bench), rounds) for work in (decoding, encoding, hiding)]
        kbps = sum(map(len, bench.packets)) * 8 / (FRAMES * 20)
        print(f"{bench.label:8} {times[0]:8.1f} {times[1]:8.1f} {times[2]:10.1f} {kbps:8.1f}")


def print_pairs(benches: list[Bench], rounds: int) -> None:
    print("\nfrom \\ to" + "".join(f" {bench.label:>8}" for bench in benches))
    for first in benches:
        cells = [
            "relayed" if first is second else f"{least_us(_pair(first, second), rounds):.1f}"
            for second in benches
        ]
        print(f"{first.label:9}" + "".join(f" {cell:>8}" for cell in cells))


def _pair(first: Bench, second: Bench) -> Callable[[], Callable[[int], object]]:
    return lambda: transcoding(first, second)


if __name__ == "__main__":
    main()
