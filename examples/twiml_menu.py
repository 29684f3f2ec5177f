"""
A menu by TwiML: the caller presses a key, and is told something, put through, or asked again.

Bind a number to it, or place a call with it:

    .venv/bin/python examples/twiml_menu.py --port 9100 --agent +919812345678
    {"target": "webhook", "webhook_url": "http://127.0.0.1:9100/menu"}

Questions come as JSON, with what is known of the call in `data`; as forms, with Twilio's names, where the
binding says `"webhook_format": "form"`. This server takes both.
"""

from __future__ import annotations

import argparse
import json
from urllib.parse import urljoin
from xml.sax.saxutils import escape, quoteattr

from aiohttp import web

_AGENT: web.AppKey[str] = web.AppKey("agent", str)


def twiml(*verbs: str) -> web.Response:
    """An answer."""
    text = f'<?xml version="1.0" encoding="UTF-8"?><Response>{"".join(verbs)}</Response>'
    return web.Response(text=text, content_type="application/xml")


def say(text: str) -> str:
    """Speak a text."""
    return f'<Say language="en-IN">{escape(text)}</Say>'


async def pressed(request: web.Request) -> str:
    """The keys that the caller pressed; none when nothing was."""
    if request.content_type == "application/json":
        return str(json.loads(await request.read())["data"].get("digits") or "")
    return str((await request.post()).get("Digits", ""))


async def menu(request: web.Request) -> web.Response:
    """Ask for a key."""
    action = quoteattr(urljoin(str(request.url), "/choice"))
    prompt = say("For our opening hours, press 1. To talk to somebody, press 2.")
    return twiml(
        f'<Gather numDigits="1" timeout="5" action={action}>{prompt}</Gather>',
        say("We did not hear you. Goodbye."),
        "<Hangup/>",
    )


async def choice(request: web.Request) -> web.Response:
    """Do what the key stands for."""
    key = await pressed(request)
    print(f"pressed: {key or 'nothing'}", flush=True)
    match key:
        case "1":
            return twiml(say("We are here from nine to six. Goodbye."), "<Hangup/>")
        case "2":
            agent = request.app[_AGENT]
            return twiml(say("One moment."), f'<Dial timeout="20">{escape(agent)}</Dial>')
        case _:
            again = escape(urljoin(str(request.url), "/menu"))
            return twiml(say("There is no such choice."), f"<Redirect>{again}</Redirect>")


def main() -> None:
    """Answer questions until the process is ended."""
    parser = argparse.ArgumentParser(description="A menu by TwiML.")
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--agent", default="+919812345678", help="who is dialled for key 2")
    arguments = parser.parse_args()
    app = web.Application()
    app[_AGENT] = arguments.agent
    app.router.add_post("/menu", menu)
    app.router.add_post("/choice", choice)
    url = f"http://127.0.0.1:{arguments.port}/menu"
    web.run_app(
        app, host="127.0.0.1", port=arguments.port, print=lambda _: print(f"listening on {url}", flush=True)
    )


if __name__ == "__main__":
    main()
