"""
A one-time password by voice: a call says it, the user types it, the server compares.

    KEY=vk_... .venv/bin/python examples/otp_flow.py --to +919800000009

It ends with 0 when what was typed is right, with 1 when it is not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from typing import Any

POLL_S = 0.5
OVER = {"completed", "busy", "no-answer", "failed", "canceled"}


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Make a request of the API; a refusal ends the program with its words."""
    base = os.environ.get("BASE", "http://127.0.0.1:8080")
    headers = {"Authorization": f"Bearer {os.environ['KEY']}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(base + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)["data"]
            return answer
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{refusal.code}: {json.load(refusal)['error']['message']}")


def main() -> int:
    """Send a password, wait until it was said, and have what the user heard checked."""
    parser = argparse.ArgumentParser(description="A one-time password by voice.")
    parser.add_argument("--to", required=True, help="E.164, such as +919800000009 of the sandbox")
    parser.add_argument("--language", default="en-IN")
    parser.add_argument("--password", help="4 to 8 digits; made by the server when left out")
    arguments = parser.parse_args()
    body = {"to": arguments.to, "language": arguments.language, "repeat": 1}
    if arguments.password:
        body["otp"] = arguments.password
    sent = ask("POST", "/v1/voice-otp/send", body)
    print(f"calling {sent['to']}", flush=True)
    call = sent
    while call["status"] not in OVER:
        # This program does nothing else meanwhile; a server would take the event otp.completed.
        threading.Event().wait(POLL_S)
        call = ask("GET", f"/v1/voice-otp/calls/{sent['id']}")
    print(f"{call['status']}, said {call['played_count']} times", flush=True)
    typed = input("What did the call say? ").strip()
    checked = ask("POST", f"/v1/voice-otp/{sent['id']}/verify", {"otp": typed})
    print(
        "verified"
        if checked["verified"]
        else f"{checked['reason']}: {checked['attempts_left']} guesses are left"
    )
    return 0 if checked["verified"] else 1


if __name__ == "__main__":
    sys.exit(main())
