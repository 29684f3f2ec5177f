"""
The far ends as a process of their own: callers, callees, clients of the API, an agent, a webhook receiver.

It takes commands as lines of JSON and answers each with one; `tests.faults.oracle.stage` gives them. That it
is a process of its own is the point: what the test does, and what becomes of the server, does not touch it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import secrets
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.oracle.dialogs import Callee, Caller, Dialog, Manner
from tests.faults.oracle.evidence import Leg, to_json
from tests.faults.oracle.flows import Flows
from tests.faults.oracle.receiver import Receiver
from tests.faults.oracle.rtp import EACH_S
from tests.faults.oracle.sip_text import Message, answer

_RECEIVE_BUFFER_BYTES = 1 << 22
# Audio has hundreds of sockets: a message at each look would wait behind a packet of every one of them.
_MESSAGES_AT_ONCE = 64


class Side:
    """One SIP socket, with the calls on it."""

    def __init__(self, role: str, manner_for: Callable[[str], Manner]) -> None:
        self.legs: list[Leg] = []
        self.dialogs: dict[str, Dialog] = {}
        self.address = ""
        self._role = role
        self._manner_for = manner_for
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def open(self, port: int) -> None:
        """Listen on a port of 127.0.0.1."""
        self.address = f"127.0.0.1:{port}"
        self._socket.setblocking(False)
        # As much as the machine allows.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        self._socket.bind(("127.0.0.1", port))
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def close(self) -> None:
        """Forget all calls; nothing more is heard."""
        for dialog in self.dialogs.values():
            dialog.close()
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """Send a datagram."""
        # What does not go out is lost, as on any network.
        with contextlib.suppress(OSError):
            self._socket.sendto(data, to)

    def over(self, dialog: Dialog) -> None:
        """Keep an ended dialog for a while: what comes again is answered again."""
        asyncio.get_running_loop().call_later(40.0, self.dialogs.pop, dialog.leg.call_id, None)

    def begin(self, leg: Leg, dialog: Dialog) -> None:
        """Remember a new call."""
        self.legs.append(leg)
        self.dialogs[leg.call_id] = dialog

    def _read(self) -> None:
        for _ in range(_MESSAGES_AT_ONCE):
            try:
                data, peer = self._socket.recvfrom(65_535)
            except OSError:
                return
            self.received(data, peer)

    def received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A SIP message, or nothing that concerns us."""
        message = Message.read(data)
        if message is None:
            return
        dialog = self.dialogs.get(message.first("call-id"))
        if message.status is not None:
            if dialog is not None:
                dialog.on_answer(message)
        elif dialog is not None:
            dialog.on_request(message)
        elif message.method == "INVITE" and self._role == "callee":
            self._called(message, addr)
        elif message.method != "ACK":
            status = 200 if message.method == "OPTIONS" else 481
            self.send(answer(message, status, secrets.token_hex(4)), addr)

    def _called(self, invite: Message, addr: tuple[str, int]) -> None:
        session_id = invite.first("session-id").partition(";")[0].strip()
        leg = Leg(invite.first("call-id"), "callee", "", invite.user, session_id)
        leg.invites = 1
        callee = Callee(self, leg, addr, self._manner_for(invite.user), invite)
        self.begin(leg, callee)
        callee.ring()


