"""Limits of log lines of a kind, the call of a line about SIP, and lines of libraries."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from api.process.logs import CallNamer, LineLimit, configure_logging, naming_calls
from callcontrol.calls.aio.mailbox import CallLogger


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def record(text: str, at_s: float, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "sip.test", "msg": text, "created": at_s, **fields})
    return made


def test_a_flood_of_one_kind_is_cut_and_hides_no_other(lines: io.StringIO) -> None:
    """Of a thousand equal lines in a second ten are written, then how many were not; others all are."""
    limit = LineLimit(10)
    passed = [limit.filter(record("banned source=%s", 5.0 + i / 1000, args=(i,))) for i in range(1000)]
    assert passed.count(True) == 10
    assert limit.filter(record("another", 5.9))
    assert limit.filter(record("banned source=%s", 6.0))
    (told,) = lines.getvalue().splitlines()
    assert json.loads(told)["message"] == "990 more lines of sip.test were suppressed: banned source=%s"


def test_lines_of_many_calls_are_of_one_kind(lines: io.StringIO) -> None:
    """Lines of one place are of one kind, whichever call they name."""
    limit = LineLimit(3)
    texts = [(f"call c-{i}: not played", f"c-{i}") for i in range(9)]
    passed = [limit.filter(record(text, 1.0, call_sid=call_sid)) for text, call_sid in texts]
    assert passed.count(True) == 3


def test_a_line_of_sip_names_its_call(lines: io.StringIO) -> None:
    """A line that knows its dialog alone is given the call's identifier, as long as the server runs."""
    end = naming_calls({"dialog-1": "c-1"}.get)
    log = logging.getLogger("sip.test")
    log.warning("failed", extra={"call_id": "dialog-1"})
    log.warning("failed", extra={"call_id": "dialog-2"})
    CallLogger("c-2").warning("failed")
    end()
    log.warning("failed", extra={"call_id": "dialog-1"})
    found = [json.loads(line).get("call_sid") for line in lines.getvalue().splitlines()]
    assert found == ["c-1", None, "c-2", None]


def test_a_call_that_is_named_keeps_its_name() -> None:
    """A call named in the line is not replaced."""
    named = record("text", 1.0, call_sid="c-1", call_id="dialog-1")
    assert CallNamer(lambda _: "c-9").filter(named)
    assert named.__dict__["call_sid"] == "c-1"


def test_a_connection_that_breaks_on_its_return_is_one_line(lines: io.StringIO) -> None:
    """SQLAlchemy logs it with a traceback. Others report that failure: one line with the reason is enough."""
    engine = sa.create_engine("sqlite://", poolclass=QueuePool)

    def breaks(*_: object) -> None:
        raise ConnectionResetError("the server has gone")

    event.listen(engine, "reset", breaks)
    engine.connect().close()
    (found,) = map(json.loads, lines.getvalue().splitlines())
    message = "a database connection is lost: ConnectionResetError: the server has gone"
    assert (found["level"], found["message"]) == ("warning", message)
    assert "exception" not in found


def test_another_failure_in_sqlalchemy_has_its_traceback(lines: io.StringIO) -> None:
    log = logging.getLogger("sqlalchemy.engine.Engine")
    try:
        raise RuntimeError("a defect")
    except RuntimeError:
        log.exception("failed")
    (found,) = map(json.loads, lines.getvalue().splitlines())
    assert "RuntimeError: a defect" in found["exception"]
