"""
An agent's way to the phone: by the Model Context Protocol it sees what tools there are, and calls somebody.

    KEY=vt_... .venv/bin/python examples/mcp_agent.py --to +919800000001 --say "Your table is ready."

A model would choose the tool and its arguments; this program always takes place_call. It ends with 0 when the
call was answered, with 1 when it was not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

POLL_S = 0.5
OVER = {"completed", "busy", "no-answer", "failed", "canceled"}


async def use(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """Use a tool; a refusal ends the program with its words."""
    result = await client.call_tool(name, arguments)
    if result.is_error:
        sys.exit(" ".join(getattr(part, "text", "") for part in result.content))
    answer: dict[str, Any] = result.structured_content
    return answer


async def call(to: str, text: str) -> int:
    """List the tools, place a call, and wait until it is over."""
    base = os.environ.get("BASE", "http://127.0.0.1:8080")
    headers = {"Authorization": f"Bearer {os.environ['KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{base}/integrations/mcp", http_client=http)) as client,
    ):
        for tool in (await client.list_tools()).tools:
            print(f"{tool.name}: {tool.title}", flush=True)
        placed = await use(client, "place_call", to=to, message=text)
        print(f"calling {placed['to']} from {placed['from']}", flush=True)
        status = placed["status"]
        while status not in OVER:
            await asyncio.sleep(POLL_S)
            status = (await use(client, "call_status", call_sid=placed["call_sid"]))["status"]
    print(status, flush=True)
    return 0 if status == "completed" else 1


def main() -> int:
    """Read whom to call and what to say, and do it."""
    parser = argparse.ArgumentParser(description="A call by the Model Context Protocol.")
    parser.add_argument("--to", required=True, help="E.164, such as +919800000001 of the sandbox")
    parser.add_argument("--say", default="Your table is ready.", help="what is said when it is answered")
    arguments = parser.parse_args()
    return asyncio.run(call(arguments.to, arguments.say))


if __name__ == "__main__":
    sys.exit(main())
