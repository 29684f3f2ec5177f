"""
A page with a telephone: its server makes tokens with the API key, and the page calls with them.

Run it with the key in KEY, and open the address that it prints. The server of calls must allow the page's
origin: TRUNKLINE_CORS_ORIGINS=http://localhost:8090. A browser gives its microphone to pages of localhost or
https only.
"""

from __future__ import annotations

import os
import sys

import aiohttp
from aiohttp import web

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Telephone</title>
<label>Number <input id="number" value="+918047000001"></label>
<button id="call">Call</button>
<button id="hangup" disabled>Hang up</button>
<button id="mute" disabled>Mute</button>
<input id="digit" size="1" maxlength="1" aria-label="Key" disabled>
<p id="state" role="status">idle</p>
<script type="module">
  import { Phone } from "%(server)s/webrtc/trunkline-phone.js";
  const at = (id) => document.getElementById(id);
  const token = async () => (await fetch("/token", { method: "POST" })).text();
  const phone = new Phone({ token });
  let call = null;
  const show = () => {
    const up = call !== null && call.state !== "ended";
    at("state").textContent = up ? call.state : `ended: ${call.reason}`;
    at("call").disabled = up;
    for (const id of ["hangup", "mute", "digit"]) at(id).disabled = !up;
  };
  at("call").onclick = async () => {
    at("call").disabled = true;
    try {
      call = window.call = await phone.call(at("number").value, { parameters: { Page: "example" } });
      call.addEventListener("state", show);
      show();
    } catch (error) {
      at("state").textContent = `refused: ${error.message}`;
      at("call").disabled = false;
    }
  };
  at("hangup").onclick = () => call.hangup();
  at("mute").onclick = () => {
    call.mute(!call.muted);
    at("mute").textContent = call.muted ? "Unmute" : "Mute";
  };
  at("digit").oninput = () => {
    if (at("digit").value) call.digit(at("digit").value);
    at("digit").value = "";
  };
</script>
</html>
"""


def application(server: str, key: str) -> web.Application:
    """Build the page's server; `server` is the address of the server of calls."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE % {"server": server}, content_type="text/html")

    async def token(_: web.Request) -> web.Response:
        # Here your server decides who the user is, and what this user may call.
        body = {"identity": "visitor", "ttl_seconds": 600}
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{server}/v1/webrtc/tokens", json=body, headers=headers) as response,
        ):
            response.raise_for_status()
            return web.Response(text=(await response.json())["data"]["token"])

    made = web.Application()
    made.add_routes([web.get("/", page), web.post("/token", token)])
    return made


if __name__ == "__main__":
    if "KEY" not in os.environ:
        sys.exit("set KEY to an API key")
    web.run_app(
        application(os.environ.get("BASE", "http://127.0.0.1:8080"), os.environ["KEY"]),
        host="localhost",
        port=int(os.environ.get("PORT", "8090")),
    )
