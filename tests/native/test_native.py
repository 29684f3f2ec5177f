"""Native tests as tests of pytest: one for each source file, so that they run side by side."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.native.builds import PLAIN, SANITIZED, THREADS, BuildFailed, build, folder
from tests.support.ports import exclusive_ports

ROOT = Path(__file__).resolve().parents[2]
ENGINE_TESTS = sorted(path.name for path in (ROOT / "media/native/tests").glob("test_*.cpp"))
WIRE_TESTS = sorted(path.name for path in (ROOT / "sip/native/tests").glob("test_*.cpp"))
CORPORA = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("*/native/fuzz/corpus/*"))
# What runs an engine; the pure parts have no threads, and take long under ThreadSanitizer.
_THREADED = re.compile(r"peer[.]hpp|far_end[.]hpp|std::thread|Engine::create")
THREADED_TESTS = [
    name for name in ENGINE_TESTS if _THREADED.search((ROOT / "media/native/tests" / name).read_text())
]
THREADED_WIRE_TESTS = ["test_service.cpp"]
_MUTATIONS = 200

sanitized = pytest.mark.long(reason="builds the engine again, with sanitizers")


@functools.cache
def _built(kind: str) -> Path:
    try:
        build(kind)
    except BuildFailed as error:
        pytest.fail(str(error), pytrace=False)
    return folder(kind)


def _run(program: Path, *arguments: str | Path) -> str:
    # Some count the ports that they can open, and a server of other tests may use those of a usual range.
    with exclusive_ports() as first:
        done = subprocess.run(
            [program, *arguments],
            env=os.environ | {"TRUNKLINE_TEST_PORT": str(first)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    assert done.returncode == 0, done.stdout[-20_000:]
    return done.stdout


def _run_file(program: Path, source: str) -> None:
    said = _run(program, f"-sf=*/{source}")
    assert re.search(r"test cases:\s+[1-9]", said), f"no test of {source} has run:\n{said}"


@pytest.mark.parametrize("source", ENGINE_TESTS)
def test_the_engine(source: str) -> None:
    _run_file(_built(PLAIN) / "media/native/engine_tests", source)


@pytest.mark.parametrize("source", WIRE_TESTS)
def test_sip_messages(source: str) -> None:
    _run_file(_built(PLAIN) / "sip/native/wire_tests", source)


@sanitized
@pytest.mark.parametrize("source", ENGINE_TESTS)
def test_the_engine_under_address_and_undefined_behaviour_sanitizers(source: str) -> None:
    _run_file(_built(SANITIZED) / "media/native/engine_tests", source)


@sanitized
@pytest.mark.parametrize("source", WIRE_TESTS)
def test_sip_messages_under_address_and_undefined_behaviour_sanitizers(source: str) -> None:
    _run_file(_built(SANITIZED) / "sip/native/wire_tests", source)


@sanitized
@pytest.mark.parametrize("corpus", CORPORA)
def test_kept_fuzz_inputs_under_sanitizers(corpus: str) -> None:
    folder = Path(corpus)
    program = _built(SANITIZED) / folder.parents[2] / f"fuzz_{folder.name}"
    _run(program, "--mutations", str(_MUTATIONS), ROOT / corpus)


@sanitized
@pytest.mark.parametrize("source", THREADED_TESTS)
def test_threads_of_the_engine_under_thread_sanitizer(source: str) -> None:
    _run_file(_built(THREADS) / "media/native/engine_tests", source)


@sanitized
@pytest.mark.parametrize("source", THREADED_WIRE_TESTS)
def test_threads_of_signalling_under_thread_sanitizer(source: str) -> None:
    _run_file(_built(THREADS) / "sip/native/wire_tests", source)
