"""
Twilio's library for Python as a customer uses it, in an environment of its own.

Arguments: base URL, account, key, numbers to call from and to, number of the channel. It fails
with a traceback at the first result that a program written for Twilio would not expect.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

PATIENCE_S = 30.0
RINGS = "+919800000004"
WAIT = "<Response><Pause length='60'/></Response>"
_pause = threading.Event()


class Shop(BaseHTTPRequestHandler):
    """A server that answers every form with TwiML, and keeps the forms."""

    forms: list[dict[str, list[str]]] = []
    statuses: list[dict[str, list[str]]] = []

    def do_POST(self) -> None:
        """Answer a form."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        (self.forms if self.path == "/voice" else self.statuses).append(parse_qs(body))
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.end_headers()
        self.wfile.write(WAIT.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        _pause.wait(0.05)


def place_and_change(client: Any, shop: str, caller: str, callee: str) -> str:
    """Place a call by a URL and one by a document; give the one other instructions, end both."""
    call = client.calls.create(
        to=callee,
        from_=caller,
        url=f"{shop}/voice",
        method="POST",
        status_callback=f"{shop}/status",
        status_callback_event=["initiated", "ringing", "answered", "completed"],
        timeout=20,
        machine_detection="Enable",
        send_digits="w1",
        record=True,
        recording_channels="dual",
    )
    assert call.status in ("queued", "ringing") and call.direction == "outbound-api"
    eventually(lambda: bool(Shop.forms))
    assert Shop.forms[0]["CallSid"] == [call.sid] and Shop.forms[0]["CallStatus"] == ["in-progress"]
    assert client.calls(call.sid).fetch().status == "in-progress"
    call.update(twiml="<Response><Pause length='1'/><Hangup/></Response>")
    eventually(lambda: client.calls(call.sid).fetch().status == "completed")
    eventually(lambda: len(Shop.statuses) == 4)
    told = {form["SequenceNumber"][0]: form["CallStatus"][0] for form in Shop.statuses}
    assert told == {"0": "initiated", "1": "ringing", "2": "in-progress", "3": "completed"}
    assert {form["CallSid"][0] for form in Shop.statuses} == {call.sid}

    unanswered = client.calls.create(to=RINGS, from_=caller, twiml=WAIT)
    eventually(lambda: unanswered.fetch().status == "ringing")
    unanswered.update(status="canceled")
    eventually(lambda: unanswered.fetch().status == "canceled")

    other = client.calls.create(to=callee, from_=caller, twiml=WAIT)
    eventually(lambda: other.fetch().status == "in-progress")
    assert other.update(status="completed").status == "completed"
    eventually(lambda: other.fetch().end_time is not None)
    done = other.fetch()
    assert done.status == "completed" and done.date_created.tzinfo is not None and float(done.price) <= 0
    return str(call.sid)


def list_calls(client: Any, callee: str) -> None:
    """Read a list by small pages, and by filters."""
    every = client.calls.list(page_size=1)
    assert len(every) == len({call.sid for call in every}) >= 2
    assert [call.sid for call in client.calls.list(limit=1)] == [every[0].sid]
    assert len(client.calls.list(to=callee, status="completed")) >= 2
    now = datetime.now(UTC)
    assert client.calls.list(start_time_after=now + timedelta(days=1)) == []
    assert len(client.calls.list(start_time_before=now + timedelta(days=1))) == len(every)
    page = client.calls.page(page_size=1)
    assert page.next_page().previous_page().next_page_url == page.next_page_url


def read_recordings(client: Any, call_sid: str) -> None:
    """Find the recording of a call by each way, and delete it."""
    eventually(lambda: [found.status for found in client.recordings.list(call_sid=call_sid)] == ["completed"])
    (recording,) = client.recordings.list()
    assert recording.call_sid == call_sid and int(recording.duration) >= 1
    assert [found.sid for found in client.calls(call_sid).recordings.list()] == [recording.sid]
    assert client.recordings(recording.sid).fetch().sid == recording.sid
    assert recording.delete() is True
    assert client.recordings.list() == []


def steer_a_conference(client: Any, caller: str, callee: str) -> None:
    """Find a conference and its calls; mute, hold and remove one, and end it for the other."""
    document = "<Response><Dial><Conference>sales</Conference></Dial><Pause length='60'/></Response>"
    calls = [client.calls.create(to=callee, from_=caller, twiml=document) for _ in range(2)]
    eventually(lambda: bool(client.conferences.list(friendly_name="sales", status="in-progress")))
    (conference,) = client.conferences.list(friendly_name="sales")
    assert client.conferences(conference.sid).fetch().friendly_name == "sales"
    eventually(lambda: len(conference.participants.list()) == 2)
    members = conference.participants.list()
    assert {member.call_sid for member in members} == {call.sid for call in calls}
    assert members[0].update(muted=True).muted is True
    assert len(conference.participants.list(muted=True)) == 1
    assert members[0].update(muted=False).muted is False
    assert members[0].update(hold=True).hold is True
    assert members[0].fetch().hold is True
    assert members[0].delete() is True
    eventually(lambda: len(conference.participants.list()) == 1)
    assert client.calls(members[0].call_sid).fetch().status == "in-progress"
    assert conference.update(status="completed").status == "completed"
    assert client.conferences.list() == []
    for call in calls:
        call.update(status="completed")


def send_a_message(client: Any, sender: str, recipient: str) -> None:
    """Send a text and a picture, follow the one, and find both."""
    text = client.messages.create(to=recipient, from_=sender, body="Your parcel is here.")
    picture = client.messages.create(
        to=f"whatsapp:{recipient}", from_=f"whatsapp:{sender}", media_url=["https://example.com/shop.png"]
    )
    assert (text.direction, picture.num_media) == ("outbound-api", "1")
    eventually(lambda: text.fetch().status == "read")
    found = client.messages.list(to=recipient, page_size=1)
    assert {message.sid for message in found} == {text.sid, picture.sid}


def be_refused(client: Any, caller: str, callee: str, refused: type[Exception]) -> None:
    """Read refusals as the library reads those of Twilio."""

    def status_and_code(act: Callable[[], Any]) -> tuple[int, int, str]:
        try:
            act()
        except refused as error:
            found: Any = error
            return found.status, found.code, found.msg
        raise AssertionError("nothing was refused")

    status, code, message = status_and_code(
        lambda: client.calls.create(to=callee, from_=caller, twiml=WAIT, trim="trim-silence")
    )
    assert (status, code) == (400, 20001) and "Trim" in message
    nobodys = client.calls("00000000-0000-4000-8000-000000000000")
    assert status_and_code(nobodys.fetch)[:2] == (404, 20404)
    for wrong, refusal in {"nobody": (400, 21211), "+919123456789": (400, 21214)}.items():
        found = status_and_code(partial(client.calls.create, to=wrong, from_=caller, twiml=WAIT))
        assert found[:2] == refusal
    ended = client.calls.list(status="completed", limit=1)[0]
    assert status_and_code(lambda: ended.update(status="completed"))[:2] == (404, 20404)


def main(base_url: str, account_sid: str, key: str, caller: str, callee: str, channel: str) -> None:
    """Run all of it."""
    rest = importlib.import_module("twilio.rest")
    errors = importlib.import_module("twilio.base.exceptions")
    client = rest.Client(account_sid, key)
    client.api.base_url = base_url
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    call_sid = place_and_change(client, f"http://127.0.0.1:{server.server_port}", caller, callee)
    list_calls(client, callee)
    read_recordings(client, call_sid)
    steer_a_conference(client, caller, callee)
    send_a_message(client, channel, callee)
    be_refused(client, caller, callee, errors.TwilioRestException)
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
