"""
Fuzzing of the native parsers, buffers and transactions: ``python -m fuzz.native --time 60``.

With clang's libFuzzer, guided by coverage; without it, the same targets run over mutations of the kept
inputs. Either way under AddressSanitizer and UndefinedBehaviorSanitizer. An input that breaks a target is
saved in the folder; ``--keep`` adds what was found to reach new code to the inputs of the repository.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = {
    path.name: path for part in ("media", "sip") for path in (ROOT / part / "native/fuzz/corpus").iterdir()
}
"""Folder of the kept inputs of each target."""
MAX_INPUT_BYTES = 1024
MUTATIONS_PER_S = 5000
"""Rate of a target on a slow machine without libFuzzer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the targets and run each for its share of the time; 1 when one of them found something."""
    parser = argparse.ArgumentParser(description="Fuzz what the native parts read from peers.")
    parser.add_argument("--time", type=float, default=60.0, help="seconds in all (default 60)")
    parser.add_argument("--folder", type=Path, default=Path("var/fuzz/native"), help="corpus and findings")
    parser.add_argument("--build", type=Path, default=Path("build/fuzz"), help="where the targets are built")
    parser.add_argument("--keep", action="store_true", help="add what reached new code to the kept inputs")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args(arguments)
    guided = has_libfuzzer()
    build(options.build, guided)
    targets = options.targets or sorted(KEPT)
    workers = max(1, min(os.cpu_count() or 1, len(targets)))
    share_s = max(1, int(options.time / -(-len(targets) // workers)))
    print(f"{len(targets)} native targets, {share_s} s each, {workers} at a time", flush=True)
    if not guided:
        print("clang's libFuzzer cannot be had here; fuzzing without coverage", flush=True)
    findings = 0
    for at in range(0, len(targets), workers):
        running = [_start(options, name, share_s, guided) for name in targets[at : at + workers]]
        findings += sum(_end(name, process) for name, process in running)
    if options.keep and guided:
        for name in targets:
            _keep(options, name)
    return 1 if findings else 0


def has_libfuzzer() -> bool:
    """Return True if clang is installed with its fuzzing library."""
    clang = shutil.which("clang++")
    if clang is None:
        return False
    source = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    with tempfile.TemporaryDirectory() as folder:
        command = [clang, "-fsanitize=fuzzer,address", "-x", "c++", "-", "-o", f"{folder}/probe"]
        return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0


def build(folder: Path, guided: bool) -> None:
    """Build all targets under the sanitizers."""
    ninja = Path(sys.executable).with_name("ninja")
    options = ["-DTRUNKLINE_FUZZ=ON", "-DTRUNKLINE_SANITIZE=address,undefined"]
    options += ["-DCMAKE_CXX_COMPILER=" + ("clang++" if guided else "g++")]
    if ninja.exists():
        options += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(folder), *options],
        ["cmake", "--build", str(folder), "--parallel"],
    ):
        outcome = subprocess.run(command, capture_output=True, text=True)
        if outcome.returncode != 0:
            sys.exit(f"{outcome.stdout}{outcome.stderr}\nthe fuzz targets could not be built")


def _program(folder: Path, name: str) -> Path:
    """Path of a target's program; CMake keeps the layout of the sources below the folder."""
    return (folder / KEPT[name].parents[1].relative_to(ROOT).parent / f"fuzz_{name}").resolve()


def _start(
    options: argparse.Namespace, name: str, share_s: int, guided: bool
) -> tuple[str, subprocess.Popen[str]]:
    corpus = options.folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    command = [str(_program(options.build, name))]
    if guided:
        command += [f"-max_total_time={share_s}", f"-max_len={MAX_INPUT_BYTES}", "-print_final_stats=1"]
        command += [f"-artifact_prefix={options.folder}/{name}-", str(corpus)]
    else:
        command += ["--mutations", str(share_s * MUTATIONS_PER_S)]
    command.append(str(KEPT[name]))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return name, process


def _end(name: str, process: subprocess.Popen[str]) -> bool:
    """Wait for a target and say what became of it; whether it found something."""
    printed, _ = process.communicate()
    lines = printed.splitlines()
    if process.returncode == 0:
        told = [line for line in lines if "number_of_executed_units" in line or "mutations" in line]
        print(f"  {name}: {told[-1].split(':')[-1].strip() if told else 'nothing found'}", flush=True)
        return False
    print(f"  {name}: FOUND SOMETHING\n" + "\n".join(lines[-40:]), flush=True)
    return True


def _keep(options: argparse.Namespace, name: str) -> None:
    binary, corpus = _program(options.build, name), options.folder / name
    command = [str(binary), "-merge=1", f"-max_len={MAX_INPUT_BYTES}", str(KEPT[name]), str(corpus)]
    subprocess.run(command, capture_output=True, check=True)


if __name__ == "__main__":
    sys.exit(main())
