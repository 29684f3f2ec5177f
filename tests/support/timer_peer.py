"""A scripted peer that has session timers, or has them wrong, on the in-memory network."""

from collections.abc import Callable

from sip import Request, Response
from tests.support.sip_agents import SDP, RawPeer
from tests.support.sip_stage import RAW, Stage

Answer = Callable[[Request], None]


class TimerPeer(RawPeer):
    """
    Answers INVITE, re-INVITE, UPDATE and BYE as it is told, and can call and refresh by itself.

    `fields` are the header fields of its 2xx to requests that refresh, as a function of the request.
    `refusals` are the statuses with which the next requests of a method are refused.
    """

    def __init__(self, stage: Stage, **fields: str) -> None:
        super().__init__(stage.network, RAW, (stage.bob if fields.pop("caller", "") else stage.alice).address)
        self.clock = stage.network.clock
        self.fields: Callable[[Request], dict[str, str]] = lambda request: dict(fields)
        self.refusals: dict[str, list[tuple[int, dict[str, str]]]] = {}
        self.silent: set[str] = set()
        self.branch = 0
        self.cseq = 1
        self.to = ""
        self.dialog: Request | None = None

    def _take(self, data: bytes, source: tuple[str, int]) -> None:
        count = len(self.received)
        super()._take(data, source)
        for message in self.received[count:]:
            if isinstance(message, Request):
                self._answer(message)
            elif message.cseq.method == "INVITE" and message.status >= 200:
                self._acknowledge(message)

    def _answer(self, request: Request) -> None:
        method = request.method
        if method == "ACK" or method in self.silent:
            return
        if request.to.tag is None:
            self.dialog = request
        refusals = self.refusals.get(method)
        if refusals:
            status, fields = refusals.pop(0)
            self.respond(request, status, "peer", b"", **fields)
        elif method == "BYE":
            self.respond(request, 200)
        else:
            body = SDP if method == "INVITE" else b""
            self.respond(request, 200, body=body, **self.fields(request))

    def _acknowledge(self, response: Response) -> None:
        if response.status < 300:
            self.to = response.headers.get("To") or ""
            number = response.cseq.number
            self.send(self.request("ACK", branch=f"ack{number}", To=self.to, CSeq=f"{number} ACK"))

    def call(self, **fields: str) -> None:
        """Call the agent."""
        self.send(self.request("INVITE", branch="call", body=SDP, **fields))

    def within(self, method: str, **fields: str | bytes) -> None:
        """Send a request within the dialog, whichever side opened it."""
        self.cseq += 1
        self.branch += 1
        fields.setdefault("CSeq", f"{self.cseq} {method}")
        if self.dialog is not None:
            headers = self.dialog.headers
            fields["From"] = f"{headers.get('To')};tag=peer"
            fields["To"] = headers.get("From") or ""
            fields["Call-ID"] = self.dialog.call_id
        else:
            fields.setdefault("To", self.to)
        self.send(self.request(method, branch=f"within{self.branch}", **fields))

    def every(self, seconds: float, method: str, **fields: str | bytes) -> None:
        """Send a request within the dialog again and again."""

        def again() -> None:
            if not self.requests("BYE"):
                self.within(method, **fields)
                self.clock.call_later(seconds, again)

        self.clock.call_later(seconds, again)
