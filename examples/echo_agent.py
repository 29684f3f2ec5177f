"""
The smallest voice agent: it sends back what it hears, and hangs up on the key #.

    .venv/bin/python examples/echo_agent.py --port 9000
    "stream_url": "ws://127.0.0.1:9000/ws"
"""

from __future__ import annotations

import argparse

from trunkline_client.agent import AgentCall, Audio, Digit, Stopped, run_agent


async def answer(call: AgentCall) -> None:
    """Be the agent of one call."""
    print(f"{call.from_} is on the line, at {call.sample_rate} Hz", flush=True)
    async for event in call:
        match event:
            case Audio(pcm=pcm):
                # 20 ms of what the caller says. What is sent is queued and played in order.
                await call.play(pcm)
            case Digit(digit="#"):
                # What is still queued is played first.
                await call.hangup()
            case Stopped(detail=detail):
                print(f"it is over: {detail}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A voice agent that echoes.")
    parser.add_argument("--port", type=int, default=9000)
    run_agent(answer, parser.parse_args().port)
