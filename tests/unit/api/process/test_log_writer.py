"""The log and what is printed, on pipes that are full, closed or read late."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from api.process.logs import (
    NonBlockingWriter,
    configure_logging,
    dropped_lines,
    print_line,
    standard_descriptors,
)

_SMALLEST_PIPE = 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """A pipe with room for one page: the end to read, and a stream that writes to it."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _SMALLEST_PIPE)
    os.set_blocking(reader, False)
    with os.fdopen(writer, "w") as stream:
        yield reader, stream
    os.close(reader)


def test_lines_wait_for_a_reader_and_come_in_order(pipe: tuple[int, TextIO]) -> None:
    reader, stream = pipe
    writer = NonBlockingWriter(stream)
    lines = [f"{number} {'x' * 1500}" for number in range(10)]
    for line in lines:
        writer.put(line)
    came = b""
    for _ in range(20):
        came += os.read(reader, 65_536)
        writer.flush()
        if came.count(b"\n") == len(lines):
            break
    assert came.decode().splitlines() == lines
    assert writer.dropped == 0


def test_of_too_many_lines_the_oldest_are_lost_and_it_is_said_how_many(pipe: tuple[int, TextIO]) -> None:
    reader, stream = pipe
    writer = NonBlockingWriter(stream)
    writer.put("first " + "x" * 4000)
    for number in range(1100):
        writer.put(str(number))
    assert writer.dropped == 100
    os.read(reader, 65_536)
    writer.flush()
    came = os.read(reader, 65_536).decode()
    writer.flush()
    came += os.read(reader, 65_536).decode()
    assert came.splitlines()[:2] == ["(100 lines of the log were dropped: nobody read them)", "100"]


def test_a_line_that_is_longer_than_the_pipe_blocks_nobody(pipe: tuple[int, TextIO]) -> None:
    reader, stream = pipe
    writer = NonBlockingWriter(stream)
    writer.put("y" * 100_000)
    writer.put("next")
    os.read(reader, 65_536)
    writer.flush()
    assert os.read(reader, 65_536).decode() == "\nnext\n"


def test_a_reader_that_is_gone_is_no_error(pipe: tuple[int, TextIO]) -> None:
    _, stream = pipe
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as broken:
        lines = NonBlockingWriter(broken)
        lines.put("to nobody")
    assert lines.dropped == 1
    NonBlockingWriter(stream).put("to somebody")


def test_files_and_strings_are_written_to_at_once(tmp_path: Path) -> None:
    text = io.StringIO()
    NonBlockingWriter(text).put("one")
    assert text.getvalue() == "one\n"
    with (tmp_path / "log").open("w") as file:
        NonBlockingWriter(file).put("two")
    assert (tmp_path / "log").read_text() == "two\n"


def test_the_log_counts_what_nobody_reads(pipe: tuple[int, TextIO]) -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        configure_logging("json", "info", pipe[1])
        for number in range(1200):
            logging.getLogger("api.test").info(f"{number} of a kind of its own")
        assert 0 < dropped_lines() < 200
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def test_without_a_standard_output_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    print_line("hello")


def test_descriptors_that_are_closed_lead_to_nowhere() -> None:
    child = os.fork()
    if child == 0:
        os.close(1)
        os.close(2)
        standard_descriptors()
        nowhere = os.stat(os.devnull).st_rdev
        os._exit(0 if all(os.fstat(number).st_rdev == nowhere for number in (1, 2)) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
