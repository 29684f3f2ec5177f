"""
A B2BUA on the library aiosipua, for comparison: `python aiosipua_b2bua.py LISTEN_PORT CALLEE_PORT`.

Each call becomes a second one to the callee; descriptions pass unread. It has no records, no policy and no
media. It runs on asyncio's own loop, as the library asserts; on uvloop, with `python -O`, it takes a quarter
less.
"""

import asyncio
import sys

from aiosipua import IncomingCall, OutgoingCall, SipRequest, SipUAC, SipUAS
from aiosipua.transport import UdpSipTransport

_HOST = "127.0.0.1"
_ANSWER_S = 30.0


class Bridge:
    """Two user agents on one socket, and the second leg of each call."""

    def __init__(self, listen_port: int, callee_port: int) -> None:
        transport = UdpSipTransport(local_addr=(_HOST, listen_port))
        self._caller = f"sip:bridge@{_HOST}:{listen_port}"
        self._callee = (_HOST, callee_port)
        self._uac = SipUAC(transport)
        self._legs: dict[str, OutgoingCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.uas = SipUAS(transport, uac=self._uac)
        self.uas.on_invite = self._invited
        self.uas.on_bye = self._ended

    def _invited(self, call: IncomingCall) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, call: IncomingCall) -> None:
        callee = "sip:callee@{}:{}".format(*self._callee)
        leg = self._uac.send_invite(self._caller, callee, self._callee, sdp_offer=call.sdp_offer)
        try:
            await leg.wait_answered(_ANSWER_S)
        except (TimeoutError, RuntimeError) as error:  # The second is the library's for a refusal.
            print(f"no answer: {error}", file=sys.stderr)
            call.reject(503)
            return
        self._legs[call.call_id] = leg
        call.accept(leg.sdp_answer)

    def _ended(self, call: IncomingCall, _: SipRequest) -> None:
        leg = self._legs.pop(call.call_id, None)
        if leg is not None:
            leg.hangup(self._uac)


async def main() -> None:
    """Bridge calls until the process is ended."""
    listen_port, callee_port = map(int, sys.argv[1:])
    await Bridge(listen_port, callee_port).uas.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
