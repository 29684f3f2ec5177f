"""
Coverage-guided fuzzing of the targets with atheris (libFuzzer): ``python -m fuzz.guided --time 60``.

Each target runs in a process of its own, as many at a time as there are processors, and its corpus is kept
from run to run. The first input that ends in anything but a permitted exception, or takes too long, ends its
target and is saved; ``python -m fuzz.run --replay FILE TARGET`` runs it again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.harness import MAX_INPUT_BYTES, SLOW_S, Target, load_targets  # noqa: E402

GRACE_S = 120.0
"""
Time for a target to start and to end, beside its share of the time: importing it with coverage of
its branches takes long beside other work, and an input that hangs is found by libFuzzer itself.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every target for its share of the time; 1 when one of them found something."""
    options = _parse_arguments(arguments)
    if options.child is not None:
        return _fuzz(options.child, options.module, options.time, options.folder)
    targets = load_targets()
    names = options.targets or sorted(targets)
    workers = max(1, min(os.cpu_count() or 1, len(names)))
    rounds = -(-len(names) // workers)
    share_s = max(1, int(options.time / rounds))
    print(f"{len(names)} targets, {share_s} s each, {workers} at a time", flush=True)
    findings = 0
    for at in range(0, len(names), workers):
        findings += _run_together(
            [targets[name] for name in names[at : at + workers]], share_s, options.folder
        )
    return 1 if findings else 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz what reads input from peers, guided by coverage.")
    parser.add_argument("--time", type=float, default=60.0, help="seconds in all (default 60)")
    parser.add_argument("--folder", type=Path, default=Path("var/fuzz"), help="corpus and findings")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--module", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    return parser.parse_args(arguments)


def _run_together(targets: Sequence[Target], share_s: int, folder: Path) -> int:
    command = [
        sys.executable,
        "-m",
        "fuzz.guided",
        "--time",
        str(share_s),
        "--folder",
        str(folder),
        "--child",
    ]
    root = Path(__file__).resolve().parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    running = []
    for target in targets:
        name = target.name
        log = (folder / f"{name}.log").open("wb")
        child = subprocess.Popen(
            [*command, name, "--module", target.module], cwd=root, stdout=log, stderr=subprocess.STDOUT
        )
        running.append((name, child, log))
    deadline = time.monotonic() + share_s + GRACE_S
    findings = 0
    for name, child, log in running:
        try:
            status = child.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            status = child.wait()
        log.close()
        findings += status != 0
        _report(name, status, folder / f"{name}.log")
    return findings


def _report(name: str, status: int, log: Path) -> None:
    text = log.read_text(errors="replace")
    done = [line for line in text.splitlines() if line.startswith("Done ")]
    if status == 0 and done:
        print(f"{name:20} {done[-1][5:]}", flush=True)
    else:
        print(f"{name:20} FOUND SOMETHING (status {status}); the end of {log}:\n{text[-3000:]}", flush=True)


def _fuzz(name: str, module: str, time_s: float, folder: Path) -> int:
    """Fuzz one target in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["sip", "media", "callcontrol", "api"]):
        target = load_targets(module)[name]

    def one_input(data: bytes) -> None:
        try:
            target.check(data)
        except target.permitted:
            pass

    corpus = _corpus(target, folder)
    flags = [
        f"-max_total_time={int(time_s)}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={max(10, int(SLOW_S * 10))}",
        f"-artifact_prefix={folder}/{name}-",
        "-rss_limit_mb=2048",
        "-print_final_stats=0",
        "-verbosity=1",
    ]
    if target.dictionary:
        words = folder / f"{name}.words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.dictionary))
        flags.append(f"-dict={words}")
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input)
    atheris.Fuzz()
    return 0


def _corpus(target: Target, folder: Path) -> Path:
    corpus = folder / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    return corpus


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    sys.exit(main())
