"""A stage of two servers on one PostgreSQL behind a Kamailio."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faults.oracle.nodes_stage import NodesStage
from tests.support.kamailio import Front

__all__ = ["FrontedStage"]


class FrontedStage(NodesStage):
    """The stage of two nodes with a front, by which its far ends call."""

    def __init__(self, directory: Path, database_url: str) -> None:
        # The far ends call 127.0.0.1.
        self.front = Front(directory / "front", "127.0.0.1")
        behind = {
            "TRUNKLINE_SIP_FRONTS": "127.0.0.1/32",
            "TRUNKLINE_SIP_OUTBOUND_PROXY": self.front.address,
        }
        super().__init__(directory, database_url, behind, far_sip_port=self.front.port)

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.front.start([f"sip:127.0.0.1:{node.sip_port}" for node in self.nodes])
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.front.stop()
