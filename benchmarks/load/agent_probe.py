"""
Both ends of a few streamed calls on one clock: a WebSocket agent, and the far end of the callers' RTP.

Each end says sounds of one level, which tell who said them and pass through G.711 unchanged. On SIGTERM the
tool prints, in milliseconds: `caller_to_agent`, from the sending of a packet until the frame that its sound
begins in is with the agent; `agent_to_caller`, from the agent's message with more than a prebuffer of sound
until the first packet with it; `clear_to_silence`, from the agent's `clear` until the last sound has come.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import json
import random
import signal
import time
from typing import Any, cast

import uvloop
from picows import WSFrame, WSListener, WSMsgType, WSTransport, WSUpgradeRequest, ws_create_server

_MU_SILENCE = 0xFF
_QUIET = b"\xff\x7f"
_FIRST_CODE = 0x80  # Positive and loud; each call has one of its own.
_CALLS_MAX = 64
_CYCLE_S = 1.6
_SOUND_MS = 1200
_CLEAR_AFTER_S = 0.5


def _linear(code: int) -> int:
    """The sample that a mu-law byte stands for."""
    code = ~code & 0xFF
    magnitude = (((code & 0x0F) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84
    return -magnitude if code & 0x80 else magnitude


_CODE_OF = {_linear(code): code for code in range(_FIRST_CODE, _FIRST_CODE + _CALLS_MAX)}


class Probe(asyncio.DatagramProtocol):
    """State shared by both ends."""

    def __init__(self) -> None:
        self.agents: list[Agent] = []
        self.callers: dict[tuple[str, int], Caller] = {}
        self.socket: asyncio.DatagramTransport | None = None
        self.taken: dict[str, list[float]] = {
            "caller_to_agent": [],
            "agent_to_caller": [],
            "clear_to_silence": [],
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        now_s = time.monotonic()
        caller = self.callers.get(addr)
        if caller is None:
            if len(self.callers) < _CALLS_MAX:
                assert self.socket is not None
                self.callers[addr] = Caller(self, self.socket, addr, len(self.callers))
            return
        payload = data[12:]
        if len(payload) != 160:
            return
        code = payload[0]
        if payload.count(code) == len(payload) and _FIRST_CODE <= code < _FIRST_CODE + len(self.agents):
            caller.agent = self.agents[code - _FIRST_CODE]
        # A sound that fades passes through the levels of other calls.
        if caller.agent is not None and payload.strip(_QUIET):
            caller.agent.heard(now_s)

    def took(self, what: str, seconds: float) -> None:
        """Note one measurement."""
        self.taken[what].append(1000 * seconds)


class Caller:
    """The far end of one call: silence, and now and then a short sound."""

    def __init__(
        self, probe: Probe, socket: asyncio.DatagramTransport, address: tuple[str, int], index: int
    ) -> None:
        self.said_s = 0.0
        self.agent: Agent | None = None
        self._probe = probe
        self._socket = socket
        self._address = address
        self._code = _FIRST_CODE + index
        self._sent = 0
        self._sound_at = random.randrange(60, 80)
        self._loop = asyncio.get_running_loop()
        self._due_s = self._loop.time() + random.random() * 0.02
        self._loop.call_at(self._due_s, self._send)

    def _send(self) -> None:
        into = self._sent - self._sound_at
        if into == 0:
            self.said_s = time.monotonic()
        elif into == 5:
            self._sound_at = self._sent + random.randrange(15, 30)
        code = self._code if 0 <= into < 5 else _MU_SILENCE
        header = bytes((0x80, 0)) + (self._sent & 0xFFFF).to_bytes(2) + (160 * self._sent).to_bytes(4)
        self._socket.sendto(header + (0x5000 + self._code).to_bytes(4) + bytes([code]) * 160, self._address)
        self._sent += 1
        self._due_s += 0.02
        self._loop.call_at(self._due_s, self._send)


class Agent(WSListener):
    """One stream's agent: says a long sound, takes it back in the middle, and listens."""

    def __init__(self, probe: Probe) -> None:
        super().__init__()
        self._probe = probe
        self._code = _FIRST_CODE + len(probe.agents)
        probe.agents.append(self)
        sound = base64.b64encode(_linear(self._code).to_bytes(2, "little", signed=True) * 8 * _SOUND_MS)
        self._sound = b'{"event":"media","media":{"payload":"' + sound + b'"}}'
        self._said_s = self._cleared_s = self._heard_s = 0.0
        self._quiet = True
        self._transport: WSTransport | None = None
        self._loop = asyncio.get_running_loop()

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        self._loop.call_later(1.5 + random.random() * _CYCLE_S, self._say)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())
        elif frame.msg_type == WSMsgType.CLOSE:
            self._transport = None
            transport.send_close(frame.get_close_code(), frame.get_close_message())
            transport.disconnect()
        elif frame.msg_type == WSMsgType.TEXT:
            self._listen(frame.get_payload_as_bytes())

    def _listen(self, event: bytes) -> None:
        now_s = time.monotonic()
        at = event.find(b'"payload"')
        if at < 0:
            return
        begin = event.index(b'"', at + 9) + 1
        audio = base64.b64decode(event[begin : event.index(b'"', begin)])
        code = _CODE_OF.get(int.from_bytes(audio[-2:], "little", signed=True))
        if code is not None and self._quiet:
            for caller in list(self._probe.callers.values())[code - _FIRST_CODE : code - _FIRST_CODE + 1]:
                self._probe.took("caller_to_agent", now_s - caller.said_s)
        self._quiet = code is None

    def heard(self, now_s: float) -> None:
        """Note a packet with this agent's sound in it."""
        if self._said_s:
            self._probe.took("agent_to_caller", now_s - self._said_s)
            self._said_s = 0.0
        self._heard_s = now_s

    def _say(self) -> None:
        if self._transport is None:
            return
        self._said_s = time.monotonic()
        self._transport.send(WSMsgType.TEXT, self._sound)
        self._loop.call_later(_CLEAR_AFTER_S + random.random() * 0.02, self._clear)
        self._loop.call_later(_CYCLE_S, self._say)

    def _clear(self) -> None:
        if self._transport is None:
            return
        self._cleared_s = time.monotonic()
        self._transport.send(WSMsgType.TEXT, b'{"event":"clear"}')
        self._loop.call_later(0.4, self._judge)

    def _judge(self) -> None:
        # What was still heard after the order; nothing of it when the last packet came before.
        self._probe.took("clear_to_silence", max(0.0, self._heard_s - self._cleared_s))


def _summary(taken: list[float]) -> dict[str, float]:
    if not taken:
        return {"count": 0}
    ranked = sorted(taken)
    return {
        "count": len(ranked),
        "p50": round(ranked[len(ranked) // 2], 2),
        "p99": round(ranked[min(len(ranked) - 1, len(ranked) * 99 // 100)], 2),
        "max": round(ranked[-1], 2),
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="where the agent listens")
    parser.add_argument("--listen", type=int, required=True, help="UDP port of the callers' audio")
    arguments = parser.parse_args()
    probe = Probe()

    def accept(_: WSUpgradeRequest) -> Any:
        return Agent(probe)

    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    await loop.create_datagram_endpoint(lambda: probe, ("127.0.0.1", arguments.listen))
    gc.freeze()
    async with await ws_create_server(accept, "127.0.0.1", arguments.port):
        await over.wait()
    print(json.dumps({what: _summary(taken) for what, taken in probe.taken.items()}))


if __name__ == "__main__":
    uvloop.run(main())
