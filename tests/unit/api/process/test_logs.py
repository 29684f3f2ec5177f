"""The log: formats, context, and no secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from aiohttp.http_exceptions import LineTooLong

from api.process.call_lines import CallLines
from api.process.logs import configure_logging, redact


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("key vp_0123456789abcdef used", "key vp_*** used"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer ***"),
        ("wss://user:hunter2@bot.example.com/ws", "wss://user:***@bot.example.com/ws"),
        ("postgresql+asyncpg://u:hunter2@db/x", "postgresql+asyncpg://u:***@db/x"),
        ("wss://bot/ws?token=hunter2&a=b", "wss://bot/ws?token=***&a=b"),
        ('digest RESPONSE="0123abcd", qop=auth', 'digest RESPONSE="***", qop=auth'),
        ("input_value='it\\'s \"my\" hunter2', input_type=str]", "input_value=***, input_type=str]"),
        ("input_value={'a': 'b', 'c': 'hunter2'}, input_type=dict]", "input_value=***, input_type=dict]"),
        ("input_value='hunter2...", "input_value=***"),
        ("plain text", "plain text"),
    ],
)
def test_secrets_are_blotted_out(text: str, kept: str) -> None:
    assert redact(text) == kept


def test_json_lines() -> None:
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    log = logging.getLogger("callcontrol.test")
    log.info("call %s", "answered", extra={"call_sid": "c-1"})
    log.debug("not this")
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        log.exception("failed\nbadly")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["message"] == "call answered"
    assert (first["level"], first["logger"], first["call_sid"]) == ("info", "callcontrol.test", "c-1")
    assert first["time"].endswith("Z")
    assert "hunter2" not in second["exception"]


def test_text_of_exceptions_and_context_is_without_secrets() -> None:
    stream = io.StringIO()
    configure_logging("text", "info", stream)
    try:
        raise ValueError("of wss://user:hunter2@bot.example.com/ws")
    except ValueError:
        logging.getLogger("sip.test").exception("token=%s", "hunter2", extra={"call_id": "secret=hunter2@h"})
    written = stream.getvalue()
    assert "hunter2" not in written
    assert "token=***  call_id=secret=***\n" in written and "ValueError: of wss://user:***@bot" in written


@pytest.mark.parametrize("form", ["text", "json"])
def test_keys_at_the_beginning_of_a_line_are_not_shown(form: str) -> None:
    stream = io.StringIO()
    configure_logging(form, "info", stream)
    logging.getLogger("api.test").info("answered:\nvp_0123456789abcdef\nbearer\nabcdefgh12345")
    written = stream.getvalue()
    assert "vp_***" in written and "0123" not in written and "abcdefgh" not in written


class Formed:
    times = 0

    def __str__(self) -> str:
        self.times += 1
        return "token=hunter2"


def test_the_log_and_the_page_of_a_call_show_one_text_made_once() -> None:
    stream, formed = io.StringIO(), Formed()
    configure_logging("text", "info", stream)
    kept = CallLines({"dialog": "one"}.get)
    end = kept.attach()
    logging.getLogger("sip.test").info("with %s", formed, extra={"call_id": "dialog"})
    end()
    (line,) = kept.of("one")
    assert line.endswith("INFO    sip.test: with token=***")
    assert stream.getvalue() == f"{line}  call_id=dialog\n"
    assert formed.times == 1


def test_text_lines_are_one_line_per_event() -> None:
    stream = io.StringIO()
    configure_logging("text", "warning", stream)
    log = logging.getLogger("sip.test")
    log.warning(
        "bad message %r from\r\n%s", "x", "peer\x1b[31m", extra={"call_sid": "c-1", "request_id": "r-1"}
    )
    log.info("not this")
    (line,) = stream.getvalue().splitlines()
    assert "WARNING sip.test: bad message 'x' from\\r\\npeer\\x1b[31m" in line
    assert line.endswith("call_sid=c-1  request_id=r-1")


def test_requests_that_are_no_http_leave_no_traceback() -> None:
    stream = io.StringIO()
    configure_logging("text", "info", stream)
    try:
        raise LineTooLong("X" * 100)
    except LineTooLong as error:
        logging.getLogger("aiohttp.server").error(
            "Error handling request from %s", "192.0.2.7", exc_info=error
        )
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("INFO    aiohttp.server: unreadable HTTP: LineTooLong")


@pytest.mark.parametrize("form", ["text", "json"])
def test_bytes_of_a_peer_that_are_not_utf_8_are_text_in_the_log(form: str) -> None:
    stream = io.StringIO()
    configure_logging(form, "info", stream)
    logging.getLogger("sip.test").info("refused by %s", "\udce9", extra={"call_id": "\udce9\udc80@h"})
    line = stream.getvalue().encode().decode()
    assert "refused by é" in line and "é\ufffd@h" in line
