"""Log lines of recent calls, and their bounds."""

from __future__ import annotations

import logging

from api.process.call_lines import MAX_LINES, CallLines


def line(text: str, **context: str) -> logging.LogRecord:
    record = logging.LogRecord("sip", logging.INFO, "", 0, text, (), None)
    record.__dict__.update(context)
    return record


def lines(**bounds: int) -> CallLines:
    return CallLines({"dialog": "one"}.get, **bounds)


def texts(kept: CallLines, call_sid: str) -> list[str]:
    return [found.partition("sip: ")[2] for found in kept.of(call_sid)]


def test_lines_are_kept_by_call_without_secrets_and_control_characters() -> None:
    kept = lines()
    for record in (
        line("of no call"),
        line("of a dialog\x1b", call_id="dialog"),
        line("Bearer abcdefghijkl", call_sid="one"),
        line("of another", call_sid="two"),
    ):
        kept.handle(record)
    assert texts(kept, "one") == ["of a dialog\\x1b", "Bearer ***"]
    assert texts(kept, "two") == ["of another"] and kept.of("three") == ()


def test_calls_lines_and_characters_are_bounded() -> None:
    kept = lines(max_calls=2)
    for number in range(MAX_LINES + 3):
        kept.handle(line(f"line {number}", call_sid="one"))
    assert texts(kept, "one")[-1] == f"line {MAX_LINES - 1}" and kept.dropped("one") == 3
    kept.handle(line("%d", call_sid="one"))
    assert kept.dropped("one") == 4, "what is not kept is not formatted either"
    for call_sid in ("two", "three"):
        kept.handle(line("again", call_sid=call_sid))
    assert kept.of("one") == () and kept.dropped("one") == 0
    small = lines(max_chars=1500)
    for call_sid in ("one", "two"):
        small.handle(line("x" * 5000, call_sid=call_sid))
    assert small.of("one") == () and len(small.of("two")[0]) == 1000


def test_a_line_that_cannot_be_formatted_raises_nothing() -> None:
    kept = lines()
    before, logging.raiseExceptions = logging.raiseExceptions, False
    record = line("%d", call_sid="one")
    record.args = ("x",)
    try:
        kept.handle(record)
    finally:
        logging.raiseExceptions = before
    assert kept.of("one") == ()
