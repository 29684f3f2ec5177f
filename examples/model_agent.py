"""
A call with a realtime speech model of any vendor: by default with a stand-in that repeats what it hears.

    KEY=vk_... .venv/bin/python -m examples.model_agent --provider openai --to +919800000001
    KEY=vk_... VENDOR_KEY=sk-... .venv/bin/python -m examples.model_agent --provider openai

Without VENDOR_KEY the stand-in of that vendor runs in this process. It ends with 0 when the call was
completed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import AsyncExitStack

from fixtures.model_deepgram import DeepgramServer
from fixtures.model_elevenlabs import ElevenLabsServer
from fixtures.model_gemini import GeminiServer
from fixtures.model_openai import OpenAIServer
from fixtures.model_server import ModelServer, ModelSession, parrot
from fixtures.model_ultravox import UltravoxServer
from media.audio import tone
from trunkline_client import ApiError, AsyncClient
from trunkline_client.generated.fields.shared import ModelFields

VENDORS: dict[str, type[ModelServer]] = {
    "openai": OpenAIServer,
    "deepgram": DeepgramServer,
    "gemini": GeminiServer,
    "elevenlabs": ElevenLabsServer,
    "ultravox": UltravoxServer,
}
MODELS = {
    "openai": "gpt-realtime-2",
    "deepgram": "gpt-4o-mini",
    "gemini": "gemini-live-2.5-flash-preview",
    "elevenlabs": "agent_0000",
    "ultravox": "ultravox-v0.7",
}


async def attend(session: ModelSession) -> None:
    """Greet with a tone when that is asked for, and repeat the caller after that."""
    await session.until(lambda session: bool(session.server.greetings(session)))
    print(f"asked to say: {session.server.greetings(session)[0]}", flush=True)
    await session.say(tone(700, 1000, sample_rate=session.server.rate_hz), "(a tone)")
    await parrot(session)


async def talk(arguments: argparse.Namespace) -> int:
    """Place the call, and wait for its end."""
    provider, key = arguments.provider, os.environ.get("VENDOR_KEY")
    model: ModelFields = {
        "provider": provider,
        "model": arguments.model or MODELS[provider],
        "instructions": "You answer the telephone of a restaurant. Be brief and friendly.",
        "greeting": "Namaste, this is the Lotus restaurant.",
        "tools": ["hangup"],
        "api_key": key or "stand-in",
    }
    async with AsyncExitStack() as running:
        if key is None:
            server = VENDORS[provider](attend, key="stand-in")
            await running.enter_async_context(server.running())
            model["url"] = server.url
        client = await running.enter_async_context(AsyncClient())
        call = await client.calls.create(
            to=arguments.to, from_=arguments.from_, model=model, time_limit=arguments.seconds
        )
        async for event in call.events():
            print(f"{event.name}: {call.to}", flush=True)
            call = event.call
    if stream := call.stream:
        print(f"{call.status}: {stream.protocol} {stream.model}, usage {stream.usage}", flush=True)
    return 0 if call.status == "completed" else 1


def main() -> int:
    """Read the arguments and talk."""
    parser = argparse.ArgumentParser(description="A call with a realtime speech model.")
    parser.add_argument("--provider", choices=sorted(VENDORS), default="openai")
    parser.add_argument("--model", help="the vendor's name of the model")
    parser.add_argument("--from", dest="from_", default="+918047000001")
    parser.add_argument("--to", default="+919800000001", help="E.164, such as a number of the sandbox")
    parser.add_argument("--seconds", type=int, default=10, help="longest duration of the call")
    try:
        return asyncio.run(talk(parser.parse_args()))
    except ApiError as refusal:
        sys.exit(str(refusal))


if __name__ == "__main__":
    sys.exit(main())
