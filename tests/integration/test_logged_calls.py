"""The log of a whole run: what stands in each line, and how many lines a call takes."""

from __future__ import annotations

import ast
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.sandbox_process import NUMBER, calls, place_call, sandbox_process
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.real_time(reason="a server in a process of its own")

ROOT = Path(__file__).resolve().parents[2]
FIELDS = {
    *("time", "level", "logger", "message"),
    *("call_sid", "call_id", "account_sid", "request_id", "exception"),
}
BUSY, NO_ANSWER = "+919800000003", "+919800000004"


def logged(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.long(reason="waits out timer J, 32 s")
def test_every_line_of_a_call_carries_its_identifier(tmp_path: Path) -> None:
    """At debug level each line is one JSON object, and each that belongs to a call names it in a field."""
    server = sandbox_process(tmp_path, LOG_FORMAT="json", LOG_LEVEL="debug")
    server.start()
    try:
        account = server.add_account()
        server.add_number(account, NUMBER)
        place_call(server, account, {"verb": "say", "text": "Hello."}, record=True)
        place_call(server, account, to=BUSY)
        place_call(server, account, {"verb": "play", "url": "https://127.0.0.1:1/none.wav"})
        place_call(server, account, {"verb": "stream", "url": "wss://127.0.0.1:1/none"})
        sids = {call["call_sid"] for call in calls(server, account)}
        assert wait_until(lambda: server.metric("trunkline_sip_transactions") == 0, PATIENCE_S)
    finally:
        server.stop()
    lines = logged(server.log())
    assert all(set(line) <= FIELDS and "\n" not in line["message"] for line in lines)
    assert all(datetime.fromisoformat(line["time"]).tzinfo is not None for line in lines)
    for line in lines:
        named = {sid for sid in sids if sid in json.dumps(line)}
        assert not named or line.get("call_sid") in named, line
        assert line["logger"] != "callcontrol.calls.call" or line.get("call_sid") in sids, line
        assert "call_id" not in line or "call_sid" in line, line
    for sid in sids:
        of_call = [line for line in lines if line.get("call_sid") == sid and line["level"] != "debug"]
        assert 1 <= len([line for line in of_call if line["logger"] == "callcontrol.calls.call"]) <= 4, (
            of_call
        )
        assert len(of_call) <= 12, of_call
    assert not [line for line in lines if line["level"] == "error"]


def test_no_line_names_a_call_in_its_text_alone() -> None:
    """No log statement of the product puts a call's identifier into its text without the field."""
    wanting: list[str] = []
    for path in (
        path for package in ("api", "callcontrol", "sip", "media") for path in (ROOT / package).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if not re.fullmatch(r"debug|info|warning|error|exception|log", node.func.attr) or not node.args:
                continue
            words = ast.unparse(node.args[-1]) + "".join(ast.unparse(argument) for argument in node.args)
            named = "call_sid" in words or "session.call_id" in words
            if named and not any(keyword.arg == "extra" for keyword in node.keywords):
                wanting.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wanting
