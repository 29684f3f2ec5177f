"""Two servers with all that may fail between them: the network, the database, the object store."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faults.database_proxy import DatabaseProxy
from tests.faults.oracle.nodes_stage import NodesStage
from tests.faults.tunnel import Tunnel
from tests.support.object_store import S3Service

__all__ = ["Pair"]


class Pair:
    """
    The stage of two nodes with recordings in an object store.

    Attributes:
        stage: The nodes and their far ends.
        tunnel: By which other nodes reach the API of node b.
        proxy: By which node b reaches the database.
        s3, bucket: The object store.
    """

    def __init__(self, directory: Path, database_url: str, database_folder: Path) -> None:
        self._parts = ExitStack()
        self._directory, self._url, self._database_folder = directory, database_url, database_folder
        self.s3 = S3Service()

    def __enter__(self) -> Self:
        with self._parts:
            folder = Path(self._parts.enter_context(tempfile.TemporaryDirectory(prefix="tlpx-")))
            self.proxy = DatabaseProxy(self._database_folder, folder)
            self._parts.callback(self.proxy.close)
            self.s3.start()
            self._parts.callback(self.s3.stop)
            self.bucket = self.s3.bucket()
            stage = NodesStage(
                self._directory,
                self._url,
                {**self.s3.environment(), "TRUNKLINE_RECORDINGS_STORE": f"s3://{self.bucket}"},
            )
            self.tunnel = self._parts.enter_context(Tunnel(stage.b.http_port))
            stage.b.set(
                TRUNKLINE_NODE_URL=f"http://127.0.0.1:{self.tunnel.port}",
                TRUNKLINE_DATABASE_URL=self._url.replace(str(self._database_folder), str(folder)),
            )
            self.stage = self._parts.enter_context(stage)
            self._parts = self._parts.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts.__exit__(kind, error, trace)
