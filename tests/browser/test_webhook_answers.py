"""Webhooks of a call in a real browser: requests and answers are shown as text, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from playwright.sync_api import expect

from tests.acceptance.stage import Customer
from tests.browser.test_calls import BUSY, SPEECH, place, until
from tests.browser.test_hostile import ALL, CORPUS, assert_nothing_ran
from tests.support.browser import Browsing, violations
from tests.support.server_process import ServerProcess, wait_until

PICTURE = b"\x89PNG\r\n\x1a\n\0" * 40


@dataclass
class Forgetful:
    """A receiver that refuses the first attempt at each delivery, and repeats what it was sent."""

    url: str = ""
    signatures: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


@contextmanager
def forgetful_receiver() -> Iterator[Forgetful]:
    made = Forgetful()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            delivery = self.headers["webhook-id"]
            signature = self.headers.get("webhook-signature", "").removeprefix("v1,")
            is_first = delivery not in made.seen
            made.seen.add(delivery)
            made.signatures.append(signature)
            body = f"{ALL} {signature}".encode() if is_first else PICTURE
            self.send_response(503 if is_first else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        made.url = f"http://127.0.0.1:{httpd.server_address[1]}/"
        thread = Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            httpd.shutdown()
            thread.join()


@contextmanager
def scripted_receiver(answers: Mapping[str, list[tuple[int, bytes]]]) -> Iterator[str]:
    """A server that gives the answers of each path in order, and its URL."""
    left = {path: list(listed) for path, listed in answers.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = left[self.path].pop(0)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_address[1]}/"
        finally:
            httpd.shutdown()
            thread.join()


def test_the_axis_shows_the_request_each_answer_and_the_retry(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with forgetful_receiver() as receiver, browsing.person() as page:
        url = f"{receiver.url}hook"
        # Its verbs come with the call, so this URL gets events alone.
        call_sid = place(
            customer,
            BUSY,
            verbs=[{"verb": "hangup"}],
            status_webhook_url=url,
            status_webhook_events=["completed"],
        )
        until(customer, call_sid, "busy")
        assert wait_until(lambda: len(receiver.signatures) >= 2, 30), receiver
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        lines = page.locator("#ladder [role=button].webhook")
        # The event, and its second attempt at its own time.
        expect(lines).to_have_count(2)
        expect(lines.nth(1)).to_contain_text("attempt 2: 200")
        for number in range(2):
            lines.nth(number).focus()
            page.keyboard.press("Enter")
            shown = page.locator("#entry pre")
            expect(shown).to_contain_text("Answer to attempt 1")
            text = shown.inner_text()
            assert f"POST {url}" in text and call_sid in text
            assert "503, " in text and all(part in text for part in CORPUS[:4])
            assert f"{len(PICTURE)} bytes, which are no text" in text
            assert not any(signature in text for signature in receiver.signatures)
            assert_nothing_ran(page)
            assert violations(page) == []
            page.keyboard.press("Escape")


def test_the_axis_shows_what_a_server_of_verbs_was_asked_and_answered(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    refused = f"{ALL} wss://shop:HUSH1@agent.example.com/".encode()
    verbs = [
        {"verb": "gather", "num_digits": 1, "timeout": 1, "action_url": "/after", "action_on_empty": True},
        {"verb": "hangup"},
    ]
    answers = {"/first": [(503, refused), (200, json.dumps(verbs).encode())]}
    answers["/after"] = [(200, b'[{"verb": "hangup", "api_key": "HUSH2"}]')]
    with scripted_receiver(answers) as url, browsing.person() as page:
        call_sid = place(customer, SPEECH, webhook_url=f"{url}first")
        until(customer, call_sid, "completed", "failed")
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        lines = page.locator("#ladder [role=button].webhook")
        expect(lines).to_have_count(3)
        shown = []
        for number in range(3):
            lines.nth(number).focus()
            page.keyboard.press("Enter")
            expect(page.locator("#entry pre")).to_contain_text("Answer to attempt")
            shown.append(page.locator("#entry pre").inner_text())
            assert_nothing_ran(page)
            assert violations(page) == []
            page.keyboard.press("Escape")
        assert "HUSH" not in "".join(shown)
        first, again, action = shown
        # The refused attempt, its retry, and the action hook of the verb that followed.
        assert f"POST {url}first\nattempt 1: 503" in first and all(part in first for part in CORPUS[:4])
        assert "attempt 2: 200" in again and '"verb": "gather"' in again
        assert f"POST {url}after" in action and '"api_key": "*****"' in action
        for text in shown:
            assert call_sid in text, "the request has the call"
