"""
The media engine alone, without signalling: calls that are linked, for the load tool to send through, or legs
that send silence.

Prints the near ports as a JSON list, then waits for SIGTERM and prints what the engine counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from typing import Any

from media.aio import MediaEngine, RtpStream
from media.types import EngineSettings, RemoteMedia

CODECS: dict[str, dict[str, Any]] = {
    "PCMU": {"codec": "PCMU", "payload_type": 0},
    "PCMA": {"codec": "PCMA", "payload_type": 8},
    "G722": {"codec": "G722", "payload_type": 9},
    "L16": {"codec": "L16", "payload_type": 97, "clock_rate": 16000},
    "OPUS": {"codec": "OPUS", "payload_type": 111, "clock_rate": 48000},
}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--load", type=int, required=True, help="port of the callers")
    parser.add_argument("--echo", type=int, required=True, help="port of the far end")
    parser.add_argument("--port-min", type=int, default=20000)
    parser.add_argument("--near", choices=CODECS, default="PCMU")
    parser.add_argument("--far", choices=CODECS, default="PCMU")
    parser.add_argument("--silent", action="store_true", help="do not link the two legs of a call")
    options = parser.parse_args()
    settings = EngineSettings(port_min=options.port_min, port_max=options.port_min + 10000, continuous=True)
    engine = MediaEngine(settings)
    await engine.start()
    near = [_call(engine, options) for _ in range(options.calls)]
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    print(json.dumps([stream.local[1] for stream in near]), flush=True)
    await over.wait()
    stats = engine.stats()
    print(json.dumps({"packets_in": stats.packets_in, "packets_out": stats.packets_out}))
    await engine.close()


def _call(engine: MediaEngine, options: argparse.Namespace) -> RtpStream:
    near = engine.open_stream(lambda event: None)
    far = engine.open_stream(lambda event: None, near)
    # RTCP shares the port, and the load tool counts it as foreign.
    near.connect(RemoteMedia("127.0.0.1", options.load, **CODECS[options.near]))
    far.connect(RemoteMedia("127.0.0.1", options.echo, **CODECS[options.far]))
    if not options.silent:
        near.link(far)
    return near


if __name__ == "__main__":
    asyncio.run(main())
