"""
A page with a telephone: its server makes tokens with the API key; the page calls and is called with them.

Run it with the key in KEY, and open the address that it prints. The server of calls must allow the page's
origin: TRUNKLINE_CORS_ORIGINS=http://localhost:8090. A browser gives its microphone to pages of localhost or
https only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from aiohttp import web

from trunkline_client import AsyncClient

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Telephone</title>
<label>Number <input id="number" value="+918047000001"></label>
<button id="call">Call</button>
<button id="hangup" disabled>Hang up</button>
<button id="mute" disabled>Mute</button>
<button id="hold" disabled>Hold</button>
<input id="digit" size="1" maxlength="1" aria-label="Key" disabled>
<p><button id="listen">Be called</button>
<button id="answer" disabled>Answer</button>
<button id="refuse" disabled>Refuse</button></p>
<p id="state" role="status">idle</p>
<script type="module">
  import { Phone } from "%(server)s/webrtc/trunkline-phone.js";
  const at = (id) => document.getElementById(id);
  const token = async () => (await fetch("/token", { method: "POST" })).json();
  const phone = new Phone({ token });
  let call = null;
  const show = () => {
    const up = call !== null && call.state !== "ended";
    at("state").textContent = up ? call.state : `ended: ${call.reason}`;
    at("call").disabled = up;
    const rings = up && call.direction === "incoming" && call.state === "ringing";
    for (const id of ["hangup", "mute", "hold", "digit"]) at(id).disabled = !up || rings;
    for (const id of ["answer", "refuse"]) at(id).disabled = !rings;
    if (rings) at("state").textContent = `${call.from} calls`;
  };
  const follow = (made) => {
    call = window.call = made;
    call.addEventListener("state", show);
    show();
  };
  at("call").onclick = async () => {
    at("call").disabled = true;
    try {
      follow(await phone.call(at("number").value, { parameters: { Page: "example" } }));
    } catch (error) {
      at("state").textContent = `refused: ${error.message}`;
      at("call").disabled = false;
    }
  };
  phone.addEventListener("listening", () => {
    at("listen").disabled = phone.listening;
    if (phone.listening && call === null) at("state").textContent = "can be called";
  });
  phone.addEventListener("incoming", (event) => follow(event.call));
  at("listen").onclick = () => phone.listen();
  at("answer").onclick = () => call.answer().catch((error) => { at("state").textContent = error.message; });
  at("refuse").onclick = () => call.refuse();
  at("hangup").onclick = () => call.hangup();
  at("hold").onclick = async () => {
    await call.hold(!call.held);
    at("hold").textContent = call.held ? "Resume" : "Hold";
  };
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


def application(
    server: str, key: str, identity: str = "visitor", may_call: Sequence[str] = ()
) -> web.Application:
    """
    Build the page's server; `server` is the address of the server of calls.

    The page is called as `identity`. Without `may_call` it calls the numbers of the account.
    """

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE % {"server": server}, content_type="text/html")

    async def token(_: web.Request) -> web.Response:
        # Here your server decides who the user is, and what this user may call.
        async with AsyncClient(key, base_url=server) as client:
            given = await client.webrtc.create_phone_token(
                identity=identity, ttl_seconds=600, receives_calls=True, may_call=list(may_call)
            )
        return web.json_response(given.model_dump(mode="json"))

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
