"""
A one-time password by voice: a call says it, the user types it, the server compares.

    KEY=vk_... .venv/bin/python examples/otp_flow.py --to +919800000009

It ends with 0 when what was typed is right, with 1 when it is not.
"""

from __future__ import annotations

import argparse
import sys
import threading

from trunkline_client import ApiError, Client

POLL_S = 0.5
OVER = {"completed", "busy", "no-answer", "failed", "canceled"}


def verify(client: Client, to: str, language: str, password: str | None) -> int:
    """Send a password, wait until it was said, and have what the user heard checked."""
    call = client.otp.send(to=to, language=language, repeat=1, otp=password)
    print(f"calling {call.to}", flush=True)
    while call.status not in OVER:
        # This program does nothing else meanwhile; a server would take the event otp.completed.
        threading.Event().wait(POLL_S)
        call = client.otp.get(call.id)
    print(f"{call.status}, said {call.played_count} times", flush=True)
    checked = client.otp.verify(call.id, otp=input("What did the call say? ").strip())
    print("verified" if checked.verified else f"{checked.reason}: {checked.attempts_left} guesses are left")
    return 0 if checked.verified else 1


def main() -> int:
    """Read whom to call and what to say, and do it."""
    parser = argparse.ArgumentParser(description="A one-time password by voice.")
    parser.add_argument("--to", required=True, help="E.164, such as +919800000009 of the sandbox")
    parser.add_argument("--language", default="en-IN")
    parser.add_argument("--password", help="4 to 8 digits; made by the server when left out")
    arguments = parser.parse_args()
    with Client() as client:
        try:
            return verify(client, arguments.to, arguments.language, arguments.password)
        except ApiError as refusal:
            sys.exit(str(refusal))


if __name__ == "__main__":
    sys.exit(main())
