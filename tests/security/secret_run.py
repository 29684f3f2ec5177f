"""A run of a server that uses every kind of secret; keeps each of them, and all that the server let out."""

from __future__ import annotations

import json
import re
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callcontrol.accounts.keys import SCOPES
from sip.auth.digest import Credentials, answer_challenge, parse_challenges
from tests.security.far_ends import CaptureServer, PasswordCarrier, RefusingServer
from tests.support.server_process import Account, ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["SecretRun", "secret_run"]

_NUMBER, _CALLEE = "+918047000001", "+919811111111"
_SERVICES = ("platform", "messaging", "assistant", "tools", "admin")
_TOOL = {
    "name": "find_order",
    "description": "Tells what has become of an order.",
    "input_schema": {"type": "object", "properties": {"number": {"type": "string"}}},
}


class SecretRun:
    """
    One run.

    Attributes:
        secrets: Each secret that was used, by what it is.
        answers: What the API answered, but for what shows a new secret once.
    """

    def __init__(
        self, server: ServerProcess, carrier: PasswordCarrier, web: RefusingServer, capture: CaptureServer
    ) -> None:
        self.server = server
        self.carrier = carrier
        self.web = web
        self.capture = capture
        self.secrets: dict[str, str] = {}
        self.answers: list[str] = []
        self.account = Account("", "")
        self._number_id = ""
        self._every = ""

    def keep(self, what: str, secret: str) -> str:
        """Note a secret and give it back."""
        assert len(secret) >= 6, what
        assert self.secrets.setdefault(what, secret) == secret, f"two secrets are called {what}"
        return secret

    def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
        request_id: str = "",
        once: bool = False,
        repeatable: str = "",
    ) -> tuple[int, Any]:
        """Ask; ``once`` for what shows a new secret to the one who made it, ``repeatable`` by that key."""
        headers = {"Authorization": f"Bearer {key or self._every or self.account.api_key}"}
        headers |= {"X-Request-Id": request_id} if request_id else {}
        headers |= {"Idempotency-Key": repeatable} if repeatable else {}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                status, text, shown = answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                status, text, shown = error.code, error.read().decode(), error.headers
        if not once:
            self.answers.append(f"{shown}\n{text}")
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def place(self, once: bool = False, **body: Any) -> dict[str, Any]:
        """Place a call and wait until it is over; what the API says of it then."""
        status, made = self.api("POST", "/v1/calls", {"from": _NUMBER, "to": _CALLEE, **body}, once=once)
        assert status == 201, made
        path = f"/v1/Accounts/{self.account.account_sid}/Calls/{made['data']['call_sid']}"
        found: dict[str, Any] = {}

        def over() -> bool:
            found.update(self.api("GET", path, once=once)[1]["data"])
            return found["ended_at"] is not None

        assert wait_until(over, PATIENCE_S), found
        status, trace = self.api("GET", f"/v1/calls/{made['data']['call_sid']}/trace")
        assert status == 200, trace
        return found

    # What the run does

    def everything(self) -> None:
        """Use every secret there is, rightly and wrongly."""
        self._keys()
        self._carriers()
        self._calls()
        self._passwords()
        self._hooks_and_tools()
        self._mistakes()
        self._defects()
        for path in ("/metrics", "/openapi.json", "/ready"):
            assert self.api("GET", path)[0] == 200

    def _keys(self) -> None:
        self.account = self.server.add_account()
        self.keep("first key of the account", self.account.api_key)
        for service in _SERVICES:
            command = ("keys", "create", "--account", self.account.account_sid, "--service", service)
            self.keep(f"{service} key", self.server.command(*command)["key"])
        every = ("--service", "platform", "--scopes", ",".join(SCOPES["platform"]))
        made = self.server.command("keys", "create", "--account", self.account.account_sid, *every)
        self._every = self.keep("key of every scope", made["key"])
        shown = self.server.command("accounts", "webhook-secret", "--account", self.account.account_sid)
        self.keep("webhook secret", shown["webhook_secret"].removeprefix("whsec_"))
        status, rotated = self.api("POST", "/v1/streams/secret/rotate", {}, once=True)
        assert status == 200, rotated
        self.keep("stream secret", rotated["data"]["stream_secret"].removeprefix("whsec_"))
        self._keys_of_keys()
        for service in _SERVICES[1:]:
            assert self.api("GET", "/v1/calls", key=self.secrets[f"{service} key"])[0] == 403

    def _keys_of_keys(self) -> None:
        """Keys and a webhook secret that a key makes, with responses that can be repeated."""
        body = {"service": "platform", "name": "made by a key", "scopes": ["calls.read"]}
        status, made = self.api("POST", "/v1/keys", body, once=True, repeatable="key-1")
        assert status == 201, made
        self.keep("key made by a key", made["data"]["key"])
        path = f"/v1/keys/{made['data']['id']}/rotate"
        status, successor = self.api("POST", path, {}, once=True, repeatable="key-2")
        assert status == 201, successor
        self.keep("its successor", successor["data"]["key"])
        status, rotated = self.api("POST", "/v1/account/webhook-secret/rotate", {}, once=True, repeatable="s")
        assert status == 200, rotated
        self.keep("new webhook secret", rotated["data"]["webhook_secret"].removeprefix("whsec_"))
        for path in ("/v1/keys", "/v1/account"):
            assert self.api("GET", path)[0] == 200

    def _carriers(self) -> None:
        gateway = f"udp:127.0.0.1:{self.carrier.port}"
        password = self.keep("outbound SIP password", "out-9f3a61c0d2")
        self.server.add_carrier(
            "asking",
            gateway,
            outbound=True,
            register_username="us",
            register_password=password,
            srtp="require",
        )
        self._number_id = self.server.add_number(self.account, _NUMBER)
        status, made = self.api(
            "POST",
            "/v1/trunk-portal/carriers",
            {
                "name": "own",
                "trunk_type": "reg",
                "requires_register": True,
                "register_username": "us",
                "register_password": self.keep("registration password", "reg-55b0e7a19c"),
                "registrars": [f"127.0.0.1:{self.carrier.port}"],
                "inbound_auth_username": "them",
                "inbound_auth_password": self.keep("inbound SIP password", "inb-77d1c2f4e8"),
            },
        )
        assert status == 201, made
        assert wait_until(lambda: "REGISTER" in self.carrier.asked, PATIENCE_S)
        self.api("GET", "/v1/trunk-portal/carriers")

    def _calls(self) -> None:
        token = self.keep("token in a stream's URL", "tok-3c1f6f1a7e")
        auth = {"type": "basic", "username": "bot", "password": self.keep("stream password", "pw-1e7d2c9ab4")}
        hook = self.web.url("/status?token=" + self.keep("token in a webhook's URL", "hook-82b6ac1f05"))
        busy = self.place(verbs=[{"verb": "hangup"}], status_webhook_url=hook)
        assert busy["status"] == "busy", busy
        assert "INVITE" in self.carrier.asked
        stream = self.web.url(f"/agent?key={token}", "ws")
        # A call shows the URL of its stream as it was given.
        self.place(once=True, stream_url=stream, stream_auth=auth, status_webhook_url=hook)
        asked = self.web.url("/instructions?token=" + self.keep("token of instructions", "ins-d91ba4c733"))
        self.place(webhook_url=asked, status_webhook_url=hook)
        self._bind({"target": "media_stream", "stream_url": stream, "stream_auth": auth})
        self._call_in("wrong-4bad1dea00")
        self._call_in(self.secrets["inbound SIP password"])
        self._bind({"target": "webhook", "webhook_url": asked})
        self._call_in(self.secrets["inbound SIP password"])
        assert wait_until(lambda: {"/agent", "/instructions"} <= set(self.web.asked), PATIENCE_S)
        assert wait_until(lambda: "/status" in self.web.asked, PATIENCE_S)

    def _passwords(self) -> None:
        code = self.keep("one-time password", "90417263")
        status, sent = self.api(
            "POST",
            "/v1/voice-otp/send",
            {"to": _CALLEE, "otp": code, "status_webhook_url": self.web.url("/otp")},
        )
        assert status in (200, 201, 202), sent
        path = f"/v1/voice-otp/{sent['data']['id']}/verify"
        assert self.api("POST", path, {"otp": "11112222"})[0] == 200
        self.api("POST", path, {"otp": code})
        self.api("GET", f"/v1/voice-otp/calls/{sent['data']['id']}")

    def _hooks_and_tools(self) -> None:
        status, made = self.api("POST", "/v1/webhooks/subscriptions", self._subscription())
        assert status == 201, made
        self.api("POST", f"/v1/webhooks/subscriptions/{made['data']['id']}/test")
        settings = {"webhook_url": self.web.url("/masked"), "webhook_secret": self._masking_secret()}
        assert self.api("PATCH", "/v1/masking/settings", settings)[0] == 200
        status, tool = self.api(
            "POST", "/integrations/admin/tools", self._tool(), self.secrets["admin key"], once=True
        )
        assert status == 201, tool
        self.keep("tool secret", tool["data"]["secret"].removeprefix("whsec_"))
        path = "/integrations/v1/tools/find_order/execute"
        self.api("POST", path, {"arguments": {"number": "1"}}, self.secrets["tools key"])
        assert "/tool" in self.web.asked
        self.api("GET", "/integrations/admin/tools", key=self.secrets["admin key"])

    def _subscription(self) -> dict[str, Any]:
        secret = self.keep("subscription secret", "subscribed-c0ffee5a11")
        return {"url": self.web.url("/missed"), "secret": secret, "event_types": ["call.missed"]}

    def _masking_secret(self) -> str:
        return self.keep("masking secret", "masked-0ddba11f00d5")

    def _tool(self) -> dict[str, Any]:
        header = self.keep("header of a tool", "shop-5ca1ab1e77")
        return {**_TOOL, "url": self.web.url("/tool"), "headers": {"X-Shop-Key": header}}

    def _bind(self, binding: Mapping[str, Any]) -> None:
        path = f"/v1/phone-numbers/{self._number_id}/inbound"
        status, answer = self.api("PUT", path, {**binding, "force": True})
        assert status == 200, answer

    def _call_in(self, password: str) -> None:
        """Call from an address that is no gateway's."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
            phone.bind(("127.0.0.2", 0))
            phone.settimeout(PATIENCE_S)
            self._invite(phone, Credentials("them", password))

    def _invite(self, phone: socket.socket, credentials: Credentials) -> None:
        host, port = phone.getsockname()
        uri = f"sip:{_NUMBER}@127.0.0.1:{self.server.sip_port}"
        # A later phone may get the port of a former one.
        call = f"{port}-{len(self.secrets)}"

        def invite(number: int, more: str = "") -> str:
            lines = (
                f"INVITE {uri} SIP/2.0",
                f"Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK{call}x{number}",
                "Max-Forwards: 70",
                f"From: <sip:them@{host}>;tag=t{call}",
                f"To: <{uri}>",
                f"Call-ID: inbound-{call}",
                f"CSeq: {number} INVITE",
                f"Contact: <sip:them@{host}:{port}>",
                f"{more}Content-Length: 0",
            )
            phone.sendto(("\r\n".join(lines) + "\r\n\r\n").encode(), ("127.0.0.1", self.server.sip_port))
            while True:
                answer = phone.recv(65535).decode()
                if not answer.startswith("SIP/2.0 1"):
                    return answer

        asked = invite(1)
        assert asked.startswith("SIP/2.0 401"), asked
        values = re.findall(r"^WWW-Authenticate:\s*(.*?)\r$", asked, re.MULTILINE | re.IGNORECASE)
        challenge = parse_challenges(values)[0]
        answer = answer_challenge(
            challenge, credentials, method="INVITE", uri=uri, body=b"", nc=1, cnonce="0a4f113b"
        )
        for digest in re.findall(r'response="([0-9a-f]+)"', answer):
            self.keep(f"answer of {credentials.username} {call}", digest)
        assert not invite(2, f"Authorization: {answer}\r\n").startswith("SIP/2.0 5")

    def _mistakes(self) -> None:
        """Requests that are refused, with secrets in the wrong places."""
        key = self.account.api_key
        assert self.api("GET", "/v1/calls", key=self.keep("unknown key", f"vp_{'k' * 8}{key[11:]}"))[0] == 401
        assert self.api("GET", f"/v1/calls?api_key={key}&token={key}", key="nonsense")[0] == 401
        assert self.api("GET", f"/nowhere/{key}")[0] == 404
        for path, body in self._bodies().items():
            assert self.api("POST", path, {**body, "nonsense": 1})[0] == 400
        otp = {"to": _CALLEE, "otp": self.keep("malformed one-time password", "5550199x")}
        assert self.api("POST", "/v1/voice-otp/send", otp)[0] == 400
        assert self.api("POST", "/v1/calls", {"stream_auth": {"type": "x", **self._auth()}})[0] == 400

    def _auth(self) -> dict[str, str]:
        return {"username": "bot", "password": self.secrets["stream password"]}

    def _bodies(self) -> Mapping[str, dict[str, Any]]:
        """Bodies with secrets in them, of requests with the platform's key."""
        stream = {
            "stream_url": self.web.url("/agent", "ws"),
            "stream_auth": {"type": "basic", **self._auth()},
        }
        return {
            "/v1/voice-otp/send": {"to": _CALLEE, "otp": self.secrets["one-time password"]},
            "/v1/calls": {"from": _NUMBER, "to": _CALLEE, **stream},
            "/v1/webhooks/subscriptions": self._subscription(),
            "/v1/trunk-portal/carriers": {
                "name": "own",
                "inbound_auth_username": "them",
                "inbound_auth_password": self.secrets["inbound SIP password"],
            },
        }

    def _defects(self) -> None:
        """The same bodies where the server fails over them."""
        for path, body in self._bodies().items():
            assert self.api("POST", path, body, request_id="provoke-1")[0] == 500, path
        masking = {"webhook_secret": self._masking_secret()}
        assert self.api("PATCH", "/v1/masking/settings", masking, request_id="provoke-2")[0] == 500
        tool = {**self._tool(), "secret": self.keep("given tool secret", "tool-b01dface5eed")}
        admin = self.secrets["admin key"]
        assert self.api("POST", "/integrations/admin/tools", tool, admin, "provoke-3")[0] == 500
        assert self.server.log().count("RuntimeError: a planted defect met") == len(self._bodies()) + 2

    # What came of it

    def let_out(self) -> Iterator[tuple[str, str]]:
        """All that the server showed to anybody who does not have the secrets, with where it did."""
        yield "the log", self.server.log()
        yield "copies of SIP messages", b"\n".join(self.capture.messages).decode("utf-8", "replace")
        yield "answers of the API", "\n".join(self.answers)

    def kept(self) -> list[str]:
        """
        Each secret that stands in a file of the data directory, but for the key file.

        Tokens in URLs are not looked for: URLs are stored as they were given.
        """
        files = {path: path.read_bytes() for path in self.server.data_dir.rglob("*") if path.is_file()}
        return [
            f"{what} in {path.name}"
            for path, data in files.items()
            for what, secret in self.secrets.items()
            if not what.startswith("token ") and path.name != "secret.key" and secret.encode() in data
        ]

    def found(self) -> list[str]:
        """Each secret that was let out, with where."""
        used = self.secrets | {f"of SIP: {secret}": secret for secret in self.carrier.secrets}
        return [
            f"{what} in {where}"
            for where, text in self.let_out()
            for what, secret in used.items()
            if secret in text
        ]


@contextmanager
def secret_run(directory: Path, log_format: str, environment: Mapping[str, str]) -> Iterator[SecretRun]:
    """A server with a planted defect and its far ends; it logs all there is to log."""
    with PasswordCarrier() as carrier, RefusingServer() as web, CaptureServer() as capture:
        server = ServerProcess(
            directory,
            environment={
                "TRUNKLINE_LOG_FORMAT": log_format,
                "TRUNKLINE_LOG_LEVEL": "debug",
                "TRUNKLINE_HEP_TARGET": f"udp:127.0.0.1:{capture.port}",
                "TRUNKLINE_TRUSTED_SOURCES": "127.0.0.1/32",
                **environment,
            },
            prefix=[sys.executable, "-m", "tests.security.defective_server"],
        )
        run = SecretRun(server, carrier, web, capture)
        server.start()
        try:
            yield run
        finally:
            server.stop()
