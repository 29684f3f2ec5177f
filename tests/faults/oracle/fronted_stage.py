"""A stage of two servers on one PostgreSQL behind a Kamailio."""

from __future__ import annotations

import base64
from pathlib import Path
from types import TracebackType

from tests.faults.lengths import RTP_PORTS
from tests.faults.oracle.stage import OracleStage
from tests.support.kamailio import Front
from tests.support.server_process import ServerProcess

__all__ = ["FrontedStage"]

_SECRET_KEY = base64.b64encode(bytes(range(32))).decode()


class FrontedStage(OracleStage):
    """The oracle's stage with a front, by which its far ends call, and a second node "b" behind it."""

    def __init__(self, directory: Path, database_url: str) -> None:
        # The far ends call 127.0.0.1.
        self.front = Front(directory / "front", "127.0.0.1")
        shared = {
            "TRUNKLINE_DATABASE_URL": database_url,
            "TRUNKLINE_SECRET_KEY": _SECRET_KEY,
            "TRUNKLINE_SIP_FRONTS": "127.0.0.1/32",
            "TRUNKLINE_SIP_OUTBOUND_PROXY": self.front.address,
            "TRUNKLINE_MAX_CPS": "1000",
        }
        super().__init__(directory, {**shared, "TRUNKLINE_NODE": "a"}, far_sip_port=self.front.port)
        self.b = ServerProcess(
            directory / "b", environment={**shared, "TRUNKLINE_NODE": "b"}, rtp_ports=RTP_PORTS
        )

    def __enter__(self) -> FrontedStage:
        with self.b.starting(), self.front:
            self.front.start([f"sip:127.0.0.1:{node.sip_port}" for node in (self.server, self.b)])
            super().__enter__()
        self.front.start([f"sip:127.0.0.1:{node.sip_port}" for node in (self.server, self.b)])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.b.process is not None and self.b.process.poll() is None:
            self.b.stop() if kind is None else self.b.kill()
        self.front.stop()

    def _calls_left(self) -> bool:
        return super()._calls_left() or bool(self.b.metric("trunkline_calls_active"))