class FarEnds:
    """Everything of this process."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._chance = random.Random(arguments.seed)
        self._callees_do: dict[str, Any] = {}
        self._forgotten = 0
        self.callers = Side("caller", lambda _: Manner())
        self.callees = Side("callee", self._manner_of_callee)
        self.receiver = Receiver()
        self.flows = Flows(f"http://127.0.0.1:{arguments.http_port}", self._chance, self._call)

    async def run(self) -> None:
        """Run commands until the input ends."""
        arguments = self._arguments
        self.callers.open(arguments.caller_port)
        self.callees.open(arguments.callee_port)
        await self.receiver.open(arguments.webhook_port)
        beat = asyncio.create_task(self._beat())
        reader = asyncio.StreamReader(limit=2**24)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        print(json.dumps({"ready": True}), flush=True)
        while line := await reader.readline():
            command = json.loads(line)
            if command["do"] == "let_go":
                await self.flows.let_go()
            print(json.dumps(self._do(command)), flush=True)
        beat.cancel()
        await self.flows.close()
        await self.receiver.close()
        for side in (self.callers, self.callees):
            side.close()

    def _do(self, command: dict[str, Any]) -> dict[str, Any]:
        what = command.pop("do")
        if what == "start":
            self.receiver.secret = command.pop("secret", self.receiver.secret)
            self.flows.start(**command)
        elif what == "stop":
            self.flows.stop()
        elif what == "callees":
            self._callees_do = command
        elif what == "hang_up":
            for side in command.get("sides", ("callers", "callees")):
                for dialog in tuple(getattr(self, side).dialogs.values()):
                    dialog.hang_up()
        elif what == "write":
            Path(command["path"]).write_text(json.dumps(self._seen()))
        elif what == "forget":
            self._forget()
        return self._counts()

    def _counts(self) -> dict[str, Any]:
        legs = [*self.callers.legs, *self.callees.legs]
        return {
            "legs": len(legs),
            "calls": self._forgotten + len(self.callers.legs) + len(self.flows.placed),
            "callers_up": sum(dialog.up for dialog in self.callers.dialogs.values()),
            "callees_up": sum(dialog.up for dialog in self.callees.dialogs.values()),
            "open": sum(leg.ended_at is None for leg in legs),
            "hooks": len(self.receiver.hooks),
            "ended": len(self.receiver.ended),
            "streams": self.receiver.streams,
            "stream_ends": self.receiver.stream_ends,
            "quiet_s": time.monotonic() - self.receiver.last_at,
            **self.flows.counts(),
        }

    def _seen(self) -> dict[str, Any]:
        legs = [*self.callers.legs, *self.callees.legs]
        return {
            "legs": to_json(legs),
            "hooks": to_json(self.receiver.hooks),
            "placed": self.flows.placed,
            "unsure": self.flows.unsure,
        }

    def _forget(self) -> None:
        """Forget what is over, but for the number of calls, and which of them were told to have ended."""
        self._forgotten += len(self.callers.legs) + len(self.flows.placed)
        for kept in (self.callers.legs, self.callees.legs, self.receiver.hooks, self.receiver.stream_ends):
            kept.clear()
        self.flows.placed.clear()
        self.flows.unsure.clear()

    def _call(self, kind: str, number: str, manner: Manner) -> None:
        """Place one call by SIP."""
        leg = Leg(f"{secrets.token_hex(12)}@far", "caller", kind, number, secrets.token_hex(16))
        peer = ("127.0.0.1", self._arguments.sip_port)
        caller = Caller(self.callers, leg, peer, manner, f"+9198{self._chance.randrange(10**8):08d}")
        self.callers.begin(leg, caller)
        caller.call()

    def _manner_of_callee(self, _: str) -> Manner:
        """Return a callee's behaviour in a call: at random, within its orders."""
        told, chance = self._callees_do, self._chance
        refuses = chance.random() < told.get("refuse_share", 0.0)
        hold = told.get("hold_s")
        return Manner(
            ring_s=chance.uniform(*told.get("ring_s", (0.0, 0.3))),
            hold_s=chance.uniform(*hold) if hold is not None else None,
            refusal=486 if refuses else None,
        )

    async def _beat(self) -> None:
        """Send a packet for everybody who talks, again and again; half of them in between."""
        turn = 0
        while True:
            await asyncio.sleep(EACH_S / 2)
            turn += 1
            for side in (self.callers, self.callees):
                for place, dialog in enumerate(tuple(side.dialogs.values())):
                    if dialog.up and place % 2 == turn % 2:
                        dialog.audio.beat()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("caller-port", "callee-port", "webhook-port", "sip-port", "http-port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    asyncio.run(FarEnds(parser.parse_args()).run())


if __name__ == "__main__":
    main()
